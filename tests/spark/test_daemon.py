"""The process that forks Spark's Python workers."""

from __future__ import annotations

import os
import subprocess
import sys

HUNG_UP = """
import socket
from millstream.spark.daemon import worker

ours, spark = socket.socketpair()
spark.close()
worker(ours, True)
"""


def test_a_worker_that_spark_hung_up_on_says_nothing() -> None:
    """A worker whose socket is closed before it is ended leaves without a traceback."""
    environment = os.environ | {"PYTHON_DAEMON_KILL_WORKER_ON_FLUSH_FAILURE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", HUNG_UP], env=environment, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
