"""A driver is killed at random moments, while events are sent to it.

A sender posts numbered events over HTTP, each request with an idempotency key, and repeats a
request until it is acknowledged. Meanwhile `millstream run` is killed again and again with its
server, at a moment drawn by seed, and started again; its JVM ends by itself. In between, sometimes
only its server is killed. Some drivers die while they start, some soon after their first commit,
the others while batches run.
"""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections import Counter
from pathlib import Path
from random import Random

from fault_runs.outcome import Difference, kept_rows
from fault_runs.processes import MILLSTREAM, ROOT, Started, seconds_to_commit, start
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from millstream import Client
from millstream.errors import MillstreamError
from millstream.stores.reader import SlateReader

KILLS = 3
APP = ROOT / "fault_runs" / "sent_app.py"


class Sender(threading.Thread):
    """Sends numbered events until it is stopped, and records which were acknowledged."""

    def __init__(self, store: Path) -> None:
        super().__init__(daemon=True)
        self.stop = threading.Event()
        self.acknowledged = 0
        self._store = store

    def run(self) -> None:
        while not self.stop.wait(0.02):  # a thousand a second: the load is low on purpose
            batch = [{"id": str(self.acknowledged + n)} for n in range(20)]
            self._until_acknowledged(batch)
            self.acknowledged += len(batch)

    def _until_acknowledged(self, batch: list[dict[str, str]]) -> None:
        key = f"batch-{self.acknowledged}"
        while True:
            try:
                with Client(_address(self._store), retries=0) as client:
                    sent = client.send("events", batch, idempotency_key=key)
                assert (sent.accepted, sent.refused) == (len(batch), ())
                return
            except MillstreamError:
                time.sleep(0.05)  # the server is down, and will be started again


def run_at_random(seed: int, folder: Path, context: Context) -> Result:
    """Kill and start again, then let it finish: each acknowledged event must be counted exactly
    once, in its slate and on the output stream."""
    random, store, times = Random(seed), folder / "store", list[float]()
    sender = Sender(store)
    running = _start(folder)
    sender.start()
    try:
        for kill in range(KILLS):
            if random.random() < 0.25:
                time.sleep(random.uniform(0.2, 5.0))  # a random moment is intended
            else:
                seconds = seconds_to_commit(store, running)
                if seconds is None:
                    raise AssertionError(f"the driver ended by itself: {running.said()}")
                times += [seconds] if kill else []  # the first start has nothing to recover
                time.sleep(random.choice([0.3, 4.0]) * random.random())
                if random.random() < 0.3:
                    _kill_server(store)
                    time.sleep(2.0 * random.random())
            running.kill()
            running = _start(folder)
        last = seconds_to_commit(store, running)
        times += [last] if last is not None else []
        _wait_for_more(sender)
        sender.stop.set()
        sender.join(60)
    finally:
        sender.stop.set()
        running.kill()
    ending = start(
        [*MILLSTREAM, "run", str(APP), "--store", str(store), "--available-now"], folder / "said"
    )
    if ending.wait() != 0:
        raise AssertionError(f"the last run failed: {ending.said()}")
    found = _difference(store, sender.acknowledged)
    note = found.note or f"{sender.acknowledged} events acknowledged"
    return Result(AT_RANDOM.name, seed, found.lost, found.doubled, tuple(times), note, runs=KILLS)


def _start(folder: Path) -> Started:
    arguments = ["run", str(APP), "--store", str(folder / "store"), "--port", "0"]
    return start([*MILLSTREAM, *arguments], folder / "said")


def _address(store: Path) -> str:
    """The last known address of the store's server."""
    try:
        return str(json.loads((store / "server.lock").read_text())["url"])
    except (OSError, ValueError):
        return "http://127.0.0.1:9"


def _kill_server(store: Path) -> None:
    try:
        os.kill(json.loads((store / "server.lock").read_text())["pid"], signal.SIGKILL)
    except (OSError, ValueError):
        pass  # the server is not up yet


def _wait_for_more(sender: Sender) -> None:
    """Wait until more events are acknowledged: the application runs again."""
    deadline, reached = time.monotonic() + 60, sender.acknowledged + 100
    while sender.acknowledged < reached:
        if time.monotonic() > deadline:
            raise AssertionError("nothing is acknowledged any more")
        time.sleep(0.05)


def _difference(store: Path, acknowledged: int) -> Difference:
    """Compares with the reference's result: for each event a slate of 1, and a row with 1."""
    must = Counter(
        (kind, str(number), 1) for number in range(acknowledged) for kind in ("slate", "row")
    )
    with SlateReader(store) as reader:
        have = Counter(("slate", slate.key, slate.value["n"]) for slate in reader.scan("count"))
    have.update(("row", row["key"], row["value"]) for row in kept_rows(store, "seen"))
    lost, doubled = must - have, have - must
    note = "; ".join(map(str, [*lost, *doubled][:4]))
    return Difference(lost.total(), doubled.total(), note)


AT_RANDOM = Scenario(
    "driver-killed-at-random",
    "Every event that was acknowledged is counted once, however often the application is killed",
    run_at_random,
    least=40,
)
