"""A job that has its place in an application: what agents and the server know it by."""

from __future__ import annotations

from dataclasses import Field, dataclass, fields, is_dataclass
from typing import Any

from millstream.windows.fidelity import Fidelity
from millstream.windows.job import Job
from millstream.windows.logs import Logs


@dataclass(frozen=True)
class PlacedJob:
    """A job, its name and its nodes; with `logs` its panes come from agents."""

    job: Job
    name: str
    nodes: tuple[str, ...]
    logs: Logs | None = None

    @property
    def panes(self) -> str:
        """The stream that the nodes' messages come in on: with agents, a source."""
        return f"{self.name}.panes"

    @property
    def told(self) -> str:
        """The output that agents follow: which panes were taken, which windows are closed."""
        return f"{self.name}.told"

    @property
    def root(self) -> str:
        """The update with the scoreboard; its keys are reducers."""
        return f"{self.name}.root"

    @property
    def dated(self) -> bool:
        """Whether records say themselves where on the axis they are, and so may come late."""
        if self.job.span.axis == "time":
            return self.logs is None or self.logs.ts is not None
        return self.job.span.axis == "sequence"

    def described(self) -> dict[str, Any]:
        from millstream.windows.definition import described_definition  # it knows this module

        span = self.job.span
        return {
            "kind": "job",
            "nodes": list(self.nodes),
            "agents": self.logs is not None,
            "axis": span.axis,
            "range": span.length,
            "slide": span.slide,
            "pane": span.pane,
            "lasting": span.words,
            "latency": self.job.latency if self.job.latency is None else str(self.job.latency),
            "fidelity": None if self.job.fidelity is None else _shown(self.job.fidelity),
            "definition": None if self.logs is None else described_definition(self),
        }


def _shown(fidelity: Fidelity) -> str:
    """As it would be written.

    >>> from millstream.windows import Area
    >>> _shown(Area(0.5)), _shown(Area(0.5, drawn=True))
    ('Area(0.5)', 'Area(0.5, drawn=True)')
    """
    if not is_dataclass(fidelity):
        return repr(fidelity)
    first, *rest = fields(fidelity)
    told = [f"{one.name}={getattr(fidelity, one.name)!r}" for one in rest if _is_set(fidelity, one)]
    return f"{type(fidelity).__name__}({', '.join([repr(getattr(fidelity, first.name)), *told])})"


def _is_set(of: object, one: Field[Any]) -> bool:
    return bool(getattr(of, one.name) != one.default)
