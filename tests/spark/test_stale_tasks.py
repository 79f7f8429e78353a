"""Tasks that Spark has given up but that go on: real ones, on Spark, that change nothing.

Spark ends the input of a cancelled task as if it were complete, and the task's Python worker goes
on to its commit, maybe after its successor's. A task whose input was cut off notices (it misses end
marks); one that has its whole input and is only late is refused by the fence.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark import InheritableThread

import millstream as ms
from millstream.driver.job import END, BatchJob, Row
from millstream.engine.beat import Beat
from millstream.engine.columns import Columns
from millstream.engine.frames import frame_of
from millstream.engine.plan import Plan
from millstream.spark import worker
from millstream.spark.function_pickle import PackedPlan
from millstream.spark.runner import SparkRunner
from millstream.stores.home import Home

pytestmark = pytest.mark.spark


def trace() -> list[str]:
    path = Path(os.environ["MILLSTREAM_TRACE"])
    return path.read_text().splitlines() if path.exists() else []


def wait_for(what: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 15
    while not what():
        assert time.monotonic() < deadline, trace()
        threading.Event().wait(0.02)


def counting(folder: Path) -> Plan:
    """Counts; the first try of the last key announces itself and waits to be let go."""
    app = ms.App("counting")
    app.source("words")

    @app.update("words")
    def count(event: Any, slate: Any) -> None:
        if event.key == "slow" and not (folder / "second try").exists():
            (folder / "waiting").touch()
            while not (folder / "go").exists():
                time.sleep(0.01)
        slate["n"] = slate.get("n", 0) + event.value

    return Plan(app.workflow(), 1, frozenset())


def job_of(home: Home) -> BatchJob:
    beat = Beat(epoch=1, batch=0, clock=1, horizon=None, passed=None)
    return BatchJob(beat, home.path, "run", 1, 1, ((),))


def frame(*events: tuple[str, int]) -> bytes:
    """A frame that is too large to stay in a buffer on its way: blanks are JSON too."""
    keys, values = [key for key, _ in events], [str(n).ljust(300_000).encode() for _, n in events]
    return frame_of(Columns([0] * len(keys), list(range(len(keys))), keys, values))


def slates(home: Home) -> dict[str, bytes]:
    with home.store().shard(0).at(0) as view:
        return {row.split(b"\x00")[1].decode(): value[9:] for row, value in view.scan(b"S", b"T")}


def sent(folder: Path, rows: Iterable[object]) -> Iterator[Row]:
    """The stage before: its first try breaks off when the stage behind it has some of its rows."""
    for _ in range(3):
        yield 0, (0, 0, frame(("a", 1), ("b", 2)))
    if not (folder / "second try").exists():
        (folder / "second try").touch()
        raise RuntimeError("an upstream failure")
    yield 0, (0, 0, frame(("a", 10), ("c", 3)))
    yield 0, (END, 0, b"\x80")


def test_a_cut_off_task_does_not_commit(spark: Any, tmp_path: Path) -> None:
    """A task whose upstream failed sees a part of its input end as if it were all; it refuses to
    commit, and the slates are those of the whole input, fed once."""
    home = Home.make(tmp_path / "store", "counting", 1, {"count": "dict"})
    packed = PackedPlan.of(counting(tmp_path))
    cut = [line for line in trace() if line.startswith("cut-off")]
    upstream = spark.parallelize([0], 1).mapPartitions(partial(sent, tmp_path))
    stage = partial(worker.layer_stage, packed, job_of(home), 0, 1)
    # Coalesced, not shuffled: both stages are one task, with a Python worker for each.
    rows = upstream.coalesce(1).mapPartitions(stage).collect()
    assert len(rows) == 1
    wait_for(lambda: [x for x in trace() if x.startswith("cut-off")] != cut)
    assert slates(home) == {"a": b'{"n":13}', "b": b'{"n":6}', "c": b'{"n":3}'}


@pytest.fixture
def patient(spark: Any) -> Iterator[None]:
    """Spark kills the worker of a cancelled task after two seconds; here its successor may take as
    long as it needs, on a machine that is busy."""
    conf = spark._jsc.sc().conf()  # what its environment goes by
    conf.set("spark.python.task.killTimeout", "60s")
    yield
    conf.remove("spark.python.task.killTimeout")


def slow_input(rows: Iterable[object]) -> Iterator[Row]:
    yield 0, (0, 0, frame(("a", 1), ("slow", 2)))
    yield 0, (END, 0, b"\x80")


@pytest.mark.usefixtures("patient")
def test_a_task_that_commits_after_its_successor_changes_nothing(
    spark: Any, tmp_path: Path
) -> None:
    """A cancelled task that still holds its whole input reaches its commit after its successor has
    committed, and is refused."""
    home = Home.make(tmp_path / "store", "counting", 1, {"count": "dict"})
    stage = partial(worker.layer_stage, PackedPlan.of(counting(tmp_path)), job_of(home), 0, 1)

    def run_stage() -> None:
        given = spark.parallelize([0], 1).mapPartitions(slow_input).coalesce(1)
        given.mapPartitions(stage).collect()

    cancelled: list[str] = []

    def first_try() -> None:
        spark.setJobGroup("first-try", "to be cancelled", interruptOnCancel=False)
        try:
            run_stage()
        except Exception as error:
            cancelled.append(str(error))

    thread = InheritableThread(target=first_try)
    thread.start()
    wait_for((tmp_path / "waiting").exists)
    (tmp_path / "second try").touch()
    spark.cancelJobGroup("first-try")
    run_stage()
    committed = slates(home)
    assert committed == {"a": b'{"n":1}', "slow": b'{"n":2}'}
    stale = [line for line in trace() if line.startswith("stale")]
    (tmp_path / "go").touch()
    wait_for(lambda: [x for x in trace() if x.startswith("stale")] != stale)
    assert slates(home) == committed
    thread.join(30)
    assert "cancel" in cancelled[0]


@pytest.mark.parametrize(("lane", "reports"), [("one-task", 1), ("shuffled", 2)])
def test_the_runner_runs_a_job(spark: Any, tmp_path: Path, lane: Any, reports: int) -> None:
    """A job of one layer and one task a stage gives a report for each task that it has, and the
    context that the runner was lent stays open."""
    home = Home.make(tmp_path / "store", "counting", 1, {"count": "dict"})
    runner = SparkRunner(spark)
    runner.prepare(counting(tmp_path))
    assert len(runner.run(job_of(home), lane)) == reports
    runner.close()
    assert spark.parallelize([1]).collect() == [1]
