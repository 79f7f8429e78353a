"""`App.start`: a run in a thread of the caller, watched and stopped through its handle.

Each in a process of its own: a process has one Spark context, and the tests share one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

COUNTING = """
import threading
import millstream as ms

app = ms.App("counting")
app.source("visits", key="user")

@app.update("visits")
def count(event, slate):
    slate["n"] = slate.get("n", 0) + 1
"""
RUN = """
if __name__ == "__main__":
    told, counted = [], threading.Event()

    def on_batch(batch):
        told.append(batch.events)
        if sum(told) == 3:
            counted.set()

    running = app.start(store="store", port=0, shards=2, on_batch=on_batch)
    with running.client() as client:
        client.send("visits", [{"user": "ann"}, {"user": "bob"}, {"user": "ann"}])
        assert counted.wait(120)
        assert client.get("count", "ann").value == {"n": 2}
    assert running.is_running
    assert running.last_batch is not None
    assert "running" in repr(running)
    running.stop()
    assert running.wait(60).events == 3
    assert not running.is_running
    with ms.SlateReader("store") as reader:
        assert reader.get("count", "bob").value == {"n": 1}
    print("all is well")
"""
FAIL = """
if __name__ == "__main__":
    try:
        app.start(store="file", port=0, shards=2)
    except ms.MillstreamError as error:
        print("refused:", error)
"""

BESIDE = """
import os, sys
os.environ["PYSPARK_PYTHON"] = sys.executable  # as where an environment is activated

def sent(running, user):
    counted = threading.Event()
    running._on_batch = lambda batch: batch.events and counted.set()
    with running.client() as client:
        client.send("visits", [{"user": user}])
        while not counted.wait(0.2):
            assert running.is_running, running._error
        return client.get("count", user).value["n"]

if __name__ == "__main__":
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

    # In a session of the process, which goes on.
    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.getOrCreate()
    with app.start(store="store", port=0, shards=2) as running:
        assert sent(running, "ann") == 1
        assert session.range(10).count() == 10
    assert session.range(10).count() == 10
    assert SparkContext._active_spark_context is session.sparkContext

    # After it, with a JVM of its own; that of the session is there when it has ended.
    session.stop()
    jvm = SparkContext._gateway
    with app.start(store="store", port=0, shards=2) as running:
        assert SparkContext._gateway is not jvm
        # Two at once: the one that ends first does not end the other.
        other = app.start(store="other", port=0, shards=2)
        assert sent(other, "bob") == 1
        assert sent(running, "ann") == 2
        other.stop()
        other.wait(60)
        assert sent(running, "ann") == 3
    assert SparkContext._active_spark_context is None
    assert SparkContext._gateway is jvm
    session = builder.getOrCreate()
    assert session.range(10).count() == 10
    print("all is well")
"""
OTHER_PYTHON = """
if __name__ == "__main__":
    import os, sys
    from pyspark.sql import SparkSession
    os.environ["PYSPARK_PYTHON"] = sys.argv[1]
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    running = app.start(store="store", port=0, shards=2)
    with running.client() as client:
        client.send("visits", [{"user": "ann"}])
    try:
        running.wait(120)
    except ms.RunError as error:
        print("refused:", error)
"""


def said(folder: Path, script: str, *words: str) -> str:
    """Returns the output of a script, which must succeed."""
    (folder / "app.py").write_text(COUNTING + script)
    # An earlier test of this process that opened a context has set PYTHONPATH for its workers.
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, "app.py", *words],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


def test_a_started_application_is_sent_to_read_watched_and_stopped(tmp_path: Path) -> None:
    """start() returns with a server that answers; on_batch is called; stop() and wait() end it."""
    assert "all is well" in said(tmp_path, RUN)


def test_a_start_that_fails_raises_at_once(tmp_path: Path) -> None:
    """start() itself raises the error that prevents a run."""
    (tmp_path / "file").write_text("no directory")
    assert "refused: " in said(tmp_path, FAIL)


def test_beside_a_session_and_beside_another_application(tmp_path: Path) -> None:
    """A session of the process is used and left open; a context of ours ends with its last run."""
    told = said(tmp_path, BESIDE)
    assert "all is well" in told
    assert "this process has a SparkContext" in told
    assert "Traceback" not in told


def test_a_session_whose_python_has_no_millstream(tmp_path: Path) -> None:
    """The error says which Python the workers run, and what to set."""
    bare = tmp_path / "bare"
    venv.create(bare, symlinks=True)
    told = said(tmp_path, OTHER_PYTHON, str(bare / "bin" / "python"))
    assert f"they run {bare / 'bin' / 'python'}" in told
    assert f"set PYSPARK_PYTHON={sys.executable}" in told
