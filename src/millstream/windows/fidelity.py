"""What a job asks of its windows' coverage (iMR, section 3.2), and when a window is closed (3.3).

Three specifications: an *area*, of the panes that come first; *spatial* completeness, a part of the
panes from all nodes; *temporal* completeness, all panes from a part of the nodes. Each fixes the
axis along which losses would bias the answer. (The paper's fourth, an area of panes that are drawn
at random, needs nodes that draw them.)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from millstream.errors import DefinitionError
from millstream.windows.coverage import Coverage

Reason = Literal["complete", "fidelity", "latency", "failure", "time"]
"""Why a window was closed: all panes are there; the bound is met; its time is over; the bound can
no longer be met, or nothing more can come; event time has passed it, so that whoever is silent had
nothing."""


class Fidelity(Protocol):
    """A bound on the coverage of a window."""

    def met(self, coverage: Coverage) -> bool: ...


@dataclass(frozen=True, slots=True)
class Area:
    """So much of all panes of all nodes, whichever come first."""

    part: float

    def __post_init__(self) -> None:
        _check("Area", self.part)

    def met(self, coverage: Coverage) -> bool:
        return coverage.area >= self.part


@dataclass(frozen=True, slots=True)
class Spatial:
    """(X, 100%): so much of the panes, each from all nodes."""

    part: float

    def __post_init__(self) -> None:
        _check("Spatial", self.part)

    def met(self, coverage: Coverage) -> bool:
        return coverage.whole_panes >= self.part


@dataclass(frozen=True, slots=True)
class Temporal:
    """(100%, Y): all panes, from so much of the nodes."""

    part: float

    def __post_init__(self) -> None:
        _check("Temporal", self.part)

    def met(self, coverage: Coverage) -> bool:
        return coverage.whole_nodes >= self.part


def _check(kind: str, part: object) -> None:
    number = isinstance(part, int | float) and not isinstance(part, bool)
    if not number or not 0 < part <= 1:  # type: ignore[operator]
        raise DefinitionError(
            f"fidelity {kind}: part must be over 0 and at most 1, as in {kind}(0.5); got {part!r}"
        )


def closing(coverage: Coverage, fidelity: Fidelity | None, *, overdue: bool) -> Reason | None:
    """Why a window is to be closed now; None: it goes on waiting.

    `overdue`: its latency is over. Without a fidelity all is waited for.
    """
    if coverage.complete:
        return "complete"
    if fidelity is not None and fidelity.met(coverage):
        return "fidelity"
    if overdue:
        return "latency"
    if coverage.settled or (fidelity is not None and not fidelity.met(coverage.at_best())):
        return "failure"
    return None
