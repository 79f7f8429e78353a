"""Keeps a shard's task on the host of its copy: the shell around `driver.batch_plan.seat_plan`.

The seats are a small persisted RDD with a row for each task, partitioned by the same function as
the rows of a batch. A shuffle's output united with it is a `PartitionerAwareUnionRDD`, which
prefers the hosts of the seats' blocks; a shuffle by itself has no preference
(`spark.shuffle.reduceLocality` is off). So in every layer of every batch a task runs on the same
host.

A separate job puts the blocks on the hosts of the plan: its tasks prefer these hosts (`makeRDD`
with hosts, zipped with the seats). If an executor is lost in the middle of a batch, Spark computes
its seats wherever there is room; before the next batch they are moved to the right hosts.
"""

from __future__ import annotations

import time
from typing import Any

from pyspark import RDD, SparkContext, StorageLevel

from millstream.driver.batch_plan.seat_plan import SeatPlan
from millstream.driver.job import SEAT, Row


def own_number(task: int) -> int:
    """Partitions rows by task. Seats and batches must use this same function object."""
    return task


def _seat_row(task: int) -> Row:
    return task, (SEAT, 0, b"")


class Seats:
    """The seats of a number of tasks."""

    def __init__(self, context: SparkContext, tasks: int) -> None:
        self._context = context
        self._tasks = tasks
        self._plan = SeatPlan(tasks)
        self._placed: frozenset[str] = frozenset()
        self._misplaced = False
        self._rows: RDD[Row] | None = None

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host of each task."""
        return self._plan.seats

    def look(self, known: frozenset[str], hosts: dict[str, int]) -> None:
        """Takes the current executors. Called before each batch, even one without these seats."""
        if self._plan.changed(hosts, time.monotonic()) or not self._placed <= known:
            self._misplaced = True
        self._placed = known

    def rows(self) -> RDD[Row]:
        """Returns the seats for a batch that starts now; places them again if needed."""
        if self._rows is None or self._misplaced:
            before, self._rows = self._rows, self._seated()
            self._misplaced = False
            if before is not None:
                before.unpersist()
        return self._rows

    def _seated(self) -> RDD[Row]:
        """Places the seats' rows on the hosts of the plan."""
        rows = self._context.parallelize(range(self._tasks), 1).map(_seat_row)
        seats = rows.partitionBy(self._tasks, own_number).persist(StorageLevel.MEMORY_ONLY)
        if all(self._plan.seats):
            seats._jrdd.zip(self._wanted(seats)).count()
        return seats

    def _wanted(self, seats: RDD[Row]) -> Any:
        """Returns a JVM RDD with a partition for each task, which prefers the task's host."""
        jvm, java = self._context._jvm, self._context._jsc
        assert jvm is not None
        assert java is not None
        pairs = jvm.java.util.ArrayList()
        for host in self._plan.seats:
            preferred = jvm.java.util.ArrayList()
            preferred.add(host)
            pairs.add(jvm.scala.Tuple2(b"", jvm.PythonUtils.toSeq(preferred)))
        placed = java.sc().makeRDD(jvm.PythonUtils.toSeq(pairs), seats._jrdd.classTag())
        return placed.toJavaRDD()
