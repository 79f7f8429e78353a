"""A beat: what the tasks of a batch know about time, and how many events one key may have."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.stores.progress import SourceProgress

if TYPE_CHECKING:
    from millstream.engine.final_phase import FinalStep

LEAST_SHARE = 64
"""The fewest events of a key that a batch takes, however long they take."""


@dataclass(frozen=True, slots=True)
class Beat:
    """The batch's identity for commits, the time of day, and how far event time has come."""

    epoch: int
    batch: int
    clock: int
    """The wall time of the batch, as it was planned."""
    horizon: int | None
    """Event time so far: timers up to it fire; in event-time order, events up to it are fed.

    None: there is no horizon yet.
    """
    passed: int | None
    """The horizon of the previous batch."""
    late: int | None = None
    """Events of a source with a time up to this are late; None: none are."""
    earliest: int | None = None
    """The time of the earliest pending event or timer, as known before this batch."""
    shares: dict[str, int] = field(default_factory=dict)
    """The number of events of one key that each update takes in this batch, in arrival order."""
    sweep: int | None = None
    """All events after this batch are later than this: slates expired by then may be swept."""
    sources: dict[str, SourceProgress] | None = None
    """The progress of the sources before this batch.

    Set if the batch may continue to the horizon that its own records bring (`horizon.further`);
    None: it may not.
    """
    started: int | None = None
    """The clock at the start of the run; None: idle time does not count."""
    ended: int | None = None
    """The end of event time after a final phase: timers up to it wait until event time advances."""
    final: FinalStep | None = None
    """This batch's step of a final phase; None: it is not part of one."""

    @property
    def timers(self) -> int | None:
        """Event-time timers up to this fire; None: none do."""
        if self.final is not None or self.horizon is None:
            return None
        return self.horizon if self.ended is None or self.horizon > self.ended else None
