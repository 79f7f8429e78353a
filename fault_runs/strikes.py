"""Moments in a batch at which a process is struck, drawn by seed and detected by the workers.

A moment is a function and the number of an event, or a named point and a batch. In a function the
worker that runs it strikes; at a point, a thread that follows the workers' trace strikes. Either
way a mark with the moment's name records the strike, and it happens once.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

FUNCTIONS = ("numbers", "fold", "keep")
POINTS = ("layer-commit", "between-layers")
RECORDS_A_BATCH = 100
"""The approximate number of the chain's records in one batch."""
Moment = tuple[str, int]
Strike = Callable[[int], bool]
"""Strikes for a worker's process id; False if there was nothing to strike."""


def drawn(random: Random, lane: str, count: int, batches: int) -> list[Moment]:
    """Draws `count` moments, in different batches."""
    # In one task, no point lies between layers.
    points = POINTS if lane == "shuffled" else POINTS[:1]
    moments: list[Moment] = []
    for batch in sorted(random.sample(range(batches), count)):
        name = random.choice([*FUNCTIONS, *points])
        number = batch * RECORDS_A_BATCH + random.randrange(RECORDS_A_BATCH)
        moments.append((name, number if name in FUNCTIONS else batch))
    return moments


def strike_in(
    strike: Strike, moments: Sequence[Moment], marks: str, function: str, number: int
) -> None:
    """In a worker: strike at the first event of the function from a moment on."""
    for name, least in moments:
        mark = os.path.join(marks, f"{name}-{least}")
        if name == function and number >= least and _is_first(mark) and not strike(os.getpid()):
            os.unlink(mark)


def in_functions(moments: Sequence[Moment]) -> list[Moment]:
    return [moment for moment in moments if moment[0] in FUNCTIONS]


def _is_first(mark: str) -> bool:
    """True if the mark did not exist; creates it."""
    try:
        os.close(os.open(mark, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def struck_at(marks: Path) -> list[float]:
    """The times of the strikes, in seconds since the epoch."""
    return sorted(mark.stat().st_mtime for mark in marks.iterdir())


def recoveries(marks: Path, commits: Sequence[float]) -> tuple[float, ...]:
    """The seconds from each strike to the next commit."""
    return tuple(min(c for c in commits if c > at) - at for at in struck_at(marks))


class Watch(threading.Thread):
    """Follows the points that workers pass, and strikes when one passes a moment's point."""

    def __init__(self, strike: Strike, moments: Sequence[Moment], marks: Path, trace: Path) -> None:
        super().__init__(daemon=True)
        self._strike, self._trace, self._marks = strike, trace, marks
        self._moments = [moment for moment in moments if moment[0] in POINTS]
        self._done = threading.Event()
        self._from = trace.stat().st_size if trace.exists() else 0

    def __enter__(self) -> None:
        self.start()

    def __exit__(self, *raised: object) -> None:
        self._done.set()
        self.join()

    def run(self) -> None:
        while self._moments and not self._done.wait(0.001):
            for point, batch, process in self._passed():
                due = [m for m in self._moments if m[0] == point and batch >= m[1]][:1]
                if due and self._strike(process):
                    (self._marks / f"{point}-{due[0][1]}").touch()
                    self._moments.remove(due[0])

    def _passed(self) -> list[tuple[str, int, int]]:
        """The lines added to the trace since the last call; only whole lines."""
        if not self._trace.exists():
            return []
        with self._trace.open("rb") as trace:
            trace.seek(self._from)
            lines = trace.read().split(b"\n")[:-1]
        self._from += sum(len(line) + 1 for line in lines)
        words = (line.decode().split() for line in lines)
        return [(point, int(batch), int(process)) for point, batch, process in words]
