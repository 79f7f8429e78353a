"""Visits to pages, from a streaming DataFrame of Spark into an application.

Spark's rate source stands for any that Spark can read: Kafka, Delta, files. Each micro-batch is
taken in exactly once, also when this is stopped with Ctrl-C and started again.

    python examples/pour.py                               until Ctrl-C, with a live page
    millstream slates scan visits --store .millstream/pour
    curl http://127.0.0.1:8470/slates/visits/~pricing
"""

import argparse
import os
import signal
import sys
import threading
import time

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import millstream as ms

app = ms.App("pour")
app.source("visits", key="page", ts="timestamp")


@app.update("visits", name="visits")
def count(event: ms.Event, slate: dict[str, int]) -> None:
    """Counts the visits of a page, and those from mobile phones."""
    slate["count"] = slate.get("count", 0) + 1
    slate["mobile"] = slate.get("mobile", 0) + event.value["mobile"]


def visits(spark: SparkSession, rate: int) -> DataFrame:
    """Generates a number of visits a second to five pages, with more to the first ones."""
    numbers = spark.readStream.format("rate").option("rowsPerSecond", rate).load()
    return numbers.selectExpr(
        "timestamp",
        "element_at(array('~home', '~home', '~docs', '~pricing', '~blog'), int(value % 5) + 1) "
        "as page",
        "value % 3 = 0 as mobile",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rate", type=int, default=500, help="visits a second")
    parser.add_argument("--port", type=int, default=8470, help="of the live page")
    parser.add_argument("--seconds", type=float, help="how long; until Ctrl-C if left out")
    given = parser.parse_args()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # for Spark's workers
    spark = SparkSession.builder.master("local[*]").appName("pour").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    with ms.spark.into(app, "visits", serve=True, port=given.port) as pour:
        writer = visits(spark, given.rate).writeStream.foreachBatch(pour)
        query = writer.option("checkpointLocation", ".millstream/pour-checkpoint").start()
        wait(query, given.seconds)
        query.stop()
    spark.stop()


def wait(query: StreamingQuery, seconds: float | None) -> None:
    """Wait for Ctrl-C, the time given, or the end of the query; raises what ended it."""
    stop = threading.Event()
    # Spark's own handler would interrupt whatever the main thread asks of the JVM just then.
    signal.signal(signal.SIGINT, lambda number, frame: stop.set())
    until = time.monotonic() + (seconds or float("inf"))
    while query.isActive and time.monotonic() < until and not stop.wait(0.2):
        pass
    if not query.isActive:
        query.awaitTermination()


if __name__ == "__main__":
    main()
