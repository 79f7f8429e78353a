"""Events that were acknowledged survive kills at random moments: none is lost, none counted twice.

A sender posts numbered events without a pause, each request with an idempotency key, and repeats
a request until it is acknowledged. Meanwhile `millstream run` is killed again and again, with its
JVM and its server, or only its server, at a moment drawn by seed, and started anew.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from random import Random

import pytest
from spark.harness import kept_rows

from millstream import Client
from millstream.errors import MillstreamError
from millstream.stores.reader import SlateReader

pytestmark = pytest.mark.spark
HERE = Path(__file__).parent
SEEDS = int(os.environ.get("MILLSTREAM_FAULT_SEEDS", "2"))
KILLS = max(3, SEEDS * 50 // 20)
"""Fifty in the whole of the fault runs."""
MILLSTREAM = [sys.executable, "-m", "millstream.cli.main"]


class Sender(threading.Thread):
    """Sends numbered events until it is told to stop, and knows which were acknowledged."""

    def __init__(self, store: Path) -> None:
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self.acknowledged = 0
        self._store = store

    def run(self) -> None:
        while not self.stop.is_set():
            batch = [{"id": str(self.acknowledged + n)} for n in range(20)]
            self._until_acknowledged(batch)
            self.acknowledged += len(batch)

    def _until_acknowledged(self, batch: list[dict[str, str]]) -> None:
        key = f"batch-{self.acknowledged}"
        while True:
            try:
                with Client(address(self._store), retries=0) as client:
                    sent = client.send("events", batch, idempotency_key=key)
                assert (sent.accepted, sent.refused) == (len(batch), ())
                return
            except MillstreamError:
                time.sleep(0.05)  # it is down: it will be started again


def address(store: Path) -> str:
    """Where the store's server was last seen."""
    try:
        return str(json.loads((store / "server.lock").read_text())["url"])
    except (OSError, ValueError):
        return "http://127.0.0.1:9"


def start(store: Path, *flags: str) -> subprocess.Popen[bytes]:
    """The application in a process group of its own, its JVM and its server included."""
    return subprocess.Popen(
        [*MILLSTREAM, "run", str(HERE / "sent_app.py"), "--store", str(store), *flags],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def end(running: subprocess.Popen[bytes]) -> None:
    """Kill the whole group at once, as a power cut would."""
    os.killpg(running.pid, signal.SIGKILL)
    running.communicate()


def kill_server(store: Path) -> None:
    try:
        os.kill(json.loads((store / "server.lock").read_text())["pid"], signal.SIGKILL)
    except (OSError, ValueError):
        pass  # it is not up yet


@pytest.mark.faults
def test_acknowledged_events_survive(tmp_path: Path) -> None:
    """After all the kills and a run to the end, each acknowledged event has been counted exactly
    once, in its slate and on the output stream."""
    store, random = tmp_path / "store", Random(3)
    sender = Sender(store)
    running = start(store, "--port", "0")
    sender.start()
    try:
        for _ in range(KILLS):
            time.sleep(random.uniform(0.2, 9.0))  # the moment is the point
            if random.random() < 0.3:
                kill_server(store)
                continue
            end(running)
            running = start(store, "--port", "0")
        deadline = time.monotonic() + 60
        reached = sender.acknowledged + 100
        while sender.acknowledged < reached:
            assert time.monotonic() < deadline, "nothing is acknowledged any more"
            time.sleep(0.1)
        sender.stop.set()
        sender.join(60)
    finally:
        sender.stop.set()
        end(running)
    last = subprocess.run(
        [*MILLSTREAM, "run", str(HERE / "sent_app.py"), "--store", str(store), "--available-now"],
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert last.returncode == 0, last.stderr
    sent = {str(number): 1 for number in range(sender.acknowledged)}
    with SlateReader(store) as reader:
        assert {slate.key: slate.value["n"] for slate in reader.scan("count")} == sent
    seen = kept_rows(store, "seen")
    assert len(seen) == len(sent)
    assert {row["key"]: row["value"] for row in seen} == sent
