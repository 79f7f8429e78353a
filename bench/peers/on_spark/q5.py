"""Nexmark's q5 with PySpark: counts over sliding windows of each auction, then those of a window
that have the highest."""

from __future__ import annotations

from on_spark.nexmark import bids
from on_spark.places import run, session
from pyspark.sql.functions import collect_list, explode, expr, struct, window

if __name__ == "__main__":
    spark = session()
    counts = bids(spark).groupBy("auction", window("at", "10 seconds", "2 seconds")).count()
    gathered = counts.groupBy("window").agg(
        collect_list(struct("count", "auction")).alias("counts")
    )
    hottest = expr("filter(counts, c -> c.count = array_max(counts).count)")
    rows = gathered.select("window", explode(hottest).alias("hot")).selectExpr(
        """concat('["', unix_millis(window.start), '", [', hot.count, ', "', hot.auction, '"]]')
        as line"""
    )
    run(spark, rows)
