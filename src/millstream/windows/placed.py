"""A job with its name and nodes in an application, as agents and the server know it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import Field, dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from millstream.windows.definition import described_definition
from millstream.windows.fidelity import Fidelity
from millstream.windows.logs import Logs
from millstream.windows.span import Axis

if TYPE_CHECKING:
    from millstream.windows.job import Job


class JobPart(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="job"):
    """A job as a part of an application's `Description`, for processes that read the store."""

    nodes: list[str]
    agents: bool
    """True if its panes come from agents."""
    axis: Axis
    range: int
    slide: int
    pane: int
    latency: str | None
    fidelity: str | None
    lasting: str = ""
    """The sizes of the job's windows and panes, in words (`Span.words`)."""
    unit: str | None = None
    """The unit of the times in the logs that agents read."""
    definition: dict[str, Any] | None = None
    """The `PublishedJob` for its agents. None: it has none, or is Python without a package."""

    @property
    def version(self) -> str | None:
        """The version that its agents must run. None: nothing was published for them."""
        return None if self.definition is None else str(self.definition["version"])


def job_parts(parts: Mapping[str, Any]) -> dict[str, JobPart]:
    """Returns the jobs among the parts of a `Description`, by name."""
    return {
        name: msgspec.convert(part, JobPart)
        for name, part in parts.items()
        if isinstance(part, Mapping) and part.get("kind") == "job"
    }


@dataclass(frozen=True)
class PlacedJob:
    """A job, its name and its nodes. With `logs` its panes come from agents."""

    job: Job
    name: str
    nodes: tuple[str, ...]
    logs: Logs | None = None

    @property
    def panes(self) -> str:
        """The stream of the nodes' messages. With agents it is a source."""
        return f"{self.name}.panes"

    @property
    def told(self) -> str:
        """The output that agents follow: panes that were taken in, windows that were closed."""
        return f"{self.name}.told"

    @property
    def root(self) -> str:
        """The update with the scoreboard. Its keys are reducers."""
        return f"{self.name}.root"

    @property
    def dated(self) -> bool:
        """True if records carry their own position on the axis, and so may be late."""
        if self.job.span.axis == "time":
            return self.logs is None or self.logs.ts is not None
        return self.job.span.axis == "sequence"

    def described(self) -> dict[str, Any]:
        span = self.job.span
        part = JobPart(
            nodes=[*self.nodes],
            agents=self.logs is not None,
            axis=span.axis,
            range=span.length,
            slide=span.slide,
            pane=span.pane,
            lasting=span.words,
            latency=self.job.latency if self.job.latency is None else str(self.job.latency),
            fidelity=None if self.job.fidelity is None else _shown(self.job.fidelity),
            unit=None if self.logs is None else self.logs.unit,
            definition=None if self.logs is None else described_definition(self),
        )
        plain: dict[str, Any] = msgspec.to_builtins(part)
        return plain


def _shown(fidelity: Fidelity) -> str:
    """Formats a fidelity as Python code.

    >>> from millstream.windows import Area
    >>> _shown(Area(0.5)), _shown(Area(0.5, drawn=True))
    ('Area(0.5)', 'Area(0.5, drawn=True)')
    """
    if not is_dataclass(fidelity):
        return repr(fidelity)
    first, *rest = fields(fidelity)
    options = [
        f"{option.name}={getattr(fidelity, option.name)!r}"
        for option in rest
        if _is_set(fidelity, option)
    ]
    return (
        f"{type(fidelity).__name__}({', '.join([repr(getattr(fidelity, first.name)), *options])})"
    )


def _is_set(fidelity: object, option: Field[Any]) -> bool:
    return bool(getattr(fidelity, option.name) != option.default)
