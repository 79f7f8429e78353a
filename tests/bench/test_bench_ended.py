"""A benchmark that is ended ends what it has started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from bench.machine import ROOT
from bench.processes import Process, below, processes

PATIENCE = 60.0
A_CASE = """
import time
from bench.__main__ import CASES, main
from fault_runs.cluster import cluster

def waits(bench):
    with cluster(workers=0):
        time.sleep(600)

CASES["waits"] = waits
main(["waits"])
"""


def family_with_java(running: subprocess.Popen[bytes], said: Path) -> list[Process]:
    """The processes below one that runs, once a JVM is among them."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and running.poll() is None:
        family = below(running.pid, processes())
        if any(process.name == "java" for process in family):
            return family
        time.sleep(0.05)
    raise AssertionError(f"the benchmark has started no JVM: {said.read_text()}")


def test_sigterm_ends_the_cluster_too(tmp_path: Path) -> None:
    """SIGTERM to a benchmark with a Spark cluster ends both. No process is left."""
    with (tmp_path / "said").open("wb") as said:
        running = subprocess.Popen(
            [sys.executable, "-c", A_CASE], cwd=ROOT, stdout=said, stderr=said
        )
    family: list[Process] = []
    try:
        family = family_with_java(running, tmp_path / "said")
        os.kill(running.pid, signal.SIGTERM)
        assert running.wait(PATIENCE) == 128 + signal.SIGTERM, (tmp_path / "said").read_text()
        known = {(process.pid, process.name) for process in family}
        assert [one for one in processes() if (one.pid, one.name) in known] == []
    finally:
        for process in family:
            if process.name == "java" and os.path.exists(f"/proc/{process.pid}"):
                os.kill(process.pid, signal.SIGKILL)
        running.kill()
        running.wait()
