"""The processor time and the memory of a run's processes, from /proc.

The processor time is that of all processes that ever were below the started ones: the last that was
seen of each, or what the system says of those that have ended, whichever is more. Memory is the
highest sum at one moment: resident (shared pages count in each process), and of their own, which
leaves out files that are mapped into memory.
"""

from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Sequence

from bench.processes import below, busy, processes

EVERY = 0.25


class Footprint:
    """Samples the processes below some, until the block is left."""

    def __init__(self, roots: Sequence[int]) -> None:
        self._roots = roots
        self._times: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.resident_mib = self.own_mib = self.cpu_seconds = self.cpu_others = 0.0

    def __enter__(self) -> Footprint:
        self._began, self._busy, self._ended_before = time.monotonic(), busy(), _of_ended()
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        self.cpu_seconds = max(sum(self._times.values()), _of_ended() - self._ended_before)
        whole = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        self.cpu_others = max(0.0, busy() - self._busy - self.cpu_seconds) / whole

    def _run(self) -> None:
        while True:
            found = processes()
            family = [process for root in self._roots for process in below(root, found)]
            self.resident_mib = max(self.resident_mib, sum(p.resident for p in family))
            self.own_mib = max(self.own_mib, sum(p.anonymous for p in family))
            self._times.update((p.pid, p.cpu) for p in family)
            if self._stop.wait(EVERY):
                return


def _of_ended() -> float:
    """Seconds of all processes below this one that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
