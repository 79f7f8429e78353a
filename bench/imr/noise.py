"""The load of a run on the machine, and the load of other processes during it.

A run is all processes below this one. Unlike `processes.Sampler` it may begin and end while they
go on: the root stays up from one run to the next.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass

from bench.processes import below, busy, processes

EVERY = 0.5


@dataclass(slots=True)
class Shares:
    """The fractions of all cores that were busy, known when the run is over."""

    ours: float = 0.0
    others: float = 0.0

    def row(self) -> dict[str, float]:
        return {"busy": round(self.ours, 3), "cpu_others": round(self.others, 3)}


class Noise:
    """Looks at the processes until it is left."""

    def __init__(self) -> None:
        self._shares = Shares()
        self._before: dict[int, float] = {}
        self._now: dict[int, float] = {}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Shares:
        self._before = {one.pid: one.cpu for one in below(os.getpid(), processes())}
        self._began, self._busy = time.monotonic(), busy()
        self._thread.start()
        return self._shares

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        self._look()
        whole = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        ours = sum(cpu - self._before.get(pid, 0.0) for pid, cpu in self._now.items())
        self._shares.ours = min(1.0, ours / whole)
        self._shares.others = max(0.0, busy() - self._busy - ours) / whole

    def _run(self) -> None:
        while not self._stop.wait(EVERY):
            self._look()

    def _look(self) -> None:
        self._now.update((one.pid, one.cpu) for one in below(os.getpid(), processes()))
