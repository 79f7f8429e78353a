"""The runner on Spark: runs a batch as one job of RDDs, with a single task or with shuffles.

It uses no SQL plan and no streaming query: nothing of a batch is visible before the driver commits
it, so Spark need not remember anything between two jobs. Spark moves rows between tasks, retries a
failed task, and finds workers.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError
from pyspark import RDD, Accumulator, SparkContext
from pyspark.errors import PySparkException

from millstream.driver import run as driver_run
from millstream.driver.driver import OnReport
from millstream.driver.job import BatchJob, Row
from millstream.driver.report import RunSummary
from millstream.driver.stages import first_tasks, reports_in
from millstream.driver.startup.background_start import BackgroundStart
from millstream.engine.horizon import Lane
from millstream.engine.plan import Plan
from millstream.engine.progress import Report
from millstream.model.app import AppDefinition
from millstream.settings.cluster_options import master_kind
from millstream.settings.settings import Settings
from millstream.spark import worker
from millstream.spark.context import open_for
from millstream.spark.context_lease import ContextLease, lease_context
from millstream.spark.executors import Executors, check_local
from millstream.spark.failures import from_spark
from millstream.spark.function_pickle import PackedPlan
from millstream.spark.seats import Seats, own_number

FOR_EVER_MS = 1 << 40


class SparkRunner:
    """Runs batches in a SparkContext; if it has a lease of the context, `close` releases it.

    `seated`: hosts have copies of shards, and a shard's task is kept on the host of its copy.
    """

    def __init__(
        self, context: SparkContext, *, lease: ContextLease | None = None, seated: bool = False
    ) -> None:
        self._context = context
        self._lease = lease
        self._python = context.pythonExec if lease is None or lease.borrowed else ""
        """The Python of the workers, if the context is not ours; else empty."""
        self._executors = Executors(context) if seated else None
        self._known: frozenset[str] = frozenset()
        self._hosts: dict[str, int] = {}
        self._seats: dict[int, Seats] = {}
        self._plan: Plan | None = None
        self._packed = PackedPlan("", b"")
        self._numbers: dict[int, RDD[int]] = {}
        self._whole: RDD[Row] | None = None
        self._whole_seat: RDD[Row] | None = None
        self._gathered: Accumulator[list[worker.Gathered]] = context.accumulator(
            [], worker.GatheredRows()
        )
        self._tag = f"millstream-{uuid4().hex}"
        self._tagged: set[int] = set()

    @property
    def parallelism(self) -> int:
        return self._context.defaultParallelism

    @property
    def spread(self) -> bool:
        """True if there are several hosts. Checks the executors; read before each batch."""
        if self._executors is None:
            return False
        try:
            known = self._executors.known()
        except (Py4JError, OSError) as error:
            raise from_spark(error, self._python) from None
        if known != self._known:
            self._known, self._hosts = known, self._executors.hosts(known)
        return len(self._hosts) > 1

    def warm(self) -> None:
        """Runs a shuffle with a task for each core.

        This starts Spark's Python workers, and they import what the first batch needs.
        """
        tasks = self.parallelism
        rows = self._context.parallelize(range(tasks), tasks).map(worker.warmed)
        rows.partitionBy(tasks, own_number).map(worker.warmed).count()

    def prepare(self, plan: Plan) -> None:
        self._plan, self._packed = plan, PackedPlan.of(plan)

    def run(self, job: BatchJob, lane: Lane) -> list[Report]:
        try:
            rows = self._one_task(job) if lane == "one-task" else self._shuffled(job)
            if threading.get_ident() not in self._tagged:
                self._context.addJobTag(self._tag)  # applies to all jobs of this thread
                self._tagged.add(threading.get_ident())
            return reports_in(self._rows_of(rows))
        except (Py4JError, PySparkException, OSError) as error:
            raise from_spark(error, self._python) from None

    def _rows_of(self, rows: RDD[Row]) -> list[Row]:
        """Runs a job, and returns its rows in the order of their partitions.

        `collect` would do the same but takes 9 ms more: each call reads class files to clean a
        closure, and opens a socket for the rows. `countApprox` without a real timeout does neither.
        The rows come in an accumulator when tasks end, and Spark counts each task once.
        """
        self._gathered.value = []
        rows._jrdd.countApprox(FOR_EVER_MS, 1.0)
        return [row for _, part in sorted(self._gathered.value) for row in part]

    def _one_task(self, job: BatchJob) -> RDD[Row]:
        """Returns the RDD of the one-task lane, the same for every batch.

        Making one costs some milliseconds. The task finds the job in the properties that Spark
        sends with it. (A shuffled RDD cannot be reused: Spark would reuse the rows that it has
        shuffled before.)
        """
        seat = self._seated(1)
        if self._whole is None or seat is not self._whole_seat:
            single = self._partitions(1) if seat is None else seat
            rows = single.mapPartitions(partial(worker.whole_batch, self._packed))
            self._whole = rows.mapPartitions(partial(worker.gather, self._gathered))
            self._whole_seat = seat
        self._context.setLocalProperty(worker.JOB, worker.packed_job(job))
        return self._whole

    def _shuffled(self, job: BatchJob) -> RDD[Row]:
        """Builds the shuffled job: read and map; then per layer a shuffle and a commit stage."""
        assert self._plan is not None, "prepare comes first"
        seats = self._seated(job.tasks)
        upstream = first_tasks(self._plan, job, seated=seats is not None)
        first = self._partitions(len(job.splits))
        if seats is not None and upstream > len(job.splits):
            first = self._united(first, seats)
        rows: RDD[Row] = first.mapPartitions(
            partial(worker.first_stage, self._packed, job, seats is not None)
        )
        for layer in range(len(self._plan.layers)):
            rows = rows.partitionBy(job.tasks, own_number)
            if seats is not None:
                rows = self._united(rows, seats)
            rows = rows.mapPartitions(
                partial(worker.layer_stage, self._packed, job, layer, upstream)
            )
            upstream = job.tasks
        return rows.mapPartitions(partial(worker.gather, self._gathered))

    def _seated(self, tasks: int) -> RDD[Row] | None:
        """Returns the seats of `tasks` tasks, if there are seats."""
        if self._executors is None:
            return None
        if tasks not in self._seats:
            self._seats[tasks] = Seats(self._context, tasks)
        for seats in self._seats.values():
            seats.look(self._known, self._hosts)
        return self._seats[tasks].rows()

    def _united(self, rows: RDD[Any], seats: RDD[Row]) -> RDD[Any]:
        """Unites rows and seats.

        With the same partitioner, the tasks of the rows run where the seats are; otherwise the
        seats' tasks follow those of the rows. `RDD.union` would call the JVM five times for this.
        """
        united: Any = rows._jrdd.union(seats._jrdd)
        return RDD(united, self._context, rows._jrdd_deserializer)

    def _partitions(self, count: int) -> RDD[int]:
        """Returns an RDD of empty partitions, cached: making one costs more than a job."""
        if count not in self._numbers:
            self._numbers[count] = self._context.parallelize(list[int](), count)
        return self._numbers[count]

    def cancel(self) -> None:
        try:
            self._context.cancelJobsWithTag(self._tag)  # the context may have jobs of others too
        except (Py4JError, OSError):
            pass  # Spark is gone, and the jobs with it

    def close(self) -> None:
        if self._lease is not None:
            self._lease.release()


def run(
    app: AppDefinition,
    settings: Settings,
    report: OnReport | None = None,
    *,
    context: SparkContext | None = None,
    stop: threading.Event | None = None,
    ready: Callable[[], None] | None = None,
    running: Callable[[], None] | None = None,
    say: Callable[[str], None] | None = None,
    lease: BackgroundStart[ContextLease] | None = None,
) -> RunSummary:
    """Runs an application as `driver.run` does, on Spark.

    Uses `context` if it is given, else that of `lease`, which the caller has begun, else the
    context that this process has, else a new one.
    """

    def open_runner() -> SparkRunner:
        if context is not None:
            return SparkRunner(context, seated=_is_seated(context, settings))
        begun = lease.take if lease is not None else partial(_leased, app, settings)
        return _opened(app, settings, begun(), say or (lambda sentence: None))

    return driver_run.run(
        app, settings, open_runner, report, stop=stop, ready=ready, running=running, say=say
    )


def _is_seated(context: SparkContext, settings: Settings) -> bool:
    """True if a shard's tasks should run where its copy is."""
    return bool(settings.storage.place) and not (context.master or "").startswith("local")


def _leased(app: AppDefinition, settings: Settings) -> ContextLease:
    return lease_context(partial(open_for, app.name, settings.cluster))


def _opened(
    app: AppDefinition, settings: Settings, lease: ContextLease, say: Callable[[str], None]
) -> SparkRunner:
    """Opens a runner in a leased context. On a cluster, waits for the executors."""
    kind = master_kind(settings.cluster.master)
    local = kind is None or kind == "local"
    context = lease.context
    runner = SparkRunner(context, lease=lease, seated=_is_seated(context, settings))
    if lease.borrowed:
        say(
            f"this process has a SparkContext, {context.appName} ({context.master}): app "
            f"{app.name} runs in it, with its master and its memory"
        )
    try:
        if kind is not None and not (local or lease.borrowed):
            hosts = Executors(context).wait(kind, settings.cluster.master)
            if not settings.storage.place:
                check_local(hosts, settings.storage.store)
        if settings.storage.standby:
            runner.warm()
    except BaseException:
        runner.close()
        raise
    return runner
