"""Millstream on Spark: the only package that imports pyspark.

`runner` runs batches as Spark jobs, in a SparkContext that `context` opens; `worker` has the code
that runs in Spark's Python workers. `dump` writes slates in parallel. `foreach_batch` pours a
streaming DataFrame into an application; its `into` is the only public name,
`millstream.spark.into`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from millstream.spark.foreach_batch import into as into


def __getattr__(name: str) -> Any:
    """Loads `into` on first use: Spark's Python workers import this package too."""
    if name == "into":
        from millstream.spark.foreach_batch import into

        return into
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
