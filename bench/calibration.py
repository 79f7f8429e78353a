"""Measures the current speed of this machine: times a fixed piece of plain Python.

Figures of one moment on one machine mean little elsewhere. So this figure is given beside them: on
a machine where it is half, other Python is about half as fast too.
"""

from __future__ import annotations

import time
from statistics import median

STEPS = 1_000_000


def calibrate(times: int = 3) -> float:
    """Millions of steps a second on one core, the median of several measurements."""
    return STEPS / median(_timed() for _ in range(times)) / 1e6


def _timed() -> float:
    """Seconds for a loop of typical Python operations: numbers, calls, dicts."""
    counts: dict[int, int] = {}
    get = counts.get
    began = time.perf_counter()
    for number in range(STEPS):
        key = number & 1023
        counts[key] = get(key, 0) + 1
    return time.perf_counter() - began
