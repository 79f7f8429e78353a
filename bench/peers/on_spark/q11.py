"""Nexmark's q11 with PySpark: a count over session windows of each bidder."""

from __future__ import annotations

from on_spark.nexmark import bids, line
from on_spark.places import run, session
from pyspark.sql.functions import session_window

if __name__ == "__main__":
    spark = session()
    counts = bids(spark).groupBy("bidder", session_window("at", "10 seconds")).count()
    name = "bidder, ' ', unix_millis(session_window.start)"
    run(spark, counts.selectExpr(line(name, "count")))
