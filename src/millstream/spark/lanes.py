"""A batch on Spark: as one task, or as a shuffled plan. One action either way."""

from __future__ import annotations

from functools import partial

import msgspec
from pyspark.sql import DataFrame, SparkSession

from millstream.engine.horizon import Lane
from millstream.engine.progress import Report
from millstream.spark import worker
from millstream.spark.job import REPORT, SCHEMA, Job


def run_batch(spark: SparkSession, job: Job, lane: Lane, layers: int) -> list[Report]:
    """Run a batch and give what its tasks report."""
    frame = _one_task(spark, job) if lane == "one-task" else _shuffled(spark, job, layers)
    return [
        msgspec.msgpack.decode(row.frame, type=Report)
        for row in frame.collect()
        if row.function == REPORT
    ]


def _one_task(spark: SparkSession, job: Job) -> DataFrame:
    return spark.range(0, 1, 1, 1).mapInArrow(partial(worker.whole_batch, job), SCHEMA)


def _shuffled(spark: SparkSession, job: Job, layers: int) -> DataFrame:
    """Read and map; then for each layer a shuffle by shard and a stage that commits."""
    groups = len(job.splits)
    rows = spark.range(0, groups, 1, groups).mapInArrow(partial(worker.first_stage, job), SCHEMA)
    upstream = groups
    for layer in range(layers):
        rows = rows.repartitionById(job.tasks, "task").mapInArrow(
            partial(worker.layer_stage, job, layer, upstream), SCHEMA
        )
        upstream = job.tasks
    return rows
