"""Every delivery accounted for: what each function was owed, and what became of it.

A delivery is one event to one function. What a function is owed is counted where events are put
onto streams (or refused, or found late), what became of it where events are processed, dropped,
diverted, kept or failed. So the two sides are counted apart, and must agree after every batch:

    taken in = processed + dropped + diverted + waiting + dead letters + late
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
    """For the horizon, for a batch that is not too full, or as feedback for the next one."""
    dead_letters: int
    late: int

    @property
    def residual(self) -> int:
        """What is not accounted for; 0, or there is a fault in Millstream."""
        return self.taken - sum(self[1:])


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
    )


def together(functions: Iterable[Deliveries]) -> Deliveries:
    """The sum over functions."""
    columns = zip(*functions, strict=True)
    totals = [sum(column) for column in columns]
    return Deliveries(*totals) if totals else Deliveries(0, 0, 0, 0, 0, 0, 0)
