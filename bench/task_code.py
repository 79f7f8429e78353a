"""The code of a batch's tasks alone, without Spark: processor time on one core, event by event.

    python -m bench.task_code [APP ...] [--events 500000] [--keys 100000] [--order event-time]
        [--lines]

Runs the tasks of the shuffled lane one after the other in this process: reading, routing, frames,
cells, and the commit to LMDB. The first batch makes the slates and the following ones are measured;
the best one is reported, in nanoseconds of processor time an event, beside a loop in plain Python
over the same files. In event-time order a batch feeds what the one before it has read. The events
of `hot_topics` are tweets, about as many a day as in `bench.in_turn`. `--lines` shows on which
lines the time was spent (the interpreter's own profiling slows calls down, so a signal samples the
lines instead).

The figures of two commits are comparable if they alternate on a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import gc
import itertools
import resource
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import get_args

import msgspec

from bench import data
from bench.on_millstream import APPS
from millstream.driver.batch_plan.next_beat import next_beat
from millstream.driver.job import BatchJob, Row, SourceSplit
from millstream.driver.job_store import close_stores
from millstream.driver.stages import first_stage, layer_stage, reports_in
from millstream.engine.plan import Plan
from millstream.engine.progress import advanced
from millstream.model.slate import Table
from millstream.model.workflow import Order
from millstream.sources.formats import InputSplit
from millstream.stores.home import Home
from millstream.stores.progress import Progress

WORK = Path(tempfile.gettempdir()) / "millstream-bench"
MEASURED = 3
"""The number of batches that are measured."""
TASKS, SHARDS = 2, 16


TWEETS, TWEETS_A_DAY = "hot_topics", 100_000


def plain_loop(path: Path, field: str) -> dict[str, int]:
    """Counts in a dict: the cost of the application's function without a framework."""
    decode = msgspec.json.Decoder().decode
    slates: dict[str, int] = {}
    with open(path, "rb") as file:
        for line in file:
            key = decode(line)[field]
            slates[key] = slates.get(key, 0) + 1
    return slates


class Tasks:
    """Runs the batches of one application."""

    def __init__(self, name: str, order: str, folder: Path) -> None:
        self._plan = Plan(APPS[name](order).workflow(), SHARDS, frozenset())
        kinds = {
            update.name: "table" if update.slate is Table else update.slate.__name__
            for update in self._plan.workflow.updates
        }
        shutil.rmtree(folder, ignore_errors=True)
        self._home = Home.make(folder, "bench", SHARDS, kinds)
        self._attempts = itertools.count()
        self._progress = Progress()
        self.reading = self.layers = 0.0

    def batch(self, number: int, path: Path) -> None:
        size = path.stat().st_size
        half = size // TASKS
        splits = [
            SourceSplit(source.name, "json", InputSplit(str(path), start, stop))
            for source in self._plan.workflow.sources
            for start, stop in ((0, half), (half, size))
        ]
        groups = tuple((split,) for split in splits)
        beat = next_beat(
            self._plan.workflow,
            self._progress,
            epoch=1,
            batch=number,
            clock=time.time_ns() // 1_000,
            started=None,
            final=False,
            lane="shuffled",
        )
        job = BatchJob(beat, self._home.path, "bench", SHARDS, TASKS, groups)
        began = time.process_time()
        rows: list[Row] = []
        for task in range(TASKS):
            rows += first_stage(self._plan, job, task, next(self._attempts))
        self.reading = time.process_time() - began
        began, upstream = time.process_time(), TASKS
        for layer in range(len(self._plan.layers)):
            inboxes: list[list[Row]] = [[] for _ in range(TASKS)]
            for row in rows:
                inboxes[row[0]].append(row)
            rows = []
            for task, inbox in enumerate(inboxes):
                attempt = next(self._attempts)
                rows += layer_stage(self._plan, job, layer, upstream, task, attempt, inbox)
        self.layers = time.process_time() - began
        reports = reports_in(rows)
        assert sum(report.dead_letters for report in reports) == 0
        self._progress = advanced(self._progress, reports, number, beat.clock, {})


@contextmanager
def sampled(lines: Counter[str], calls: Counter[str]) -> Iterator[None]:
    """Samples the lines that run, and the functions that called them."""

    def sample(_: int, frame: FrameType | None) -> None:
        seen = set()
        if frame is not None:
            lines[_place(frame, line=True)] += 1
        while frame is not None:
            if (place := _place(frame, line=False)) not in seen:
                seen.add(place)
                calls[place] += 1
            frame = frame.f_back

    before = signal.signal(signal.SIGPROF, sample)
    signal.setitimer(signal.ITIMER_PROF, 0.002, 0.002)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _place(frame: FrameType, *, line: bool) -> str:
    code = frame.f_code
    where = f"{'/'.join(Path(code.co_filename).parts[-2:])} {code.co_qualname}"
    return f"{where}:{frame.f_lineno}" if line else where


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("apps", nargs="*", default=["counter"], choices=list(APPS))
    parser.add_argument("--events", type=int, default=500_000)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--order", default="arrival", choices=get_args(Order))
    parser.add_argument("--lines", action="store_true")
    given = parser.parse_args()
    gc.disable()  # as in a worker
    for name in given.apps:
        files = _files(name, given.events, given.keys)
        field = "user" if name == TWEETS else "key"
        loop = min(_looped(path, field) for path in files[1:]) / given.events * 1e9
        print(f"plain loop: {loop:.0f} ns an event", flush=True)
        _report(name, given.order, files, given.events, loop, lines=given.lines)


def _files(name: str, events: int, keys: int) -> list[Path]:
    """The files of the batches for an application."""
    batches = MEASURED + 1
    if name == TWEETS:
        folder = data.tweets(WORK, events * batches, events * batches / TWEETS_A_DAY, batches)
    else:
        folder = data.uniform(WORK, events * batches, keys, batches)
    return sorted(folder.iterdir())


def _looped(path: Path, field: str) -> float:
    """The processor time of the plain loop over a file."""
    began = time.process_time()
    plain_loop(path, field)
    return time.process_time() - began


def _report(
    name: str, order: str, files: list[Path], events: int, loop: float, *, lines: bool
) -> None:
    tasks = Tasks(name, order, WORK / "task-code")
    tasks.batch(0, files[0])
    taken: list[tuple[float, float, float]] = []
    by_line, by_call = Counter[str](), Counter[str]()
    for number, path in enumerate(files[1:], 1):
        gc.collect()
        if lines:
            with sampled(by_line, by_call):
                tasks.batch(number, path)
        else:
            tasks.batch(number, path)
        reading, layers = tasks.reading / events * 1e9, tasks.layers / events * 1e9
        taken.append((reading + layers, reading, layers))
    close_stores()
    whole, reading, layers = min(taken)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"{name}: {whole:.0f} ns an event ({reading:.0f} reading, {layers:.0f} layers), "
        f"{1e9 / whole:,.0f} events/s, {loop / whole:.2f} of the loop, {memory} MiB",
        flush=True,
    )
    for counted in (by_call, by_line) if lines else ():
        total = max(1, sum(by_line.values()))
        print(f"\nof {total} samples:")
        for place, count in counted.most_common(45):
            print(f"  {count / total:6.1%}  {count / total * whole:6.0f} ns  {place}")


if __name__ == "__main__":
    main()
