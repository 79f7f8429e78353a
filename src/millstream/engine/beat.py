"""A beat: what the tasks of a batch are told about time, and how much of it one key may have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.stores.progress import SourceProgress

if TYPE_CHECKING:
    from millstream.engine.final_phase import FinalStep

LEAST_SHARE = 64
"""Events of a key that a batch takes however long they take."""


@dataclass(frozen=True, slots=True)
class Beat:
    """Who commits, the time of day, and how far event time has come."""

    epoch: int
    batch: int
    clock: int
    """The wall time of the batch, as it was planned."""
    horizon: int | None
    """Event time so far: timers up to it fire; in event-time order, events up to it are fed."""
    passed: int | None
    """The horizon of the batch before."""
    late: int | None = None
    """Events of a source up to this are late; None: none are."""
    earliest: int | None = None
    """The earliest event or timer that was known to come, before this batch."""
    shares: dict[str, int] = field(default_factory=dict)
    """How many events of one key each update takes in this batch, in arrival order."""
    sweep: int | None = None
    """Every event after this batch is later: what has expired by then may be swept."""
    sources: dict[str, SourceProgress] | None = None
    """What was known of the sources before this batch, if it may go on to the horizon that its own
    records bring (`horizon.further`); None: it may not."""
    started: int | None = None
    """The clock when the run began; None: idle time does not count."""
    ended: int | None = None
    """Where a final phase has ended event time: timers up to it wait until it goes on."""
    final: FinalStep | None = None
    """What this batch does in a final phase; None: it is not part of one."""

    @property
    def timers(self) -> int | None:
        """Event-time timers up to it fire; None: none do."""
        if self.final is not None or self.horizon is None:
            return None
        return self.horizon if self.ended is None or self.horizon > self.ended else None
