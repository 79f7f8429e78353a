"""Elapsed time, which also counts while the process or the machine sleeps."""

from __future__ import annotations

import time
from typing import NamedTuple

_BOOT = getattr(time, "CLOCK_BOOTTIME", None)


class ClockReading(NamedTuple):
    """A moment by both clocks of a machine: the first may not count its sleep, the second may be
    set back."""

    running: float
    wall: float

    def until(self, later: ClockReading) -> float:
        """The seconds from this moment to a later one: never fewer than have passed."""
        return max(later.running - self.running, later.wall - self.wall)


def moment() -> ClockReading:
    running = time.monotonic() if _BOOT is None else time.clock_gettime(_BOOT)
    return ClockReading(running, time.time())
