"""A minimal Spark program: a SparkContext, one job, the end.

`python -m bench.bare_spark` has pyspark's defaults; `python -m bench.bare_spark tuned` has the
JVM's flags and the sockets of Millstream (`millstream.spark.context`), and one task, like a small
batch. `startup` compares `millstream run` with both.
"""

from __future__ import annotations

import sys

from pyspark import SparkConf, SparkContext

EVENTS = 100


def main(tuned: bool) -> None:
    conf = SparkConf().setMaster("local[*]").setAppName("bare").set("spark.ui.enabled", "false")
    if tuned:
        from millstream.spark.context import JVM

        conf.set("spark.driver.extraJavaOptions", JVM)
        conf.set("spark.driver.bindAddress", "127.0.0.1").set("spark.driver.host", "127.0.0.1")
        conf.set("spark.python.unix.domain.socket.enabled", "true")
    context = SparkContext(conf=conf)
    numbers = context.parallelize(range(EVENTS), 1 if tuned else None)
    counted = numbers.map(lambda number: number + 1).count()
    context.stop()
    if counted != EVENTS:
        raise AssertionError(f"the job counted {counted}, not {EVENTS}")


if __name__ == "__main__":
    main("tuned" in sys.argv[1:])
