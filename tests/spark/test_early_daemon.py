"""The workers' daemon that starts beside the JVM."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from millstream.spark import early_daemon
from millstream.spark.early_daemon import suits

OPENED = """
import os, sys
from millstream.spark import context as contexts
from millstream.spark.cluster_conf import ClusterAccess

def seen(number):
    return os.getppid(), os.environ.get("GIVEN")

access = ClusterAccess(spark=dict(word.split("=") for word in sys.argv[1:]))
opened = contexts.open_context("test", "local[1]", "1g", access=access)
early = contexts._early_daemons[opened].pid
"""
JOB = """
[(parent, given)] = opened.parallelize([1], 1).map(seen).collect()
print(parent == early, given, flush=True)
"""
CLOSED = """
contexts.close_context(opened)
print(os.path.exists(f"/proc/{early}"))
"""
HELD = """
print(early, flush=True)
sys.stdin.read()
"""


def said(script: str, *arguments: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("theirs", "is_fit"),
    [
        ({"A": "1", "PYTHONHASHSEED": "0"}, True),
        ({"A": "1", "PYTHONHASHSEED": "0", "SPARK_HOME": "/s", "SHLVL": "2", "_": "java"}, True),
        ({"A": "2", "PYTHONHASHSEED": "0"}, False),
        ({"A": "1", "PYTHONHASHSEED": "1"}, False),
        ({"A": "1", "PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "4"}, False),
        ({"A": "1", "PYTHONHASHSEED": "0", "PYTHONPATH": "/elsewhere"}, False),
    ],
)
def test_an_environment_that_changes_a_process_is_refused(
    theirs: dict[str, str], is_fit: bool
) -> None:
    """What Spark and a shell set for their own use may differ; everything else must be equal."""
    assert suits({"A": "1", "PYTHONHASHSEED": "0"}, theirs) is is_fit


def test_the_early_daemon_has_a_session_of_its_own(tmp_path: Path) -> None:
    """So its workers take no part of the cores that belong to the server, in the driver's session,
    and Ctrl-C does not reach them."""
    daemon = early_daemon.start(str(tmp_path))
    try:
        assert os.getsid(daemon.pid) == os.getpgid(daemon.pid) == daemon.pid
    finally:
        early_daemon.end(daemon, 60)


@pytest.mark.spark
def test_spark_takes_the_early_daemon() -> None:
    """The workers are its children, and it ends with Spark."""
    assert said(OPENED + JOB + CLOSED) == ["True None", "False"]


@pytest.mark.spark
def test_workers_with_another_environment_get_a_daemon_of_their_own() -> None:
    """The early daemon does not have it; the workers do, and nothing is left of either."""
    given = "spark.executorEnv.GIVEN=5"
    assert said(OPENED + JOB + CLOSED, given) == ["False 5", "False"]


@pytest.mark.spark
def test_an_early_daemon_that_is_not_needed_ends_with_its_context() -> None:
    """A context without a job has none that Spark could have taken."""
    assert said(OPENED + CLOSED) == ["False"]


@pytest.mark.spark
@pytest.mark.parametrize("job", ["", JOB])
def test_an_early_daemon_ends_with_the_driver(job: str) -> None:
    """However the driver ends, whether or not Spark has taken the daemon."""
    with subprocess.Popen(
        [sys.executable, "-c", OPENED + job + HELD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdout is not None
        lines = [driver.stdout.readline() for _ in range(2 if job else 1)]
        driver.send_signal(signal.SIGKILL)
    daemon, until = Path(f"/proc/{int(lines[-1])}"), time.monotonic() + 60
    while daemon.exists() and time.monotonic() < until:
        time.sleep(0.05)
    assert not daemon.exists()
