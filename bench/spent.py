"""Measures the cores that each part of a live application used over a while.

The parts are identified by their processes: the server, the driver with its JVM and workers, the
feeder, and the process that asks. All other work of the machine is `others`; `stolen` is the time
that the host of this virtual machine kept for itself. *Waiting* is the time that a part was ready
to work and had no core: on shared cores, this causes slow answers.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

from bench.processes import TICKS, Process, below, busy, processes


class Spent(NamedTuple):
    """Seconds of work, up to a moment."""

    at: float
    busy: float
    stolen: float
    parts: dict[str, float]
    waiting: dict[str, float]
    """Waiting time of the server, and of the process that asks."""


def spent(parts: dict[str, int]) -> Spent:
    """The time that the processes of these parts have used; `driver` includes all below it."""
    waiting = {"server": _waiting(parts["server"]), "load": _waiting(os.getpid())}
    return Spent(time.monotonic(), busy(), _stolen(), by_part(parts, processes()), waiting)


def by_part(parts: dict[str, int], found: list[Process]) -> dict[str, float]:
    """The seconds of each part; below the driver, a JVM and its workers are parts too."""
    own = {**{pid: part for part, pid in parts.items()}, os.getpid(): "load"}
    named = dict.fromkeys(own.values(), 0.0)
    for process in found:
        if process.pid in own:
            named[own[process.pid]] += process.cpu
    driver = parts.get("driver", -1)
    for process in below(driver, found):
        if process.pid not in own:
            part = "jvm" if process.name == "java" else "workers"
            named[part] = named.get(part, 0.0) + process.cpu
    return named


def shares(before: Spent, after: Spent) -> dict[str, float]:
    """The cores that each part used between two moments, 1.0 for one that was always busy."""
    seconds = after.at - before.at
    used = {part: end - before.parts.get(part, 0.0) for part, end in after.parts.items()}
    used["others"] = max(0.0, after.busy - before.busy - sum(used.values()))
    used["stolen"] = after.stolen - before.stolen
    return {part: round(work / seconds, 3) for part, work in used.items()}


def waits(before: Spent, after: Spent) -> dict[str, float]:
    """The share of the time that a part was ready and had no core, over all its threads."""
    seconds = after.at - before.at
    return {
        part: round((end - before.waiting[part]) / seconds, 3)
        for part, end in after.waiting.items()
    }


def _waiting(pid: int) -> float:
    """Seconds that the threads of a process have waited for a core."""
    found = 0.0
    for thread in Path(f"/proc/{pid}/task").iterdir():
        try:
            found += int((thread / "schedstat").read_text().split()[1]) / 1e9
        except OSError:
            continue  # the thread has ended
    return found


def _stolen() -> float:
    return int(Path("/proc/stat").read_text().split(maxsplit=9)[8]) / TICKS
