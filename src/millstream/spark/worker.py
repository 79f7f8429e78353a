"""What runs inside Spark's Python workers: shells around `driver.stages`."""

from __future__ import annotations

import base64
import gc
import pickle
import signal
from collections.abc import Iterable, Iterator
from functools import lru_cache

from pyspark import Accumulator, TaskContext
from pyspark.accumulators import AccumulatorParam

from millstream.driver import stages
from millstream.driver.job import Job, Row
from millstream.engine.plan import Plan
from millstream.spark.pickling import PackedPlan

Gathered = tuple[int, list[Row]]
"""A partition's number and the rows that it gives to the driver."""
JOB = "millstream.job"
"""The property of a task that holds its job."""


@lru_cache(maxsize=4)
def _unpacked(packed: PackedPlan) -> Plan:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the driver to handle
    plan = packed.unpack()
    gc.disable()  # a batch makes many objects and no cycles; Spark collects after each task
    gc.freeze()  # and need not look at the libraries then
    return plan


def _task() -> tuple[int, int]:
    """The partition of this task, and a number of this attempt that no other has."""
    context = TaskContext.get()
    assert context is not None
    return context.partitionId(), context.taskAttemptId()


def packed_job(job: Job) -> str:
    """A job as a property of a task."""
    return base64.b64encode(pickle.dumps(job)).decode()


def job_of_task() -> Job:
    """The job that this task was sent as a property."""
    context = TaskContext.get()
    assert context is not None
    job: Job = pickle.loads(base64.b64decode(context.getLocalProperty(JOB) or ""))
    return job


def whole_batch(packed: PackedPlan, rows: Iterable[object]) -> Iterator[Row]:
    """The one-task lane."""
    _, attempt = _task()
    yield stages.report_row(stages.whole_batch(_unpacked(packed), job_of_task(), attempt))


def first_stage(packed: PackedPlan, job: Job, rows: Iterable[object]) -> Iterator[Row]:
    """The first stage of the shuffled lane."""
    number, attempt = _task()
    return stages.first_stage(_unpacked(packed), job, number, attempt)


def layer_stage(
    packed: PackedPlan, job: Job, layer: int, upstream: int, rows: Iterable[Row]
) -> Iterator[Row]:
    """A layer of the shuffled lane."""
    partition, attempt = _task()
    plan = _unpacked(packed)
    return stages.layer_stage(plan, job, layer, upstream, partition, attempt, rows)


class GatheredRows(AccumulatorParam[list[Gathered]]):
    """What the tasks of a job give to the driver."""

    def zero(self, value: list[Gathered]) -> list[Gathered]:
        return []

    def addInPlace(self, value1: list[Gathered], value2: list[Gathered]) -> list[Gathered]:
        return value1 + value2


def gather(gathered: Accumulator[list[Gathered]], rows: Iterable[Row]) -> Iterator[Row]:
    """The end of the last stage: its rows go to the driver with the end of the task."""
    partition, _ = _task()
    gathered.add([(partition, list(rows))])
    return iter(())
