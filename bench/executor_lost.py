"""An executor is lost while the store has a million slates: how soon do batches go on?

The cluster is standalone with two hosts (each with its own address on loopback and its own folder
for copies); the store is in a real S3 server on the same machine. A run counts a million keys, and
then events that touch all shards, one file after the other. An executor is killed: its worker
starts another, which finds the copies on its host's disk. Then a host is lost with its disk: the
other one restores its shards from S3. The time is from the kill to the commit of events that came
after it.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from bench import data, on_millstream
from bench.apart import RunFailedError, run_apart
from bench.bench import Bench
from bench.calibration import calibrate
from bench.figures import Bar, Outcome
from bench.shared import service
from fault_runs.cluster import Cluster, cluster
from millstream.driver.report import BatchSummary
from millstream.places.place_address import place_at
from millstream.settings.settings import Settings
from millstream.spark.runner import run as run_on_spark
from millstream.stores.shared.commit_log import CommitLog

SLATES, QUICK_SLATES = 1_000_000, 20_000
KILLS, HOSTS_LOST = 5, 3
SHARDS, TASKS, WORKERS = 64, 4, 2
FILE_EVENTS, FILE_SECONDS = 1_000, 0.25
MOST_SECONDS = 10.0
PATIENCE = 180.0


def run(bench: Bench) -> Outcome:
    slates = QUICK_SLATES if bench.quick else SLATES
    kills, hosts = (1, 1) if bench.quick else (KILLS, HOSTS_LOST)
    with service(bench.fresh("s3")) as s3:
        result, _ = run_apart(
            measured,
            folder=str(bench.fresh("executor-lost")),
            place=s3.server.address(f"lost-{time.time_ns()}"),
            slates=slates,
            kills=kills,
            hosts=hosts,
        )
    rows = result["rows"]
    for row in rows:
        bench.say(f"  {row['what']}: {row['seconds']:.2f} s")
    executor = [row["seconds"] for row in rows if row["what"].startswith("executor")]
    host = [row["seconds"] for row in rows if row["what"].startswith("host")]
    figures = {"executor_worst_s": max(executor), "host_worst_s": max(host)}
    return Outcome(
        "executor_lost",
        rows,
        {**figures, "batch_p50_s": result["batch_s"], "calibration": calibrate()},
        [Bar(name, value, MOST_SECONDS, at_least=False) for name, value in figures.items()],
        {"slates": slates, "shards": SHARDS, "tasks": TASKS, "workers": WORKERS},
        [
            "from the kill to the commit of events that came after it; the worst of each kind has "
            "the bar",
            f"shards with a base in S3 at the end: {result['bases']} of {SHARDS}",
        ],
    )


def measured(folder: str, place: str, slates: int, kills: int, hosts: int) -> dict[str, Any]:
    """The whole measurement, in a process of its own."""
    root = Path(folder)
    with cluster(workers=WORKERS, hosts=True, memory="1g") as machines:
        live = LiveRun(root, place, machines, slates)
        try:
            live.fill()
            rows = [live.strike(f"executor {n + 1}", live.kill_executor) for n in range(kills)]
            rows += [live.strike(f"host {n + 1}", live.lose_host) for n in range(hosts)]
        finally:
            live.close()
    state = CommitLog(place_at(place)).load()
    return {
        "rows": rows,
        "batch_s": live.calm_batch(),
        "bases": len(state.manifest.bases) if state is not None else 0,
    }


class LiveRun:
    """A run on the cluster, and a thread that keeps adding events."""

    def __init__(self, root: Path, place: str, machines: Cluster, slates: int) -> None:
        self._machines, self._slates = machines, slates
        self._source, self._hidden = root / "in", root / "writing"
        self._source.mkdir(parents=True)
        self._random, self._files, self._given = Random(1), 0, 0
        self._counted, self._error = 0, ""
        self._seconds: list[float] = []
        self._stop, self._full, self._lock = threading.Event(), threading.Event(), threading.Lock()
        self._settings = Settings.of(
            "bench",
            root / "work",
            {"events": f"json:{self._source}"},
            place=place,
            master=machines.url,
            shards=SHARDS,
            tasks=TASKS,
            memory="1g",
        )
        self._run = threading.Thread(target=self._go)
        self._feed = threading.Thread(target=self._keep_coming)

    def fill(self) -> None:
        """Count every key once, then start the load and wait until it runs steadily."""
        for first in range(0, self._slates, 100_000):
            self._put(range(first, min(first + 100_000, self._slates)))
        self._run.start()
        self._await(self._given)
        self._feed.start()
        self._settle()

    def strike(self, what: str, fault: Callable[[], None]) -> dict[str, Any]:
        """Cause a fault; returns the seconds until events that came after it are committed."""
        began = time.monotonic()
        fault()
        self._await(self._put(self._some()))
        seconds = time.monotonic() - began
        self._settle()
        return {"what": what, "seconds": seconds}

    def kill_executor(self) -> None:
        self._machines.kill_executor(self._random.randrange(WORKERS))

    def lose_host(self) -> None:
        """Lose the first host, with its copies; another replaces it later."""
        lost = min(self._machines.workers)
        self._machines.kill_worker(lost)
        shutil.rmtree(self._machines.cache_of(lost), ignore_errors=True)

    def calm_batch(self) -> float:
        """The median time of a batch."""
        return sorted(self._seconds)[len(self._seconds) // 2]

    def close(self) -> None:
        self._full.set()
        self._stop.set()
        for thread in (self._feed, self._run):
            if thread.ident is not None:
                thread.join()
        if self._error:
            raise RunFailedError(self._error)

    def _settle(self) -> None:
        """Wait until both hosts have executors, and their shards."""
        for _ in range(WORKERS - len(self._machines.workers)):
            self._machines.start_worker()
        deadline = time.monotonic() + PATIENCE
        while len(self._machines.executors()) < WORKERS:
            self._check(deadline)
        for _ in range(20):
            self._await(self._put(self._some()))

    def _some(self) -> list[int]:
        return [self._random.randrange(self._slates) for _ in range(FILE_EVENTS)]

    def _put(self, keys: range | list[int]) -> int:
        """Add a file with an event for each of these keys; returns the total number of events."""
        lines = "".join(
            f'{{"key":"{data.scattered_key(n)}","ts":{data.START},"n":0}}\n' for n in keys
        )
        with self._lock:
            self._hidden.write_text(lines)
            self._hidden.rename(self._source / f"part-{self._files:06d}.json")
            self._files += 1
            self._given += len(keys)
            return self._given

    def _keep_coming(self) -> None:
        while not self._full.wait(FILE_SECONDS):
            self._put(self._some())

    def _go(self) -> None:
        try:
            app = on_millstream.counter("arrival")
            run_on_spark(app, self._settings, self._take, stop=self._stop)
        except BaseException as error:
            self._error = f"{type(error).__name__}: {error}"

    def _take(self, batch: BatchSummary) -> None:
        self._counted += batch.events
        if batch.events:
            self._seconds.append(batch.seconds)

    def _await(self, events: int) -> None:
        deadline = time.monotonic() + PATIENCE
        while self._counted < events:
            self._check(deadline)

    def _check(self, deadline: float) -> None:
        if self._error or not self._run.is_alive() or time.monotonic() > deadline:
            raise RunFailedError(self._error or "the run does not go on")
        time.sleep(0.005)
