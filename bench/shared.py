"""The shared store compared with the local one: the same load, with all durable data in S3; on one
machine, and on a standalone cluster of two hosts of one core each.

The hosts are on this machine too (`fault_runs.cluster`), and their daemons and executors count as
processes of the run. Starting them always costs more than starting `local[2]`. So the two are
compared by the cost of an event after the first batch. Once more the same load comes from an event
log in the place, and once the cluster's driver listens on an address, so that all traffic is
encrypted. The S3 server is a real one on the same
machine (`scripts/s3-server`), behind a proxy that counts requests and can delay them. Its processor
time is not in the figures of a run; it has its own column.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from tempfile import NamedTemporaryFile
from typing import Any

from bench import data, on_millstream
from bench.apart import run_apart
from bench.bench import Bench, row_of
from bench.figures import Bar, Outcome
from bench.machine import ROOT
from bench.processes import process
from fault_runs.cluster import HOST, authenticated, cluster
from fault_runs.s3_proxy import ProxyControl, ProxyFaults
from fault_runs.s3_server import S3Server, s3_server
from millstream.log.place_writer import PlaceLogWriter
from millstream.log.writer import Entry
from millstream.places.place_address import place_at

KEYS = 100_000
DELAY_MS = 50.0
SMALL_BATCHES = 60
TASKS = 1
"""Tasks of a small batch, which takes the one-task lane."""
LOG_RECORDS = 20_000
"""Records of an append to the event log."""
HOSTS = 2
"""Hosts of the cluster, on which every batch is shuffled, with a task on each."""
MOST_CPU, MOST_SECONDS, MORE_REQUESTS = 1.4, 0.3, 3


@dataclass(frozen=True, slots=True)
class Service:
    """An S3 server, and the proxy in front of it."""

    server: S3Server
    proxy: int
    control: ProxyControl

    def cpu(self) -> float:
        """Processor time of both, in seconds."""
        return process(self.server.process).cpu + process(self.proxy).cpu


@contextmanager
def service(folder: Path) -> Iterator[Service]:
    """Runs a server behind a proxy; sets this process's environment to use it."""
    folder.mkdir(parents=True, exist_ok=True)
    with s3_server(folder / "objects") as server:
        host, port = server.endpoint.removeprefix("http://").rsplit(":", 1)
        ours = int(port) + 1 if int(port) < 65_000 else int(port) - 1
        control = ProxyControl(folder / "proxy.sock")
        command = ["-m", "fault_runs.s3_proxy", f"{host}:{ours}", f"{host}:{port}"]
        arguments = [sys.executable, *command, str(folder / "proxy.sock")]
        running = subprocess.Popen(arguments, cwd=ROOT)
        try:
            until = time.monotonic() + 20
            while not control.listens():
                if time.monotonic() > until or running.poll() is not None:
                    raise RuntimeError("the proxy did not start")
                time.sleep(0.05)
            os.environ.update({**server.environ, "AWS_ENDPOINT_URL": f"http://{host}:{ours}"})
            yield Service(server, running.pid, control)
        finally:
            running.terminate()
            running.wait()


def run(bench: Bench) -> Outcome:
    events = 30_000 if bench.quick else 2_000_000
    source = data.uniform(bench.data, events, KEYS, 10)
    small = data.uniform(bench.data, 500 * SMALL_BATCHES, KEYS, SMALL_BATCHES)
    master = f"local[{HOSTS}]"
    rows = [_measured(bench, "local store", source, 10, on_millstream.run_all, master=master)]
    with service(bench.fresh("s3")) as s3:
        rows.append(_on_s3(bench, s3, "shared store", source, 10))
        rows.append(_on_s3(bench, s3, "shared store, small batches", small, SMALL_BATCHES))
        s3.control.order(ProxyFaults(delay_ms=DELAY_MS))
        name = f"shared store, small batches, {DELAY_MS:.0f} ms a request"
        rows.append(_on_s3(bench, s3, name, small, SMALL_BATCHES))
        name = f"cluster, small batches, {DELAY_MS:.0f} ms a request"
        rows.append(_on_s3(bench, s3, name, small, SMALL_BATCHES, on_cluster))
        s3.control.order(ProxyFaults())
        rows.append(_on_s3(bench, s3, "cluster", source, 10, on_cluster))
        listening = _on_s3(bench, s3, "cluster, encrypted", source, 10, on_listening_cluster)
        from_log = _on_s3(bench, s3, "shared store, from an event log", source, 10, logged=True)
    local, shared, _, slow, slow_cluster, cluster_row = rows
    rows += [listening, from_log]
    figures = {
        "cpu_ratio": shared["cpu_us"] / local["cpu_us"],
        "cluster_cpu_ratio": cluster_row["warm_cpu_us"] / local["warm_cpu_us"],
        "slow_batch_s": slow["batch_s"],
        "cluster_slow_batch_s": slow_cluster["batch_s"],
        "requests_a_batch": slow["requests"],
        "cluster_requests_a_batch": slow_cluster["requests"],
    }
    limits = {
        "cpu_ratio": MOST_CPU,
        "cluster_cpu_ratio": MOST_CPU,
        "slow_batch_s": MOST_SECONDS,
        "cluster_slow_batch_s": MOST_SECONDS,
        "requests_a_batch": TASKS + MORE_REQUESTS,
        "cluster_requests_a_batch": HOSTS + MORE_REQUESTS,
    }
    others = {
        "encrypted_cpu_ratio": listening["warm_cpu_us"] / cluster_row["warm_cpu_us"],
        "log_cpu_ratio": from_log["warm_cpu_us"] / shared["warm_cpu_us"],
    }
    return Outcome(
        "shared",
        rows,
        {**figures, **others},
        [Bar(name, figures[name], limits[name], at_least=False) for name in figures],
        {"events": events, "keys": KEYS, "small_batches": SMALL_BATCHES, "delay_ms": DELAY_MS},
        [
            "cpu_us: processor time of all processes of the run, a microsecond an event, with the "
            "start of Spark; warm_cpu_us: the same after the first batch, which the ratios use for "
            "the cluster",
            "batch_s: from the end of a batch to the end of the next, with its commit, the median; "
            "requests: to S3, a batch, without those of the start and of the leader's beat",
        ],
    )


def on_cluster(**given: Any) -> dict[str, Any]:
    """`run_all` on a cluster that is started for it, as child processes."""
    with cluster(workers=HOSTS, memory="1g", hosts=True) as machines:
        return on_millstream.run_all(**given, master=machines.url)


def on_listening_cluster(**given: Any) -> dict[str, Any]:
    """The same with a driver that listens on an address, authentication and encryption."""
    secret = secrets.token_hex(16)
    with NamedTemporaryFile("w", prefix="millstream-secret-") as file:
        file.write(secret)
        file.flush()
        defaults = authenticated(secret)
        path = {"PYTHONPATH": str(ROOT)}
        with cluster(HOSTS, memory="1g", hosts=True, defaults=defaults, environ=path) as machines:
            given |= {"listen": HOST, "secret_file": file.name}
            return on_millstream.run_all(**given, master=machines.url)


def _fill_log(address: str, source: Path) -> None:
    """Append all records of a folder of files to the application's log in a place."""
    writer = PlaceLogWriter(place_at(address), "events")
    for path in sorted(source.glob("[!.]*")):
        lines = path.read_bytes().splitlines()
        for first in range(0, len(lines), LOG_RECORDS):
            writer.append([Entry.of(lines[first : first + LOG_RECORDS])])
    writer.close()


def _on_s3(
    bench: Bench,
    s3: Service,
    what: str,
    source: Path,
    batches: int,
    run_all: Callable[..., Any] = on_millstream.run_all,
    *,
    logged: bool = False,
) -> dict[str, Any]:
    """A run with its store in S3; `logged`: the events are in an event log there, too."""
    place = s3.server.address(f"bench-{time.time_ns()}")
    if logged:
        _fill_log(place, source)
    s3.control.counts(reset=True)
    before = s3.cpu()
    row = _measured(
        bench,
        what,
        source,
        batches,
        run_all,
        place=place,
        cache=str(bench.fresh("cache")),
        **({"address": "log"} if logged else {}),
    )
    counts = s3.control.counts()
    leader = counts.kinds.get("PUT leader", 0)
    whole = sum(counts.methods.values())
    row["requests"] = round((whole - leader - _STARTING) / max(1, row["batches"]), 2)
    row["kinds"] = dict(sorted(counts.kinds.items()))
    row["s3_cpu_us"] = round(1e6 * (s3.cpu() - before) / row["events"], 2)
    return row


_STARTING = 8
"""Requests at the start of a run: looking for commits, the hint, the first commit."""


def _measured(
    bench: Bench,
    what: str,
    source: Path,
    batches: int,
    run_all: Callable[..., Any],
    **options: Any,
) -> dict[str, Any]:
    bench.say(f"  {what} ...")
    given = {"source": str(source), "store": str(bench.fresh("store")), "batches": batches}
    result, usage = run_apart(run_all, app="counter", order="arrival", cpu=True, **given, **options)
    row = row_of(what, result, usage)
    row["cpu_us"] = round(1e6 * usage["cpu_seconds"] / row["events"], 2)
    taken = [
        (events, cpu) for (events, _), cpu in zip(result["batches"], result["cpu"], strict=True)
    ]
    first = next(number for number, (events, _) in enumerate(taken) if events)
    warm = sum(events for events, _ in taken[first + 1 :])
    row["warm_cpu_us"] = round(1e6 * (taken[-1][1] - taken[first][1]) / warm, 2)
    ended = [at for events, at in result["batches"] if events]
    row["batch_s"] = round(median(later - at for at, later in pairwise(ended)), 3)
    bench.say(f"  {what}: {row['cpu_us']} us an event, batches of {row['batch_s']} s")
    return row
