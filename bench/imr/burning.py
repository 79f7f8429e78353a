"""The other work on a node: it takes as much of the node's core as it gets. Called in a process of
its own (`apart`)."""

from __future__ import annotations

import os
import time

STEPS = 20_000


def burn(cores: list[int], until: float, stop: str) -> dict[str, float]:
    """Works until a time, or until `stop` exists. Returns the amount of work, and its duration."""
    if cores:
        os.sched_setaffinity(0, cores)
    parent, done, began = os.getppid(), 0, time.time()
    while time.time() < until and os.getppid() == parent and not os.path.exists(stop):
        total = 0
        for number in range(STEPS):
            total += number * number & 7
        done += 1
    seconds = time.time() - began
    return {"done": done, "seconds": seconds, "per_s": done / max(seconds, 1e-9)}
