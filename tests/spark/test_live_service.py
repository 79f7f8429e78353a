"""`millstream run` and `millstream serve` as a user starts them, together and apart."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import pytest

from millstream import Client, MillstreamError
from millstream.server.lock import served_by

pytestmark = pytest.mark.spark
HERE = Path(__file__).parent
T = TypeVar("T")


def start(*words: str) -> subprocess.Popen[str]:
    """A command in a process group of its own; its JVM, which has another, ends with it."""
    return subprocess.Popen(
        [sys.executable, "-m", "millstream.cli.main", *words],
        env={k: v for k, v in os.environ.items() if not k.startswith("MILLSTREAM_")},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


@contextmanager
def ended(process: subprocess.Popen[str]) -> Iterator[subprocess.Popen[str]]:
    """Ends all processes of the group in any case."""
    try:
        yield process
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def until(found: Callable[[], T], process: subprocess.Popen[str], seconds: float = 120) -> T:
    """Waits until the result of `found` is true, while the process lives, and returns it."""
    deadline = time.monotonic() + seconds
    while not (value := found()):
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < deadline, f"not within {seconds} seconds"
        time.sleep(0.05)
    return value


def answers(url: str) -> bool:
    try:
        with Client(url, retries=0) as client:
            return client.status().app == "live"
    except MillstreamError:
        return False


def counted(client: Client, key: str) -> int:
    slate = client.get("count", key)
    return 0 if slate is None else slate.value["n"]


def test_a_server_outlives_the_application(tmp_path: Path) -> None:
    """A server that was started alone takes events before the application first runs, and reads and
    takes events while it is down after a kill; nothing is lost, nothing counted twice. SIGTERM to
    its whole process group, as a service manager sends it, ends the application within five
    seconds, without a traceback, and the server goes on."""
    store, app = tmp_path / "store", str(HERE / "live_app.py")
    with ended(start("serve", app, "--store", str(store), "--port", "0")) as server:
        url = until(lambda: (there := served_by(store)) and there.url, server)
        until(lambda: answers(url), server)  # it has its address a moment before it listens
        with Client(url) as client:
            client.send("events", [{"key": "a", "add": 1}] * 10)
            assert client.get("count", "a") is None
            with ended(start("run", app, "--store", str(store))) as run:
                until(lambda: counted(client, "a") == 10, run)
                assert client.status().running
                os.killpg(run.pid, signal.SIGKILL)
                assert f"using the server that is already running: {url}" in run.communicate()[1]
            assert counted(client, "a") == 10
            assert not client.status().running
            client.send("events", [{"key": "a", "add": 1}] * 5)
            with ended(start("run", app, "--store", str(store))) as run:
                until(lambda: counted(client, "a") == 15, run)
                rows = client.tail("counts", start="start", limit=15)
                assert sorted(row.value["value"] for row in rows) == list(range(1, 16))
                began = time.monotonic()
                os.killpg(run.pid, signal.SIGTERM)
                said = run.communicate(timeout=30)[1]
                assert time.monotonic() - began < 5
                assert (run.returncode, "Traceback" in said, "py4j" in said) == (0, False, False), (
                    said
                )
            assert client.get("count", "a") is not None
        os.kill(server.pid, signal.SIGINT)
        assert server.communicate(timeout=10)[1].endswith("millstream: stopped\n")
        assert server.returncode == 0
    assert served_by(store) is None


def test_a_server_beside_a_run_is_started_again(tmp_path: Path) -> None:
    """The server of a run that is killed comes back at the same address by itself; it ends with the
    run, also when that is killed; and a port in use is told before Spark starts."""
    store, app = tmp_path / "store", str(HERE / "live_app.py")
    with ended(start("run", app, "--store", str(store), "--port", "0")) as run:
        first = until(lambda: served_by(store), run)
        until(lambda: answers(first.url), run)
        os.kill(first.pid, signal.SIGKILL)
        until(lambda: (now := served_by(store)) and now.pid != first.pid, run)
        second = served_by(store)
        assert second is not None
        assert second.url == first.url
        until(lambda: answers(second.url), run)
        with Client(second.url) as client:
            client.send("events", [{"key": "b", "add": 2}, {"key": "b", "add": "x"}])
            until(lambda: counted(client, "b") == 2, run)
            (letter,) = until(lambda: list(letters(client)), run)
            assert letter["function"] == "count"
            taken = re.sub(r".*:", "", second.url)
            other = start("run", app, "--store", str(tmp_path / "other"), "--port", taken)
            said = other.communicate(timeout=60)[1]
            assert other.returncode == 1
            assert "another program listens there; name another port with --port" in said
        os.killpg(run.pid, signal.SIGKILL)
        run.communicate()
    deadline = time.monotonic() + 10
    while served_by(store) is not None:
        assert time.monotonic() < deadline, "the server has not ended with its run"
        time.sleep(0.05)


def letters(client: Client) -> Iterator[dict[str, object]]:
    """The dead letters so far."""
    count = client.status().dead_letters
    if count:
        for record in client.tail("deadletters", start="start", limit=count):
            yield json.loads(json.dumps(record.value))
