"""What a run tells whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass


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


@dataclass(frozen=True, slots=True)
class RunSummary:
    """At the end: what this run did."""

    batches: int
    events: int
    late: int
    dead_letters: int
    seconds: float
    waiting: int = 0
    """Events that wait for the horizon at the end."""
