"""What a run tells whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # whoever shows a run need not load what runs it
    from millstream.driver.planner import Left
    from millstream.stores.progress import Progress


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """After each batch."""

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
    """In event-time order; None in arrival order, where nothing waits for it."""
    lane: str
    latency: float | None = None
    """Seconds from the coming in of the batch's oldest record to its commit."""
    behind: int = 0
    """Records in event logs that are still to be taken."""
    slates: int = 0
    total_dropped: int = 0
    """Deliveries past an update's limit that were dropped."""
    total_diverted: int = 0
    total_evicted: int = 0
    """Slates that went because there was no room for them."""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """At the end: what this run did."""

    batches: int
    events: int
    late: int
    dead_letters: int
    seconds: float
    waiting: int = 0
    """Events that wait at the end."""
    dropped: int = 0
    diverted: int = 0
    evicted: int = 0
    timers: bool = False
    """Whether event-time timers wait at the end for event time to go on."""
    ended: int | None = None
    """Where event time was ended, in event-time order: what comes later up to it is late."""


def told(
    before: Progress, after: Progress, left: Left, lane: str, seconds: float, *, waits: bool
) -> BatchSummary:
    """What a batch did; `waits` says whether events wait for the horizon."""
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
        latency=after.latency / 1e6 if after.events > before.events and after.latency else None,
        behind=left.records,
        slates=sum(after.slates.values()),
        total_dropped=sum(after.dropped.values()),
        total_diverted=sum(after.diverted.values()),
        total_evicted=sum(after.evicted.values()),
    )
