"""What a job asks of its windows' coverage (iMR, section 3.2), and when a window is closed (3.3).

The paper's four specifications: an *area*, of the panes that come first, or of panes that are drawn
at random (`Area(0.5, drawn=True)`: each node makes only those, see `drawing`); *spatial*
completeness, a part of the panes from all nodes; *temporal* completeness, all panes from a part of
the nodes. Each fixes the axis along which losses would bias the answer. A fifth, `Error`, asks not
for a part of the panes but for an answer that is near enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from typing import Any, Literal, Protocol

from millstream.errors import DefinitionError
from millstream.windows.coverage import Covered

Reason = Literal["complete", "fidelity", "latency", "failure", "time"]
"""Why a window was closed: all panes are there; the bound is met; its time is over; the bound can
no longer be met, or nothing more can come; event time has passed it, so that whoever is silent had
nothing."""


class Fidelity(Protocol):
    """A bound on the coverage of a window."""

    def met(self, coverage: Covered) -> bool: ...


@dataclass(frozen=True, slots=True)
class Area:
    """So much of all panes of all nodes: whichever come first or, `drawn`, a random sample of each
    node's panes, the same part of each. Of drawn ones a window needs all (`looking`): panes that
    were not drawn and had no records come too, and are no part of the sample."""

    part: float
    drawn: bool = False

    def __post_init__(self) -> None:
        _check("Area", self.part)

    def met(self, coverage: Covered) -> bool:
        return coverage.area >= self.part


@dataclass(frozen=True, slots=True)
class Spatial:
    """(X, 100%): so much of the panes, each from all nodes."""

    part: float

    def __post_init__(self) -> None:
        _check("Spatial", self.part)

    def met(self, coverage: Covered) -> bool:
        return coverage.whole_panes >= self.part


@dataclass(frozen=True, slots=True)
class Temporal:
    """(100%, Y): all panes, from so much of the nodes."""

    part: float

    def __post_init__(self) -> None:
        _check("Temporal", self.part)

    def met(self, coverage: Covered) -> bool:
        return coverage.whole_nodes >= self.part


@dataclass(frozen=True, slots=True)
class Error:
    """An answer within `part` of the truth: at `confidence` the window's total over all keys (of a
    mean or a ratio: the one over all keys) is no farther from it.

    Nodes make their panes in four rounds, by rank in the block (see `drawing`): a quarter of them,
    half, three quarters, all. The bound is looked at when a round is complete for all nodes, and
    at no other moment. It stays valid though it was watched: the window may be closed at one of
    `LOOKS` looks, or by its latency, and every interval is so wide that it fails with
    `(1 - confidence)` divided by the number of those chances. So the chance that any of them fails,
    whichever one is the last, is at most `1 - confidence` (Bonferroni); after the fourth round the
    answer is exact.
    """

    part: float
    confidence: float = 0.95

    def __post_init__(self) -> None:
        _check("Error", self.part)
        if not isinstance(self.confidence, float) or not 0.5 <= self.confidence < 1:
            raise DefinitionError(
                "job: fidelity must have a confidence of 0.5 or more and under 1, as in 0.95; "
                f"got {self.confidence!r}"
            )

    def met(self, coverage: Covered) -> bool:
        """Coverage alone never says it: see `look`."""
        return False

    def look(self, total: Mapping[str, Any]) -> bool:
        """Whether the bound on a window's total is near enough: whatever the truth is between `low`
        and `high`, `value` is within `part` of it."""
        value, low, high = total["value"], total["low"], total["high"]
        if value is None or low is None or high is None:
            return False
        return all(abs(value - end) <= self.part * abs(end) for end in (low, high))


LOOKS = 3
"""How many rounds of `Error` can close a window before the last, which is exact."""


def rounds(panes: int) -> tuple[int, ...]:
    """The ranks that the rounds of `Error` end before, if a window has so many panes: 25, 50, 75
    and 100% of them.

    >>> rounds(20), rounds(2)
    ((5, 10, 15, 20), (1, 1, 2, 2))
    """
    return tuple(ceil(panes * part / (LOOKS + 1)) for part in range(1, LOOKS + 2))


def _check(kind: str, part: object) -> None:
    number = isinstance(part, int | float) and not isinstance(part, bool)
    if not number or not 0 < part <= 1:  # type: ignore[operator]
        raise DefinitionError(
            f"job: fidelity must have a part over 0 and at most 1 for {kind.lower()}, as in 0.5; "
            f"got {part!r}"
        )


def closing(
    coverage: Covered, fidelity: Fidelity | None, *, overdue: bool, near: bool = False
) -> Reason | None:
    """Why a window is to be closed now; None: it goes on waiting.

    `overdue`: its latency is over. `near`: a look has found the bound of `Error` met. Without a
    fidelity all is waited for.
    """
    if coverage.complete:
        return "complete"
    if near or (fidelity is not None and fidelity.met(coverage)):
        return "fidelity"
    if overdue:
        return "latency"
    if coverage.settled or not _possible(coverage, fidelity):
        return "failure"
    return None


def _possible(coverage: Covered, fidelity: Fidelity | None) -> bool:
    """Whether the bound can still be met. Lost panes only widen an interval: of `Error` nothing is
    known before all is settled."""
    if fidelity is None or isinstance(fidelity, Error):
        return True
    return fidelity.met(coverage.at_best())
