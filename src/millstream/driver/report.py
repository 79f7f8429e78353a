"""Summaries of a batch and of a run, for display."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # code that only shows a run need not load the code that runs it
    from millstream.driver.batch_plan.planner import Left
    from millstream.stores.progress import Progress


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """The summary of one batch."""

    batch: int
    events: int
    late: int
    dead_letters: int
    seconds: float
    total_events: int
    total_late: int
    total_dead_letters: int
    bytes_done: int
    bytes_total: int
    waiting: int
    horizon: int | None
    """Set in event-time order; None in arrival order, where nothing waits for the horizon."""
    lane: str
    latency: float | None = None
    """Seconds from the arrival of the oldest event that the batch processed to its commit."""
    waited: float = 0.0
    """The part of the latency during which that event waited for the horizon."""
    behind: int = 0
    """Records in event logs that are not taken in yet."""
    slates: int = 0
    total_dropped: int = 0
    """Deliveries past an update's limit that were dropped."""
    total_diverted: int = 0
    total_evicted: int = 0
    """Slates that were evicted because there was no room for them."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """The summary of a run, at its end."""

    batches: int
    events: int
    late: int
    dead_letters: int
    seconds: float
    waiting: int = 0
    """Events that are waiting at the end."""
    dropped: int = 0
    diverted: int = 0
    evicted: int = 0
    timers: bool = False
    """True if event-time timers are left that wait for event time to advance."""
    ended: int | None = None
    """The time at which event time was ended (event-time order): input up to it is now late."""
    retried: int = 0
    """Deliveries of dead letters, and of late, dropped and diverted events, that were retried."""
    dead_input: str | None = None
    """A warning if nearly all input became dead letters."""


def told(
    before: Progress, after: Progress, left: Left, lane: str, seconds: float, *, waits: bool
) -> BatchSummary:
    """Returns the summary of a batch; `waits` is True if events wait for the horizon."""
    fed = after.measured is not None and after.measured.batch == after.batch
    measured, total = after.measured if fed else None, after.total()
    return BatchSummary(
        batch=after.batch,
        events=after.events - before.events,
        late=after.late - before.late,
        dead_letters=after.dead_letters - before.dead_letters,
        seconds=seconds,
        total_events=after.events,
        total_late=after.late,
        total_dead_letters=after.dead_letters,
        bytes_done=left.bytes_done,
        bytes_total=left.bytes_total,
        waiting=after.waiting,
        horizon=after.horizon if waits else None,
        lane=lane,
        latency=None if measured is None else measured.whole / 1e6,
        waited=0.0 if measured is None else measured.waited / 1e6,
        behind=left.records,
        slates=total.slates,
        total_dropped=total.dropped,
        total_diverted=total.diverted,
        total_evicted=total.evicted,
    )
