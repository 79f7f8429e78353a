"""The results of fault runs, and the rows of their table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any


@dataclass(frozen=True, slots=True)
class Result:
    """One run of a scenario: `(fault, seed)` replays it."""

    fault: str
    seed: int
    lost: int
    """Slates, output rows and dead letters of the reference that the run does not have."""
    doubled: int
    """Slates, output rows and dead letters that the run has more often than the reference."""
    recovery_s: tuple[float, ...] = ()
    """The duration of each recovery, for faults that need one."""
    note: str = ""
    """The disturbance, and the first difference if there is one."""
    runs: int = 1
    """The number of times that the fault struck: each counts as a run of its own."""
    failed: str = ""
    """The reason why the run did not finish; then it is not known what it lost."""
    takeover_s: tuple[float, ...] = ()
    """For each lost leader: seconds from the end of its lease to the first batch of its standby."""

    @property
    def clean(self) -> bool:
        """True if the run finished with nothing lost and nothing doubled."""
        return not (self.lost or self.doubled or self.failed)


def row_of(fault: str, promise: str, results: Sequence[Result]) -> dict[str, Any]:
    """A fault's row of the table."""
    times = [seconds for result in results for seconds in result.recovery_s]
    takeovers = [seconds for result in results for seconds in result.takeover_s]
    return {
        "what": fault,
        "promise": promise,
        "runs": sum(result.runs for result in results if not result.failed),
        "failed": sum(bool(result.failed) for result in results),
        "lost": sum(result.lost for result in results),
        "doubled": sum(result.doubled for result in results),
        "recovery_median_s": round(median(times), 2) if times else None,
        "recovery_max_s": round(max(times), 2) if times else None,
        **({"takeover_max_s": round(max(takeovers), 2)} if takeovers else {}),
    }


def merged(before: Iterable[Result], fresh: Iterable[Result]) -> list[Result]:
    """Merges the results of two parts of one series; of a repeated run, the last result counts."""
    known = {(result.fault, result.seed): result for result in before}
    known.update({(result.fault, result.seed): result for result in fresh})
    return list(known.values())


def line_of(result: Result, seconds: float) -> str:
    """A run's result in one line, for the terminal."""
    found = result.failed or f"lost {result.lost}, doubled {result.doubled}"
    times = ", ".join(f"{one:.1f} s" for one in result.recovery_s[:4])
    more = " ..." if len(result.recovery_s) > 4 else ""
    recovered = f"; recovered in {times}{more}" if times else ""
    note = f" ({result.note})" if result.note else ""
    name = f"{result.fault} --seed {result.seed}"
    return f"{name:<34} {found}{recovered}; {seconds:.0f} s{note}"
