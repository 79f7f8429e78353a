"""Nexmark's q7 with PySpark: the highest price of tumbling windows."""

from __future__ import annotations

from on_spark.nexmark import bids, line
from on_spark.places import run, session
from pyspark.sql.functions import max as highest
from pyspark.sql.functions import window

if __name__ == "__main__":
    spark = session()
    prices = bids(spark).groupBy(window("at", "10 seconds")).agg(highest("price").alias("price"))
    run(spark, prices.selectExpr(line("unix_millis(window.start)", "price")))
