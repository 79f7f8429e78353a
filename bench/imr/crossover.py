"""When it pays to move a window on by `uncombine` rather than to merge its panes (iMR, 2.3.2).

The root's own functions (`merged`), over a table in memory; each way is forced, whatever
the slide. The time is CPU time of putting a window together, once the first one is there.
"""

from __future__ import annotations

import time
from bisect import bisect_left, insort
from collections.abc import Iterator
from random import Random
from statistics import median
from typing import Any
from unittest.mock import patch

from bench.bench import Bench
from bench.imr.plan import Crossover
from millstream.codec import decode_value, encode_value
from millstream.model.slate import Table
from millstream.windows.board.pane_marks import tally
from millstream.windows.job import Job
from millstream.windows.root import merged as merging

Row = dict[str, Any]


class Stored:
    """A table's entries in memory, as a store has them: what was committed, in order."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._values: dict[str, bytes] = {}

    def get(self, entry: str) -> bytes | None:
        return self._values.get(entry)

    def scan(self, start: str, stop: str | None, reverse: bool) -> Iterator[tuple[str, bytes]]:
        first = bisect_left(self._names, start)
        last = len(self._names) if stop is None else bisect_left(self._names, stop)
        names = self._names[first:last]
        for name in reversed(names) if reverse else names:
            yield name, self._values[name]

    def commit(self, changes: dict[str, bytes | None]) -> None:
        for name, value in changes.items():
            if value is None:
                if self._values.pop(name, None) is not None:
                    del self._names[bisect_left(self._names, name)]
            else:
                if name not in self._values:
                    insort(self._names, name)
                self._values[name] = value


def add(a: int, b: int) -> int:
    return a + b


def subtract(a: int, b: int) -> int:
    return a - b


def nothing(record: Any) -> list[tuple[str, int]]:
    return []


def run(bench: Bench, plan: Crossover) -> list[Row]:
    """A row for each number of slides in a range, both ways."""
    rows = []
    for slides in plan.slides:
        anew = _seconds(plan, slides, moves=False)
        moved = _seconds(plan, slides, moves=True)
        what = f"slide 1/{slides} of the range"
        rows.append({"what": what, "slides": slides, "anew_ms": anew, "moved_ms": moved})
        rows[-1]["ratio"] = moved / anew
        bench.say(f"    {what}: merged {anew:.2f} ms, moved {moved:.2f} ms")
    return rows


def _seconds(plan: Crossover, slides: int, moves: bool) -> float:
    """Milliseconds to put a window together, the median over windows one after the other."""
    job = Job(map=nothing, combine=add, uncombine=subtract, by="records", range=slides, slide=1)
    stored, random, times = Stored(), Random(slides), list[float]()
    keys = [f"k{number}" for number in range(plan.keys)]
    nodes = [f"n{number}" for number in range(plan.nodes)]
    with patch.object(merging, "moves", lambda job: moves):
        for window in range(plan.windows):
            table = Table(stored, encode_value, decode_value)
            for pane in range(slides) if not window else (window + slides - 1,):
                table[tally(pane)] = [len(nodes), len(nodes), 0]
                for node in nodes:
                    found = {key: random.randrange(9) for key in keys}
                    merging.put(table, pane, found, [node])
            stored.commit(table.changes())
            table = Table(stored, encode_value, decode_value)
            began = time.process_time()
            values = merging.merged(job, table, window)
            times.append(1_000 * (time.process_time() - began))
            assert len(values) == plan.keys
            stored.commit(table.changes())
    return median(times[1:])
