"""Millstream on Spark: the only package that imports pyspark.

runner           runs batches as Spark jobs; failures: one sentence for a failed one
context          opens a SparkContext; cluster_conf: its settings; context_lease: one for a run
class_archive    makes the JVM start faster; class_archive_path: where it is
jvm_noise        keeps a starting JVM quiet
executors        the hosts of the executors; seats: keeps a shard's tasks on its host
worker           runs in Spark's Python workers; daemon: forks them; worker_path: what they import
early_daemon     starts their daemon beside the JVM; daemon_handover: how Spark gets it
function_pickle  sends a user's functions to them
dump             writes slates in parallel; snapshot_barrier: as of one batch
foreach_batch    pours a streaming DataFrame into an application; poured_rows: its rows as lines

The only public name is `into` of `foreach_batch`: `millstream.spark.into`.
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
