"""The SparkContext that Millstream opens, and its JVM."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

pytestmark = pytest.mark.spark

OPENED = """
import sys
from millstream.spark.context import close_context, open_context

context = open_context("test", "local[1]", "1g")
opened_with_pandas = "pandas" in sys.modules
close_context(context)
print(opened_with_pandas)
"""

EARLY = """
import os, tempfile
from pyspark import SparkContext
from millstream.settings.setting_parts import ClusterSettings
from millstream.spark import context
from millstream.spark.context_lease import early_lease

cluster = ClusterSettings(master="local[1]")
with early_lease("test", cluster) as starting:
    pass
starting._thread.join()
assert starting._error is None, starting._error
print(SparkContext._active_spark_context, len(os.listdir(tempfile.gettempdir())))
with early_lease("test", cluster) as starting:
    print(len(context._left_folders) <= 1)
"""


def test_numbers_and_arrays_of_numpy_reach_the_jvm(spark: Any) -> None:
    """Calls of the JVM take NumPy's numbers and arrays, as with pyspark's own converters."""
    held = spark._jvm.java.util.ArrayList()
    held.add(np.int64(3))
    held.add(np.float64(2.5))
    held.add([4, 5])
    copied = spark._jvm.java.util.Arrays.copyOf(np.array([6, 7]), 1)
    assert [held[0], held[1], [*held[2]], [*copied]] == [3, 2.5, [4, 5], [6]]


def test_a_context_opens_and_closes_without_pandas() -> None:
    """To open and close a context does not import pandas, and says nothing."""
    done = subprocess.run(
        [sys.executable, "-c", OPENED], capture_output=True, text=True, timeout=120, env=os.environ
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """An empty folder whose path is short enough for sockets."""
    with TemporaryDirectory() as folder:
        yield Path(folder)


def test_a_lease_that_was_begun_early_and_not_used_leaves_nothing(short_folder: Path) -> None:
    """The context is closed once it has opened; a process that ends before removes its folder."""
    done = subprocess.run(
        [sys.executable, "-c", EARLY],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "TMPDIR": str(short_folder)},
    )
    assert (done.returncode, done.stdout) == (0, "None 0\nTrue\n"), done.stderr
    assert [path for path in short_folder.iterdir() if path.name.startswith("millstream-")] == []
