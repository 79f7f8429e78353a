"""Watches a run: the resources of each worker's processes, and the commits with their times.

The parts are told by the processes that lead them: each worker of the cluster (its own JVM, its
executor's JVM, the executor's Python), the driver (`millstream run`, its JVM, its server), the
master, and the load (this process and whoever sends). All else that the machine does is `others`.
A process that has ended keeps what it had used. Memory is anonymous memory: what the processes have
for themselves, without the store's pages, which the system would give up at once.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.processes import Process, below, busy, processes
from millstream.errors import MillstreamError
from millstream.stores.soft import read_committed

LOOK, SAMPLE = 0.02, 0.5
"""Seconds between two looks at the commits, and between two samples of the processes."""


class Commit(NamedTuple):
    """A committed batch: its time, and the words processed until then."""

    at: float
    batch: int
    words: int
    deliveries: int
    """Events that Eleven and Three have taken."""
    idle: bool
    """True if nothing waits in the store for a later batch."""


class Sample(NamedTuple):
    """The resources used until a moment, by part: seconds of work so far, and the memory then, in
    MiB."""

    at: float
    busy: float
    seconds: dict[str, float]
    memory: dict[str, float]


class Watch:
    """Watches one run until it is left. `parts` gives the leading process of each part."""

    def __init__(self, store: Path, parts: Callable[[], dict[str, int]]) -> None:
        self._store, self._parts = store, parts
        self.commits: list[Commit] = []
        self.samples: list[Sample] = []
        self.part_of: dict[int, str] = {}
        """The part that each process seen belongs to."""
        self._seconds: dict[int, float] = {}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._repeat, args=given, daemon=True)
            for given in ((self._look, LOOK), (self._sample, SAMPLE))
        ]

    def __enter__(self) -> Watch:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
        self._look()
        self._sample()

    @property
    def last(self) -> Commit | None:
        return self.commits[-1] if self.commits else None

    def _repeat(self, what: Callable[[], None], every: float) -> None:
        what()
        while not self._stop.wait(every):
            what()

    def _look(self) -> None:
        try:
            found = read_committed(self._store)
        except (MillstreamError, OSError):
            return  # there is no store yet
        if found.batch < 0 or (self.commits and self.commits[-1].batch == found.batch):
            return
        taken = sum(found.counts(name).processed for name in ("Eleven", "Three"))
        idle = not (found.waiting or found.pending.held)
        self.commits.append(Commit(found.written / 1e6, found.batch, found.events, taken, idle))

    def _sample(self) -> None:
        found, memory = processes(), dict[str, float]()
        for part, leader in self._parts().items():
            for one in _own(leader, found):
                self.part_of.setdefault(one.pid, part)
                self._seconds[one.pid] = one.cpu
                if self.part_of[one.pid] == part:
                    memory[part] = memory.get(part, 0.0) + one.anonymous
        seconds = dict.fromkeys(self.part_of.values(), 0.0)
        for pid, cpu in self._seconds.items():
            seconds[self.part_of[pid]] += cpu
        self.samples.append(Sample(time.time(), busy(), seconds, memory))


def _own(leader: int, found: list[Process]) -> list[Process]:
    """The processes of a part. One that a JVM has just forked still looks like the JVM itself."""
    family = below(leader, found)
    return [one for one in family if one.name == "java" or one.name.startswith("python")]


class Used(NamedTuple):
    """The resources that a part used over a period."""

    cores: float
    """1.0 for one core that was always busy."""
    memory: float
    """At most, in MiB; 0 if it was dead all the time."""


def used(samples: Sequence[Sample], since: float, until: float) -> dict[str, Used]:
    """Returns the resources that each part used between two moments, and those of `others`."""
    first, last = _at(samples, since), _at(samples, until)
    span = max(last.at - first.at, 1e-9)
    between = [one for one in samples if first.at < one.at <= last.at]
    found = {}
    for part, end in last.seconds.items():
        cores = (end - first.seconds.get(part, 0.0)) / span
        memory = max((one.memory.get(part, 0.0) for one in between), default=0.0)
        found[part] = Used(cores, memory)
    ours = sum(one.cores for one in found.values())
    found["others"] = Used(max(0.0, (last.busy - first.busy) / span - ours), 0.0)
    return found


def _at(samples: Sequence[Sample], moment: float) -> Sample:
    """The last sample up to a moment; the first, if there is none."""
    return samples[max(0, bisect_right([one.at for one in samples], moment) - 1)]


def rate_between(commits: Sequence[Commit], since: float, until: float) -> float:
    """Words a second over the batches that were committed within a time.

    Counted from the commit before them, so that each batch counts with the whole of its time.
    """
    ended = [one for one in commits if since < one.at <= until]
    before = [one for one in commits if one.at <= since]
    start = before[-1] if before else (ended.pop(0) if ended else None)
    if start is None or not ended:
        return 0.0
    return (ended[-1].words - start.words) / (ended[-1].at - start.at)


def tasks_by_part(trace: Path, part_of: dict[int, str]) -> Counter[str]:
    """Counts the layers that a Python of each part has committed (`millstream.engine.points`)."""
    found = Counter[str]()
    if trace.exists():
        for line in trace.read_text().splitlines():
            point, _, process = line.split()
            if point == "layer-commit" and int(process) in part_of:
                found[part_of[int(process)]] += 1
    return found
