"""The time of day in microseconds, the unit of all times."""

from __future__ import annotations

import time


def wall_clock() -> int:
    """Returns the microseconds since the epoch."""
    return time.time_ns() // 1_000
