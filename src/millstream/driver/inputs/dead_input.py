"""Detects that nearly all input becomes dead letters, which means that the application is wrong.

A record whose time has another unit than its source says is rightly a dead letter. But if every
record is one, the run must not end as if it had succeeded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from millstream.engine.progress import Report
from millstream.stores.progress import Progress

NEARLY_ALL = 0.9
ENOUGH = 100
"""The fewest deliveries of a batch for which a run that continues shows a warning."""


def dead_share(before: Progress, after: Progress) -> tuple[int, int]:
    """Counts the deliveries between two commits: those that became dead letters, and all."""
    old, new = before.total(), after.total()
    owed = new.taken + new.retried - old.taken - old.retried
    return new.dead_letters - old.dead_letters, owed


def dead_sentence(dead: int, owed: int, error: str, *, retriable: bool = True) -> str | None:
    """Returns a warning if nearly all became dead letters; `error` is the error of one of them.

    >>> dead_sentence(1, 2, "KeyError: 'user'")
    >>> dead_sentence(9, 10, "KeyError: 'user'")
    "9 of 10 deliveries became dead letters, such as: KeyError: 'user'; mend the application or \
the input, then retry the letters with `millstream deadletters retry`"
    >>> dead_sentence(1, 1, "the file must be whole", retriable=False)
    '1 of 1 deliveries became dead letters, such as: the file must be whole; mend the application \
or the input; such a letter cannot be retried'
    """
    if not owed or dead < NEARLY_ALL * owed:
        return None
    such = f", such as: {error}" if error else ""
    then = ", then retry the letters with `millstream deadletters retry`"
    return (
        f"{dead:,} of {owed:,} deliveries became dead letters{such}; mend the application or "
        f"the input{then if retriable else '; such a letter cannot be retried'}"
    )


class DeadInput:
    """Warns once that nearly all of a batch became dead letters, and again after a good batch."""

    def __init__(self) -> None:
        self._said = False
        self._error, self._retriable = "", True

    def note(self, reports: Sequence[Report]) -> None:
        """Takes the error of a dead letter from the reports of a batch."""
        for report in reports:
            if report.error:
                self._error, self._retriable = report.error, report.retriable
                return

    def sentence(self, before: Progress, after: Progress) -> str | None:
        """Returns the warning about all that came between two commits, if there is one."""
        dead, owed = dead_share(before, after)
        return dead_sentence(dead, owed, self._error, retriable=self._retriable)

    def sentences(self, before: Progress, after: Progress) -> Iterator[str]:
        """Yields the warning about a batch."""
        owed = dead_share(before, after)[1]
        sentence = self.sentence(before, after) if owed >= ENOUGH else None
        if sentence is not None and not self._said:
            yield f"batch {after.batch}: {sentence}"
        if owed:
            self._said = sentence is not None
