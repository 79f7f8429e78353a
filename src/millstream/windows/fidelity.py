"""The coverage that a job requires of its windows (iMR, 3.2), and when a window is closed (3.3).

The paper has four specifications. An *area* counts the panes that come first, or panes that are
drawn at random (`Area(0.5, drawn=True)`: each node makes only those, see `pane_rank`). *Spatial*
completeness is a share of the panes from all nodes. *Temporal* completeness is all panes from a
share of the nodes. Each fixes the axis along which losses would bias the answer. A fifth, `Error`,
does not require a share of the panes but an answer that is near enough to the truth.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Literal, Protocol

from millstream.errors import DefinitionError
from millstream.messages.answers import Bound
from millstream.windows.coverage import Covered

Reason = Literal["complete", "late", "fidelity", "latency", "failure", "time"]
"""The reason for closing a window.

- `complete`: all panes have come, and no record is known to be missing or expected to come late.
- `late`: all panes have come, but records of the window came late, or are expected to.
- `fidelity`: the bound is met.
- `latency`: its time is over.
- `failure`: the bound can no longer be met, or nothing more can come.
- `time`: event time has passed it, so a silent node had no records.
"""

Shed = Literal["order", "drawn", "never"]
"""The rules by which an agent gives up panes that would miss the latency: see `Job.shed`."""
Kind = Literal["count", "sum", "mean", "ratio", "histogram"]
"""The kind of a combined value that has bounds: see `Job.bounds`."""


class Fidelity(Protocol):
    """A bound on the coverage of a window, apart from panes after the ends of logs: of these there
    is nothing to wait for."""

    def met(self, coverage: Covered) -> bool: ...


@dataclass(frozen=True, slots=True)
class Area:
    """A share of all panes of all nodes: those that come first or, if `drawn`, a random sample of
    each node's panes, with the same share for each. A window needs all drawn panes
    (`window_bounds`). Panes that were not drawn and had no records also come, but are not part of
    the sample."""

    part: float
    drawn: bool = False

    def __post_init__(self) -> None:
        _check("Area", self.part)

    def met(self, coverage: Covered) -> bool:
        return coverage.area >= self.part


@dataclass(frozen=True, slots=True)
class Spatial:
    """(X, 100%): a share of the panes, each from all nodes."""

    part: float

    def __post_init__(self) -> None:
        _check("Spatial", self.part)

    def met(self, coverage: Covered) -> bool:
        return coverage.whole_panes >= self.part


@dataclass(frozen=True, slots=True)
class Temporal:
    """(100%, Y): all panes, from a share of the nodes."""

    part: float

    def __post_init__(self) -> None:
        _check("Temporal", self.part)

    def met(self, coverage: Covered) -> bool:
        return coverage.whole_nodes >= self.part


@dataclass(frozen=True, slots=True)
class Error:
    """An answer within `part` of the truth: with the given `confidence`, the window's total over
    all keys (or its mean or ratio over all keys) is no farther from the truth.

    Nodes make their panes in four rounds, by rank in the block (see `pane_rank`): a quarter of
    them, half, three quarters, all. The bound is checked only when a round is complete for all
    nodes. It stays valid although it is checked repeatedly: the window may be closed at one of
    `LOOKS` looks, or by its latency, and each interval is wide enough to fail with a probability of
    only `(1 - confidence)` divided by the number of those occasions. So the probability that any of
    them fails, whichever is the last, is at most `1 - confidence` (Bonferroni). After the fourth
    round the answer is exact.
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
        """Always False, since coverage alone does not decide. See `look`."""
        return False

    def look(self, total: Bound) -> bool:
        """True if the bound on a window's total is near enough: wherever the truth is between `low`
        and `high`, `value` is within `part` of it."""
        value, low, high = total.value, total.low, total.high
        if value is None or low is None or high is None:
            return False
        return all(abs(value - end) <= self.part * abs(end) for end in (low, high))


FIDELITIES = {kind.__name__.lower(): kind for kind in (Area, Spatial, Temporal, Error)}
"""All of them, by their names in a TOML file and in the definition of a job."""
LOOKS = 3
"""The number of rounds of `Error` that can close a window before the last one, which is exact."""


def rounds(panes: int) -> tuple[int, ...]:
    """Returns the ranks before which the rounds of `Error` end, if a window has `panes` panes: 25,
    50, 75 and 100% of them.

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
    """Returns the reason to close a window now. None: it keeps waiting.

    `overdue`: its latency is over. `near`: a look has found the bound of `Error` met. Without a
    fidelity the window waits for all panes.
    """
    if coverage.all_came:  # whether records are late is decided when it is answered
        return "complete"
    if near or (fidelity is not None and fidelity.met(coverage)):
        return "fidelity"
    if overdue:
        return "latency"
    if coverage.settled or not _possible(coverage, fidelity):
        return "failure"
    return None


def _possible(coverage: Covered, fidelity: Fidelity | None) -> bool:
    """True if the bound can still be met. For `Error` that is not known before all panes are
    settled, since lost panes only widen an interval."""
    if fidelity is None or isinstance(fidelity, Error):
        return True
    return fidelity.met(coverage.at_best())
