"""Counts the keys with Spark's own count; the counts that a micro-batch has changed are written."""

from __future__ import annotations

import os

from on_spark.places import events, run_query, session
from pyspark.sql import DataFrame


def written(batch: DataFrame, number: int) -> None:
    lines = batch.selectExpr("""concat('["', key, '", ', count, ', ', count, ']') as line""")
    lines.write.mode("overwrite").text(f"{os.environ['PEER_RESULT']}/{number}")


if __name__ == "__main__":
    spark = session()
    counts = events(spark, "key string, ts long, n int", "").groupBy("key").count()
    run_query(spark, counts.writeStream.foreachBatch(written).outputMode("update"))
