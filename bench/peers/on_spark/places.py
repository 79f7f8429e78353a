"""A Spark session, its streaming input, and a query over all of it.

State is in RocksDB with changelog checkpointing, as Spark's guide to performance has it; every
micro-batch is durable. A micro-batch is one file of the input.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

from progress import Progress
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def session() -> SparkSession:
    """A session on all cores, with as many partitions of state."""
    builder = SparkSession.builder.master("local[*]").appName("peer")
    for name, value in (
        ("spark.driver.memory", "2g"),
        ("spark.driver.bindAddress", "127.0.0.1"),
        ("spark.driver.host", "127.0.0.1"),
        ("spark.ui.enabled", "false"),
        ("spark.ui.showConsoleProgress", "false"),
        ("spark.sql.session.timeZone", "UTC"),
        ("spark.sql.shuffle.partitions", str(len(os.sched_getaffinity(0)))),
        ("spark.sql.streaming.stateStore.providerClass", ROCKSDB),
        ("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true"),
    ):
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def events(spark: SparkSession, schema: str, folder: str, files: int = 1) -> DataFrame:
    """The rows of the files of a folder of the input, so many files a micro-batch."""
    source = str(Path(os.environ["PEER_INPUT"]) / folder)
    files = 1_000 if os.environ.get("PEER_LIVE") else files
    return spark.readStream.schema(schema).option("maxFilesPerTrigger", files).json(source)


def run(spark: SparkSession, answers: DataFrame) -> None:
    """Append the column `line` of every micro-batch to files."""
    files = answers.writeStream.format("text").option("path", os.environ["PEER_RESULT"])
    run_query(spark, files.outputMode("append"))


def run_query(spark: SparkSession, writer: DataStreamWriter) -> None:
    """Run a query until its input ends; says after each micro-batch how far it is."""
    slots = Progress(f"{os.environ['PEER_PROGRESS']}-0").slots
    checkpoint = writer.option("checkpointLocation", os.environ["PEER_STATE"])
    if os.environ.get("PEER_LIVE"):
        checkpoint.start().awaitTermination()
    query = checkpoint.trigger(availableNow=True).start()
    seen, active = -1, True
    while active:
        time.sleep(0.05)
        active = query.isActive
        for progress in query.recentProgress:
            if progress["batchId"] > seen:
                seen = progress["batchId"]
                slots[0] += progress["numInputRows"]
    query.awaitTermination()  # raises what it has failed with
    spark.stop()
