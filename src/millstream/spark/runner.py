"""The runner on Spark: a batch is one job of RDDs, as one task or as a shuffled plan.

No SQL plan, no streaming query: nothing of a batch is visible before the driver commits it, so
Spark need not remember anything between two jobs. What it does is move rows between tasks, try a
failed task again, and find workers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark import RDD, Accumulator, SparkContext
from pyspark.errors import PySparkException

from millstream.driver import run as driver_run
from millstream.driver.driver import OnReport
from millstream.driver.job import Job, Row
from millstream.driver.report import RunSummary
from millstream.driver.stages import reports_in
from millstream.engine.horizon import Lane
from millstream.engine.plan import Plan
from millstream.engine.progress import Report
from millstream.model.app import App
from millstream.settings import Settings
from millstream.spark import worker
from millstream.spark.context import close_context, open_context
from millstream.spark.failures import from_spark
from millstream.spark.pickling import PackedPlan

FOR_EVER_MS = 1 << 40


class SparkRunner:
    """Runs batches in a SparkContext, which it closes if it is its own."""

    def __init__(self, context: SparkContext, *, owned: bool = True) -> None:
        self._context = context
        self._owned = owned
        self._plan: Plan | None = None
        self._packed = PackedPlan("", b"")
        self._numbers: dict[int, RDD[int]] = {}
        self._whole: RDD[Row] | None = None
        self._gathered: Accumulator[list[worker.Gathered]] = context.accumulator(
            [], worker.GatheredRows()
        )
        self._tag = f"millstream-{uuid4().hex}"
        self._tagged: set[int] = set()

    @property
    def parallelism(self) -> int:
        return self._context.defaultParallelism

    def prepare(self, plan: Plan) -> None:
        self._plan, self._packed = plan, PackedPlan.of(plan)

    def run(self, job: Job, lane: Lane) -> list[Report]:
        try:
            rows = self._one_task(job) if lane == "one-task" else self._shuffled(job)
            if threading.get_ident() not in self._tagged:
                self._context.addJobTag(self._tag)  # of all jobs of this thread
                self._tagged.add(threading.get_ident())
            return reports_in(self._rows_of(rows))
        except (Py4JError, PySparkException, OSError) as error:
            raise from_spark(error) from None

    def _rows_of(self, rows: RDD[Row]) -> list[Row]:
        """Run a job, and gather its rows in the order of their partitions.

        `collect` would do, and takes 9 ms more: at each call it reads class files to clean a
        closure, and it opens a socket for the rows. Counting with all patience does neither; the
        rows come with the ends of the tasks, which Spark counts once each.
        """
        self._gathered.value = []
        rows._jrdd.countApprox(FOR_EVER_MS, 1.0)
        return [row for _, some in sorted(self._gathered.value) for row in some]

    def _one_task(self, job: Job) -> RDD[Row]:
        """The same RDD for every batch, which costs some milliseconds to make: its task finds the
        job among the properties that Spark sends with it. (A shuffled RDD cannot be used again:
        Spark would take the rows that it has shuffled before.)"""
        if self._whole is None:
            rows = self._partitions(1).mapPartitions(partial(worker.whole_batch, self._packed))
            self._whole = rows.mapPartitions(partial(worker.gather, self._gathered))
        self._context.setLocalProperty(worker.JOB, worker.packed_job(job))
        return self._whole

    def _shuffled(self, job: Job) -> RDD[Row]:
        """Read and map; then for each layer a shuffle by shard and a stage that commits."""
        upstream = len(job.splits)
        rows: RDD[Row] = self._partitions(upstream).mapPartitions(
            partial(worker.first_stage, self._packed, job)
        )
        assert self._plan is not None, "prepare comes first"
        for layer in range(len(self._plan.layers)):
            rows = rows.partitionBy(job.tasks, _own_number).mapPartitions(
                partial(worker.layer_stage, self._packed, job, layer, upstream)
            )
            upstream = job.tasks
        return rows.mapPartitions(partial(worker.gather, self._gathered))

    def _partitions(self, count: int) -> RDD[int]:
        """So many empty partitions, kept: to make them costs more than a job."""
        if count not in self._numbers:
            self._numbers[count] = self._context.parallelize(range(count), count)
        return self._numbers[count]

    def cancel(self) -> None:
        try:
            self._context.cancelJobsWithTag(self._tag)  # others may have jobs in the context too
        except (Py4JError, OSError):
            pass  # Spark is gone, and with it the jobs

    def close(self) -> None:
        if self._owned:
            close_context(self._context)


def _own_number(task: int) -> int:
    return task


def run(
    app: App,
    settings: Settings,
    report: OnReport | None = None,
    *,
    context: SparkContext | None = None,
    stop: threading.Event | None = None,
    ready: Callable[[], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> RunSummary:
    """`driver.run` on Spark: in `context`, or in one that is opened and closed for it."""

    def open_runner() -> SparkRunner:
        if context is not None:
            return SparkRunner(context, owned=False)
        return SparkRunner(open_context(app.name, settings.master, settings.memory))

    return driver_run.run(app, settings, open_runner, report, stop=stop, ready=ready, say=say)
