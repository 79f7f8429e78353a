"""The type of a scenario, and the context that scenarios share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fault_runs.cluster import Cluster, cluster
from fault_runs.host_cluster import HostCluster, host_cluster
from fault_runs.result import Result

if TYPE_CHECKING:
    from pyspark import SparkContext


class Context:
    """The parts that scenarios share if these survive their faults: a SparkContext, a cluster.

    Each is opened when the first scenario needs it. The points that its Python workers pass are
    written to `trace` (`millstream.engine.points`).
    """

    def __init__(
        self,
        spark: SparkContext | None = None,
        trace: Path | None = None,
        hosts: HostCluster | None = None,
    ) -> None:
        self._spark = spark
        self._ours = spark is None
        self._open = ExitStack()
        self._cluster: Cluster | None = None
        self._hosts = hosts
        self.trace = trace or Path(tempfile.mkdtemp(prefix="fault-runs-")) / "points"

    @property
    def spark(self) -> SparkContext:
        """The SparkContext, with two cores."""
        if self._spark is None:
            os.environ["MILLSTREAM_TRACE"] = str(self.trace)
            from millstream.spark.context import open_context

            self._spark = open_context("fault-runs", "local[2]", "1g")
        return self._spark

    @property
    def cluster(self) -> Cluster:
        """A standalone cluster of two workers; their Python workers write to `trace` too."""
        if self._cluster is None:
            made = cluster(2, environ={"MILLSTREAM_TRACE": str(self.trace)})
            self._cluster = self._open.enter_context(made)
        return self._cluster

    @property
    def hosts(self) -> HostCluster:
        """A cluster whose hosts have their own addresses and disks."""
        if self._hosts is None:
            self._hosts = self._open.enter_context(host_cluster())
        return self._hosts

    def close(self) -> None:
        """End what this context has opened."""
        self._open.close()
        self._cluster = self._hosts = None
        if self._ours and self._spark is not None:
            from millstream.spark.context import close_context

            close_context(self._spark)
            self._spark = None


Run = Callable[[int, Path, Context], Result]
"""Runs a scenario with a seed in an empty folder. The seed determines all random choices."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A fault, the promise under it, and the function that causes it."""

    name: str
    promise: str
    """One line of the table."""
    run: Run
    least: int = 20
    """The least number of runs for the table."""
