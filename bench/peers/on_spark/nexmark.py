"""Nexmark's streams as streaming DataFrames, and lines of answers."""

from __future__ import annotations

from on_spark.places import events
from pyspark.sql import DataFrame, SparkSession

AUCTIONS = "auction string, category string, ts long, expires long"
BIDS = "auction string, bidder string, price long, ts long"


def bids(spark: SparkSession) -> DataFrame:
    """The bids, with their time as `at`; none comes late."""
    rows: DataFrame = events(spark, BIDS, "bids").selectExpr("*", "timestamp_millis(ts) as at")
    return rows.withWatermark("at", "0 seconds")


def line(key: str, value: str) -> str:
    """The expression of a line: a key that is text, and a number."""
    return f"""concat('["', {key}, '", ', {value}, ']') as line"""
