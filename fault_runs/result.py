"""What fault runs found, and the table that they make."""

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
    """Slates, output rows and dead letters that the reference has and the run has not."""
    doubled: int
    """Those that the run has more often than the reference."""
    recovery_s: tuple[float, ...] = ()
    """How long each recovery took, where there is something to recover from."""
    note: str = ""
    """What was disturbed; the first difference, if there is one."""
    runs: int = 1
    """How many times the fault struck: each counts as a run of its own."""
    failed: str = ""
    """Why the run did not come to its end; then nothing is known of what it lost."""

    @property
    def clean(self) -> bool:
        """Whether it came to its end with nothing lost and nothing doubled."""
        return not (self.lost or self.doubled or self.failed)


def row_of(fault: str, promise: str, results: Sequence[Result]) -> dict[str, Any]:
    """A fault's row of the table."""
    times = [seconds for result in results for seconds in result.recovery_s]
    return {
        "what": fault,
        "promise": promise,
        "runs": sum(result.runs for result in results if not result.failed),
        "failed": sum(bool(result.failed) for result in results),
        "lost": sum(result.lost for result in results),
        "doubled": sum(result.doubled for result in results),
        "recovery_median_s": round(median(times), 2) if times else None,
        "recovery_max_s": round(max(times), 2) if times else None,
    }


def merged(before: Iterable[Result], fresh: Iterable[Result]) -> list[Result]:
    """Results of two parts of one long run; a run that was repeated counts as it ended last."""
    known = {(result.fault, result.seed): result for result in before}
    known.update({(result.fault, result.seed): result for result in fresh})
    return list(known.values())


def line_of(result: Result, seconds: float) -> str:
    """A run in one line, for whoever waits."""
    found = result.failed or f"lost {result.lost}, doubled {result.doubled}"
    times = ", ".join(f"{one:.1f} s" for one in result.recovery_s[:4])
    more = " ..." if len(result.recovery_s) > 4 else ""
    recovered = f"; recovered in {times}{more}" if times else ""
    note = f" ({result.note})" if result.note else ""
    name = f"{result.fault} --seed {result.seed}"
    return f"{name:<34} {found}{recovered}; {seconds:.0f} s{note}"
