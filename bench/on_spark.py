"""Measured runs of Spark's own ways to keep a count for each key: the peers.

Both keep their state in RocksDB with changelog checkpointing, the faster of its two ways to make
each batch durable. They get as many state partitions as there are cores, which suits them best
here. They read the same files as Millstream, through Spark's own source, and discard their output.
"""

from __future__ import annotations

import importlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.stateful_processor import (
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from bench.bench import Bench
from millstream.spark.jvm_noise import filtered_stderr

SCHEMA = "key string, ts long, n int"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Count(StatefulProcessor):
    """The same work as the update: a count for each key, changed once for each event."""

    def init(self, handle: StatefulProcessorHandle) -> None:
        self._count = handle.getValueState("count", "count long")

    def handleInputRows(  # noqa: N802  # Spark's spelling
        self,
        key: Any,
        rows: Iterator[Row],
        timerValues: TimerValues,  # noqa: N803
    ) -> Iterator[Row]:
        found = self._count.get()  # None at first; calling exists() would be one more round trip
        count = found[0] if found is not None else 0
        for _ in rows:
            count += 1
        self._count.update((count,))
        return iter(())

    def close(self) -> None:
        pass


def measured(
    bench: Bench, what: str, count: Callable[..., dict[str, Any]], source: Path
) -> dict[str, Any]:
    """The row of a way to count the events of files, in a process of its own."""
    checkpoint = bench.fresh("checkpoint")
    return bench.measure(f"spark: {what}", count, source=source, checkpoint=checkpoint, files=1)


def transform_with_state(source: str, checkpoint: str, files: int) -> dict[str, Any]:
    """A Python processor for each key (`transformWithState`, Row API)."""
    try:
        importlib.import_module("google.protobuf")
    except ImportError:
        message = "transformWithState needs protobuf: .venv/bin/pip install protobuf"
        raise SystemExit(message) from None
    began = time.perf_counter()
    spark = _session()
    counts = (
        _events(spark, source, files)
        .groupBy("key")
        .transformWithState(Count(), "key string, count long", "Update", "None")
    )
    return _run(spark, counts, checkpoint, began)


def sql_count(source: str, checkpoint: str, files: int) -> dict[str, Any]:
    """Spark SQL's own count, all of it in the JVM: `groupBy("key").count()`."""
    began = time.perf_counter()
    spark = _session()
    return _run(spark, _events(spark, source, files).groupBy("key").count(), checkpoint, began)


def _session() -> SparkSession:
    os.environ["PYSPARK_PYTHON"] = sys.executable
    paths = [entry for entry in sys.path if entry and os.path.isdir(entry)]
    os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    conf = SparkConf(loadDefaults=False).setAppName("bench-peer").setMaster("local[*]")
    for name, value in (
        ("spark.driver.memory", "2g"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.driver.host", "127.0.0.1"),
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
        ("spark.sql.shuffle.partitions", str(len(os.sched_getaffinity(0)))),
        ("spark.sql.streaming.stateStore.providerClass", ROCKSDB),
        ("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true"),
    ):
        conf.set(name, value)
    with filtered_stderr() as stderr:
        gateway = launch_gateway(conf, {"stderr": stderr})  # type: ignore[no-untyped-call]
    spark = SparkSession(SparkContext(conf=conf, gateway=gateway))
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _events(spark: SparkSession, source: str, files: int) -> DataFrame:
    return spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", files).json(source)


def _run(spark: SparkSession, counts: DataFrame, checkpoint: str, began: float) -> dict[str, Any]:
    shutil.rmtree(checkpoint, ignore_errors=True)
    try:
        query = (
            counts.writeStream.format("noop")
            .outputMode("update")
            .option("checkpointLocation", Path(checkpoint).absolute().as_uri())
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return {"batches": _batches(query), "whole_s": time.perf_counter() - began}
    finally:
        spark.stop()


def _batches(query: StreamingQuery) -> list[tuple[int, float]]:
    """(events, end) of each batch, by Spark's own clock."""
    found = []
    for progress in query.recentProgress:
        start = datetime.fromisoformat(progress["timestamp"]).timestamp()
        ended = start + progress["durationMs"]["triggerExecution"] / 1_000
        found.append((progress["numInputRows"], ended))
    return found
