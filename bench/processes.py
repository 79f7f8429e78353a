"""Samples the usage of a run's processes from /proc: memory and processor time.

The driver is the process that was started, with its JVM; every other Python below them is a worker.
(A process that the JVM has just forked still shows the JVM's memory as its own: it is not counted.)
Memory is resident memory, so it includes pages of the store that the system can reclaim at once;
`anonymous` leaves those out.
"""

from __future__ import annotations

import os
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

EVERY = 0.2
TICKS = os.sysconf("SC_CLK_TCK")
_MIB = 1 / 1024


class Process(NamedTuple):
    """A process: its parent, its name, its memory in MiB and its time in seconds."""

    pid: int
    parent: int
    name: str
    resident: float
    anonymous: float
    cpu: float


@dataclass(slots=True)
class Usage:
    """The peaks over a run, in MiB, and the share of the machine that went to others."""

    driver_python: float = 0.0
    driver_jvm: float = 0.0
    driver: float = 0.0
    workers: float = 0.0
    workers_anonymous: float = 0.0
    worker: float = 0.0
    """The largest single worker."""
    cpu_seconds: float = 0.0
    """Processor time of all processes of the run."""
    cpu_ours: float = 0.0
    cpu_others: float = 0.0

    def add(self, root: int, family: list[Process]) -> None:
        """Add one sample of the processes below `root`."""
        python = sum(p.resident for p in family if p.pid == root)
        jvm = sum(p.resident for p in family if p.name == "java")
        workers = [p for p in family if p.pid != root and p.name.startswith("python")]
        self.driver_python = max(self.driver_python, python)
        self.driver_jvm = max(self.driver_jvm, jvm)
        self.driver = max(self.driver, python + jvm)
        self.workers = max(self.workers, sum(p.resident for p in workers))
        self.workers_anonymous = max(self.workers_anonymous, sum(p.anonymous for p in workers))
        self.worker = max(self.worker, max((p.resident for p in workers), default=0.0))


@dataclass
class Sampler:
    """Samples the processes below one, until the block is left."""

    root: int
    usage: Usage = field(default_factory=Usage)

    def __post_init__(self) -> None:
        self._stop = threading.Event()
        self._times: dict[int, float] = {}
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Usage:
        self._began, self._busy = time.monotonic(), busy()
        self._thread.start()
        return self.usage

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        whole = (time.monotonic() - self._began) * (os.cpu_count() or 1)
        ours = sum(self._times.values())
        self.usage.cpu_seconds, self.usage.cpu_ours = ours, ours / whole
        self.usage.cpu_others = max(0.0, busy() - self._busy - ours) / whole

    def _run(self) -> None:
        while not self._stop.wait(EVERY):
            family = below(self.root, processes())
            self.usage.add(self.root, family)
            self._times.update((p.pid, p.cpu) for p in family)


def below(root: int, found: list[Process]) -> list[Process]:
    """The process `root` and all that descend from it."""
    children: dict[int, list[Process]] = {}
    for process in found:
        children.setdefault(process.parent, []).append(process)
    family = [process for process in found if process.pid == root]
    for process in family:  # grows as it is walked
        family.extend(children.get(process.pid, ()))
    return family


def processes() -> list[Process]:
    """All processes of the machine."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                found.append(process(int(name)))
            except (OSError, ValueError, IndexError, KeyError):
                continue  # the process has ended, or has no memory of its own
    return found


def process(pid: int) -> Process:
    """Reads a process."""
    head, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
    fields = rest.split()
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    status = dict(line.split(":", 1) for line in lines)
    return Process(
        pid,
        int(fields[1]),
        head.partition("(")[2],
        int(status["VmRSS"].split()[0]) * _MIB,
        int(status["RssAnon"].split()[0]) * _MIB,
        (int(fields[11]) + int(fields[12])) / TICKS,
    )


def busy() -> float:
    """Seconds that all cores together have worked (user, nice, system, interrupts)."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _wait, irq, softirq = map(int, fields[:7])
    return (user + nice + system + irq + softirq) / TICKS
