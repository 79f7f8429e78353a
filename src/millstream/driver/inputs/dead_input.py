"""Detects that nearly all input becomes dead letters, which means that the application is wrong.

A record whose time has another unit than its source says is rightly a dead letter. But if every
record is one, the run must not end as if it had succeeded.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.stores.progress import Progress

NEARLY_ALL = 0.9
ENOUGH = 100
"""The fewest deliveries of a batch for which a run that continues shows a warning."""


def dead_share(before: Progress, after: Progress) -> tuple[int, int]:
    """Counts the deliveries between two commits: those that became dead letters, and all."""
    old, new = before.total(), after.total()
    owed = new.taken + new.retried - old.taken - old.retried
    return new.dead_letters - old.dead_letters, owed


def dead_sentence(dead: int, owed: int, error: str) -> str | None:
    """Returns a warning if nearly all became dead letters; `error` is the error of one of them.

    >>> dead_sentence(1, 2, "KeyError: 'user'")
    >>> dead_sentence(9, 10, "KeyError: 'user'")
    "9 of 10 deliveries became dead letters, such as: KeyError: 'user'; mend the application or \
the input, then retry the letters with `millstream deadletters retry`"
    """
    if not owed or dead < NEARLY_ALL * owed:
        return None
    such = f", such as: {error}" if error else ""
    return (
        f"{dead:,} of {owed:,} deliveries became dead letters{such}; mend the application or "
        "the input, then retry the letters with `millstream deadletters retry`"
    )


class DeadInput:
    """Warns once that nearly all of a batch became dead letters, and again after a good batch."""

    def __init__(self) -> None:
        self.error = ""
        """The error of the last dead letter."""
        self._said = False

    def sentences(self, before: Progress, after: Progress) -> Iterator[str]:
        dead, owed = dead_share(before, after)
        sentence = dead_sentence(dead, owed, self.error) if owed >= ENOUGH else None
        if sentence is not None and not self._said:
            yield f"batch {after.batch}: {sentence}"
        if owed:
            self._said = sentence is not None
