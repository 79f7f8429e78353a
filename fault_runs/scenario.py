"""What a scenario is, and what all of them share."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fault_runs.cluster import Cluster, cluster
from fault_runs.result import Result

if TYPE_CHECKING:
    from pyspark import SparkContext


class Context:
    """What scenarios share where their fault lets it live: a local SparkContext, a cluster.

    Each is opened when the first one asks for it, with the points that its Python workers pass
    written to `trace` (`millstream.engine.points`).
    """

    def __init__(self, spark: SparkContext | None = None, trace: Path | None = None) -> None:
        self._spark = spark
        self._ours = spark is None
        self._open = ExitStack()
        self._cluster: Cluster | None = None
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
        """A standalone cluster of two workers, whose Python workers write to `trace` too."""
        if self._cluster is None:
            made = cluster(2, environ={"MILLSTREAM_TRACE": str(self.trace)})
            self._cluster = self._open.enter_context(made)
        return self._cluster

    def close(self) -> None:
        """End what is ours."""
        self._open.close()
        self._cluster = None
        if self._ours and self._spark is not None:
            from millstream.spark.context import close_context

            close_context(self._spark)
            self._spark = None


Run = Callable[[int, Path, Context], Result]
"""Runs a scenario with a seed in an empty folder. The seed decides everything that is drawn."""


@dataclass(frozen=True, slots=True)
class Scenario:
    """A fault, what is promised under it, and how it is brought about."""

    name: str
    promise: str
    """One line of the table."""
    run: Run
    least: int = 20
    """How many runs the table must have."""
