"""The process that forks Spark's Python workers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

HUNG_UP = """
import socket
from millstream.spark.daemon import worker

ours, spark = socket.socketpair()
spark.close()
worker(ours, True)
"""

IMPORTED = """
import sys
from millstream.spark.context import close_context, open_context

def imported(number):
    import sys
    import numpy, pyarrow.compute as pc
    there = "millstream.driver.stages" in sys.modules
    many = numpy.ones((600, 600))
    return there, float((many @ many).sum()), pc.sum(list(range(100_000))).as_py()

context = open_context("test", "local[2]", "1g")
print(context.parallelize(range(2), 2).map(imported).collect())
close_context(context)
"""


def test_a_worker_that_spark_hung_up_on_says_nothing() -> None:
    """A worker whose socket is closed before it is ended leaves without a traceback."""
    environment = os.environ | {"PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", HUNG_UP], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.spark
def test_workers_have_what_a_task_needs_and_its_threads_work() -> None:
    """A new worker need not import it; what NumPy and Arrow do in threads works after the fork."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTED], capture_output=True, text=True, timeout=120
    )
    answer = (True, 600.0**3, sum(range(100_000)))
    assert (done.stdout, done.stderr) == (f"{[answer, answer]}\n", "")
