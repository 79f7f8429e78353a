"""Accounts for every delivery: those that each function was owed, and what became of them.

A delivery is one event to one function. Deliveries that a function is owed are counted where events
are put onto streams (or refused, or found late); their outcomes are counted where events are
processed, dropped, diverted, kept or failed. So the two sides are counted separately, and must
agree after every batch:

    taken in + retried = processed + dropped + diverted + waiting + dead letters + late

A retried letter is one more delivery, with an outcome of its own. Its first delivery stays in the
counts, which never decrease.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from millstream.stores.progress import Progress


class Deliveries(NamedTuple):
    """The deliveries to one function, or to all of them, since the store was made."""

    taken: int
    processed: int
    dropped: int
    diverted: int
    waiting: int
    """Waiting for the horizon, for room in a batch, or as feedback for the next batch."""
    dead_letters: int
    late: int
    retried: int = 0
    """Repeated deliveries, of events that had failed, were late or were turned away."""

    @property
    def residual(self) -> int:
        """Deliveries that are not accounted for: always 0, unless Millstream has a bug."""
        return self.taken + self.retried - sum(self[1:7])


def deliveries_to(progress: Progress, function: str) -> Deliveries:
    """The deliveries to a function."""
    failed = progress.failed.get(function, 0) - progress.timers_failed.get(function, 0)
    return Deliveries(
        taken=progress.taken.get(function, 0),
        processed=progress.processed.get(function, 0),
        dropped=progress.dropped.get(function, 0),
        diverted=progress.diverted.get(function, 0),
        waiting=progress.waiting_at.get(function, 0) + progress.feedback_at.get(function, 0),
        dead_letters=failed + progress.refused_at.get(function, 0),
        late=progress.late_at.get(function, 0),
        retried=progress.retried.get(function, 0),
    )


def together(functions: Iterable[Deliveries]) -> Deliveries:
    """The sum over functions."""
    columns = zip(*functions, strict=True)
    totals = [sum(column) for column in columns]
    return Deliveries(*totals) if totals else Deliveries(0, 0, 0, 0, 0, 0, 0, 0)
