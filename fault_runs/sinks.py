"""A file sink that fails for a while, and one that is ten times slower than the batches.

Time is compressed: `sink_patience` is ten minutes by default. Here it is a second in the run that
must give up, and half a minute in the run that must wait; the sink then fails for two to four
seconds, which stands for about a minute (a factor of twenty).
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from fault_runs.hooks import at_points
from fault_runs.ledger import (
    OnReport,
    differing,
    encoded,
    entries,
    events_of,
    ledger,
    outcome_of,
    settings_of,
    until_done,
    write_files,
)
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from millstream.durable import write_synced
from millstream.sinks.files import FileSink
from millstream.spark.runner import run

COUNT, FILES, BATCHES = 500, 5, 5
SHORT, LONG = 1_000_000, 30_000_000
"""Microseconds of patience."""
TIMES_SLOWER = 10
Breaking = Callable[["Broken"], None]


class Broken:
    """A sink's folder that fails in one of several ways while `on`."""

    def __init__(self, path: Path, way: str) -> None:
        self.path, self.way, self.on, self.mended = path, way, False, 0.0
        self._away = path.with_name(f"{path.name}.away")
        self._lock = threading.Lock()

    def strike(self, seconds: float | None) -> None:
        """Fail from now on: until `mend`, or for `seconds`."""
        with self._lock:
            self.on = True
            if self.way == "a file in its place":
                self.path.rename(self._away)
                self.path.touch()
        if seconds is not None:
            threading.Timer(seconds, self.mend).start()

    def mend(self) -> None:
        """Work again, with the former content."""
        with self._lock:
            if self.on and self.way == "a file in its place":
                self.path.unlink()
                self._away.rename(self.path)
            self.on, self.mended = False, time.monotonic()

    @contextmanager
    def refusing(self) -> Iterator[None]:
        """Make system calls on the folder fail while it is broken."""
        replace = os.replace

        def write(path: Any, data: bytes) -> None:
            if self.on and self.way == "half a write":
                write_synced(path, data[: len(data) // 2])
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            write_synced(path, data)

        def rename(old: Any, new: Any) -> None:
            # The record of the batch is renamed before its file: the two differ then.
            is_data = Path(new).parent == self.path and not Path(new).name.startswith(".")
            if self.on and self.way == "half of two renames" and is_data:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            replace(old, new)

        with (
            patch("millstream.sinks.files.write_synced", write),
            patch("millstream.sinks.files.os.replace", rename),
        ):
            yield


WAYS = ("a file in its place", "half a write", "half of two renames")


def sink_fails(seed: int, folder: Path, context: Context) -> Result:
    """The sink fails twice: once for longer than the patience, so that the run stops; once for a
    while."""
    random, app = Random(seed), ledger("entries")
    given = entries(random, COUNT)
    write_files(folder / "in", encoded(given), FILES)
    lane = random.choice(["one-task", "shuffled"])
    # The first batch only sets the event time: it writes nothing that could fail.
    first, second = sorted(random.sample(range(1, BATCHES), 2))
    ways, seconds = random.choices(WAYS, k=2), random.uniform(2.0, 4.0)
    sink = Broken(folder / "out" / "balances", ways[0])
    said: list[str] = []
    waited: list[float] = []

    def strike(point: str, batch: int) -> None:
        if point == "batch-recorded" and batch == first and not stops:
            sink.strike(None)
        elif point == "batch-recorded" and batch == second:
            sink.way = ways[1]
            sink.strike(seconds)
        elif point == "sinks-published" and batch == second:
            waited.append(time.monotonic() - sink.mended)

    stops: list[int] = []

    def start(report: OnReport) -> None:
        patience = LONG if stops else SHORT
        try:
            run(
                app,
                settings_of(
                    folder,
                    {"entries": f"json:{folder / 'in'}"},
                    lane=lane,
                    sink_patience=patience,
                ),
                report,
                context=context.spark,
                say=said.append,
            )
        finally:
            stops.append(1)
            if patience == SHORT:
                sink.mend()

    with at_points(strike), sink.refusing():
        starts = until_done(start)
    found = differing(app, events_of("entries", given), outcome_of(app, folder))
    note = f"{ways[0]} until it stops, {ways[1]} for {seconds:.1f} s, {lane}"
    problem = ""
    if len(starts.stopped) != 1 or str(sink.path) not in starts.stopped[0]:
        problem = f"must stop once, and name the sink; stopped by {starts.stopped}"
    elif not any("works again" in sentence for sentence in said):
        problem = f"must say that the sink works again; said {said}"
    return Result(
        "sink-fails",
        seed,
        found.lost,
        found.doubled,
        (*starts.recovery, *waited),
        "; ".join(filter(None, (note, found.note))),
        2,
        problem,
    )


def sink_slow(seed: int, folder: Path, context: Context) -> Result:
    """For some batches the sink takes ten times as long as the batch; the next batch must not be
    committed before the sink has this one."""
    random, app = Random(seed), ledger("entries")
    given = entries(random, COUNT)
    write_files(folder / "in", encoded(given), FILES)
    lane = random.choice(["one-task", "shuffled"])
    slow = set(random.sample(range(BATCHES), 3))
    began = took = slept = 0.0
    passed = list[tuple[str, int]]()
    publish = FileSink.publish

    def strike(point: str, batch: int) -> None:
        nonlocal began, took
        passed.append((point, batch))
        if point == "batch-start":
            began = time.monotonic()
        elif point == "slates-committed":  # from here on the batch may wait for the sink
            took = time.monotonic() - began

    def slowly(sink: FileSink, batch: int, rows: list[dict[str, Any]]) -> None:
        nonlocal slept
        if batch in slow:
            time.sleep(TIMES_SLOWER * took)
            slept += TIMES_SLOWER * took
        publish(sink, batch, rows)

    with at_points(strike), patch.object(FileSink, "publish", slowly):
        settings = settings_of(folder, {"entries": f"json:{folder / 'in'}"}, lane=lane)
        run(app, settings, context=context.spark)
    found = differing(app, events_of("entries", given), outcome_of(app, folder))
    note = f"{len(slow)} batches, {slept:.1f} s in all, {lane}"
    problem = "" if slept else "the sink was never slow"
    if early := _not_waited(passed):
        problem = f"batches {early} were committed before the sink had the one before: {passed}"
    return Result(
        "sink-slow",
        seed,
        found.lost,
        found.doubled,
        note="; ".join(filter(None, (note, found.note))),
        failed=problem,
    )


def _not_waited(passed: list[tuple[str, int]]) -> list[int]:
    """The batches that were committed before the sinks had all of the batch before."""
    moments = {moment: number for number, moment in enumerate(passed)}
    return [
        batch + 1
        for (point, batch), number in moments.items()
        if point == "sinks-published"
        and moments.get(("batch-recorded", batch + 1), number) < number
    ]


FAILS = Scenario(
    "sink-fails", "batches wait for it, or the run stops; it gets all, once", sink_fails
)
SLOW = Scenario("sink-slow", "the next batch is committed after it; it gets all, once", sink_slow)
