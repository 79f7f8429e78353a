"""The code that runs inside Spark's Python workers: shells around `driver.stages`."""

from __future__ import annotations

import base64
import gc
import pickle
import signal
import time
from collections.abc import Iterable, Iterator
from functools import lru_cache

from pyspark import Accumulator, TaskContext
from pyspark.accumulators import AccumulatorParam

from millstream.driver import stages
from millstream.driver.job import BatchJob, Row
from millstream.engine.plan import Plan
from millstream.spark.function_pickle import PackedPlan

Gathered = tuple[int, list[Row]]
"""A partition's number and the rows that it sends to the driver."""
JOB = "millstream.job"
"""The Spark property that carries a task's job."""
WARMING_SECONDS = 0.2


@lru_cache(maxsize=4)
def _unpacked(packed: PackedPlan) -> Plan:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver to handle
    plan = packed.unpack()
    gc.disable()  # a batch makes many objects and no cycles; Spark collects after each task
    gc.freeze()  # so that these collections skip the libraries
    return plan


def _task() -> tuple[int, int]:
    """Returns the partition of this task, and the unique number of this attempt."""
    context = TaskContext.get()
    assert context is not None
    return context.partitionId(), context.taskAttemptId()


def _use_up(rows: Iterable[object]) -> None:
    """Reads the input to its end: Spark does not reuse a worker that leaves some of it."""
    for _ in rows:
        pass


def packed_job(job: BatchJob) -> str:
    """Packs a job as a Spark property."""
    return base64.b64encode(pickle.dumps(job)).decode()


def job_of_task() -> BatchJob:
    """Returns the job that this task was sent as a property."""
    context = TaskContext.get()
    assert context is not None
    job: BatchJob = pickle.loads(base64.b64decode(context.getLocalProperty(JOB) or ""))
    return job


def warmed(row: object) -> tuple[int, object]:
    """Returns a row of a job that is run only to start workers.

    It takes a while, so that each worker gets one row.
    """
    time.sleep(WARMING_SECONDS)
    context = TaskContext.get()
    assert context is not None
    return context.partitionId(), row


def whole_batch(packed: PackedPlan, rows: Iterable[object]) -> Iterator[Row]:
    """Runs the task of the one-task lane."""
    _use_up(rows)
    _, attempt = _task()
    yield stages.report_row(stages.whole_batch(_unpacked(packed), job_of_task(), attempt))


def first_stage(
    packed: PackedPlan, job: BatchJob, seated: bool, rows: Iterable[object]
) -> Iterator[Row]:
    """Runs a task of the shuffled lane's first stage."""
    _use_up(rows)
    number, attempt = _task()
    return stages.first_stage(_unpacked(packed), job, number, attempt, seated=seated)


def layer_stage(
    packed: PackedPlan, job: BatchJob, layer: int, upstream: int, rows: Iterable[Row]
) -> Iterator[Row]:
    """Runs a task of a layer of the shuffled lane."""
    partition, attempt = _task()
    plan = _unpacked(packed)
    return stages.layer_stage(plan, job, layer, upstream, partition, attempt, rows)


class GatheredRows(AccumulatorParam[list[Gathered]]):
    """The accumulator of the rows that a job's tasks send to the driver."""

    def zero(self, value: list[Gathered]) -> list[Gathered]:
        return []

    def addInPlace(self, value1: list[Gathered], value2: list[Gathered]) -> list[Gathered]:
        return value1 + value2


def gather(gathered: Accumulator[list[Gathered]], rows: Iterable[Row]) -> Iterator[Row]:
    """Ends the last stage: its rows go to the driver when the task ends."""
    partition, _ = _task()
    gathered.add([(partition, list(rows))])
    return iter(())
