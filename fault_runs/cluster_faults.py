"""Faults of a cluster whose hosts have their own addresses and disks, with its store in S3.

Each run is a chain under load: all of its input exists from the start, and faults strike several
times, at moments drawn by seed. Starting Spark on hosts takes longer than a fault, so one run has
several. The table has runs with one fault five times (`CLUSTER_SCENARIOS`); in the tests each fault
strikes once, in three runs (`MIXED_SCENARIOS`). In one scenario the input comes by HTTP instead.

The standalone workers have spare cores for a standby. Commits are read from the S3 server's own
disk, so that observing them disturbs nothing.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import msgspec

from fault_runs.chain import records
from fault_runs.cluster_run import ClusterRun
from fault_runs.host_cluster import WORKERS
from fault_runs.posted_events import POSTED, PROMISE, posted
from fault_runs.processes import wait_until
from fault_runs.result import Result
from fault_runs.s3_proxy import ProxyFaults
from fault_runs.scenario import Context, Run, Scenario
from fault_runs.struck_run import (
    EVENT_MS,
    ONE,
    PATIENCE,
    S3_FAILS,
    TO_THE_END,
    RunOver,
    Struck,
    ended,
    lose_driver,
)

STRIKES = 5
LEAST_RUNS = 10
AWAY_SECONDS = 30.0
FIRST_RECORDS = 300
"""Records before the first strike."""

Strike = Callable[[Struck], None]
"""Causes the fault once, while the run goes on, and waits until the run has recovered."""


@dataclass(frozen=True, slots=True)
class ClusterFault:
    """A fault of a cluster, and the promise under it."""

    promise: str
    strike: Strike
    records: int = 300
    """Records for each strike; a batch has about a hundred, and a step in event time forty. A run
    must outlast its faults."""
    from_start: ProxyFaults | None = None
    """The faults of S3 when the run starts."""


def _under_load(name: str, faults: Sequence[ClusterFault]) -> Run:
    """A run that these faults strike, one after the other, compared with the reference.

    There is one strike for each fault, or fewer if the run ends before.
    """

    def run(seed: int, folder: Path, context: Context) -> Result:
        given = records(seed, FIRST_RECORDS + sum(fault.records for fault in faults))
        cluster = context.hosts
        cluster.mend()
        cluster.proxy.counts(reset=True)
        at_first = faults[0].from_start or ProxyFaults()
        cluster.proxy.order(msgspec.structs.replace(at_first, seed=seed))
        running = ClusterRun(cluster, folder)
        running.give(given)
        leader = running.start(ONE, *TO_THE_END, event_ms=EVENT_MS)
        struck = Struck(running, Random(seed), leader)
        struck.await_commit(1)
        done = 0
        for fault in faults:
            if struck.leader.process.poll() is not None:
                break
            struck.moment()
            try:
                fault.strike(struck)
            except RunOver:
                break
            done += 1
        if not done:
            raise AssertionError("the run was over before the fault")
        ended(struck.leader)
        found = running.difference(given)
        note = found.note or ", ".join(struck.notes)
        return Result(
            name,
            seed,
            found.lost,
            found.doubled,
            tuple(struck.times),
            note,
            runs=done,
            takeover_s=tuple(struck.takeovers),
        )

    return run


def _kill_executor(struck: Struck) -> None:
    """Kill the process of an executor: its worker starts another."""
    cluster, before = struck.running.cluster, struck.running.newest_commit()
    alive = [name for name in WORKERS if cluster.executors(name)]
    if not alive:
        raise RunOver
    name = struck.random.choice(alive)
    began = time.monotonic()
    os.kill(struck.random.choice(cluster.executors(name)), signal.SIGKILL)
    struck.recovered(before, began)
    struck.notes.append(name)


def _cut_off_worker(struck: Struck) -> None:
    """Cut off a worker's host, for so long that Spark may or may not give it up."""
    name, seconds = struck.random.choice(WORKERS), struck.random.uniform(3.0, 25.0)
    host, before = struck.running.cluster.hosts[name], struck.running.newest_commit()
    began = time.monotonic()
    host.cut_off()
    time.sleep(seconds)
    host.reconnect()
    struck.recovered(before, began)
    struck.notes.append(f"{name} for {seconds:.0f} s")


def _lose_worker(struck: Struck) -> None:
    """Lose a worker's host for good, with its disk; a new one comes later."""
    cluster, before = struck.running.cluster, struck.running.newest_commit()
    name = struck.random.choice(WORKERS)
    began = time.monotonic()
    cluster.hosts[name].cut_off()
    cluster.kill_host(name)
    cluster.hosts[name].wipe()
    struck.recovered(before, began)
    cluster.hosts[name].reconnect()
    cluster.start_workers([name])
    struck.notes.append(name)


def _pause_driver(struck: Struck) -> None:
    """Freeze the host of the driver until the standby has committed, and then let it go on."""
    host, standby = struck.stand_by()
    paused, began = struck.running.cluster.hosts[struck.at], time.monotonic()
    paused.freeze()
    before = struck.running.newest_commit()
    if struck.leader.process.poll() is not None:
        ended(standby)
        raise RunOver
    struck.recovered(before + struck.random.randrange(2), began, standby)
    paused.thaw()
    if struck.running.newest_commit() < before + 2:  # a take-over, and no batch: all was done
        struck.times.pop()
        ended(standby)
        raise RunOver
    if struck.leader.wait(PATIENCE) == 0:
        raise AssertionError(f"the paused driver must find out, and end with an error: {struck}")
    last = struck.leader.said().strip().splitlines()[-1]
    struck.notes.append(f"{struck.at} after commit {before} ended with {last[:80]!r}")
    struck.leader, struck.at = standby, host


def _let_s3_fail(struck: Struck) -> None:
    """Let S3 fail until two batches are committed, and until it has failed a request and lost an
    answer. In a run that starts with this fault, S3 has failed since the start."""
    proxy, before = struck.running.cluster.proxy, struck.running.newest_commit()
    proxy.order(msgspec.structs.replace(S3_FAILS, seed=struck.random.randrange(1 << 30)))
    began = time.monotonic()
    struck.recovered(before, began)

    def has_failed() -> bool:
        counts = proxy.counts()
        return bool(counts.failed and counts.lost)

    if not wait_until(has_failed, struck.leader, PATIENCE):
        ended(struck.leader)
        raise RunOver
    proxy.order(ProxyFaults())
    counts = proxy.counts(reset=True)
    struck.notes.append(f"{counts.failed} requests failed, {counts.lost} answers were lost")


def _take_s3_away(struck: Struck) -> None:
    """Let S3 refuse connections, or cut off its host, for half a minute."""
    cluster, before = struck.running.cluster, struck.running.newest_commit()
    unplugged = struck.random.random() < 0.5
    if unplugged:
        cluster.hosts["s3"].cut_off()
    else:
        cluster.proxy.order(ProxyFaults(away=True))
    time.sleep(AWAY_SECONDS)
    cluster.hosts["s3"].reconnect()
    cluster.proxy.order(ProxyFaults())
    struck.recovered(before, time.monotonic())
    struck.notes.append("its host was cut off" if unplugged else "it refused connections")


FAULTS = {
    "cluster-executor-killed": ClusterFault(
        "Its shards are restored on another executor; each batch takes effect once", _kill_executor
    ),
    "cluster-worker-cut-off": ClusterFault(
        "A host that nobody reaches for up to 25 s, and that comes back with its copies",
        _cut_off_worker,
    ),
    "cluster-worker-lost": ClusterFault(
        "A host that is gone for good, with its disk: its shards are restored on the others",
        _lose_worker,
    ),
    "cluster-driver-lost": ClusterFault(
        "A standby on another host goes on where the last commit left the application",
        lose_driver,
        records=600,
    ),
    "cluster-driver-paused": ClusterFault(
        "A driver that was overtaken finds its next commit taken, and ends",
        _pause_driver,
        records=600,
    ),
    "cluster-s3-failing": ClusterFault(
        "5% of requests to S3 fail, and 2% of answers are lost, for some batches",
        _let_s3_fail,
        records=1_200,
        from_start=S3_FAILS,
    ),
    "cluster-s3-away": ClusterFault(
        "S3 is away for 30 s: batches wait, and go on (the time is that from its return)",
        _take_s3_away,
    ),
}
CLUSTER_SCENARIOS = {
    name: Scenario(name, fault.promise, _under_load(name, [fault] * STRIKES), least=LEAST_RUNS)
    for name, fault in FAULTS.items()
}
CLUSTER_SCENARIOS[POSTED] = Scenario(POSTED, PROMISE, posted(STRIKES), least=LEAST_RUNS)
_OF_DRIVERS = ("cluster-driver-lost", "cluster-driver-paused")
_OF_OTHERS = (  # S3 fails first, since a run may start with it
    "cluster-s3-failing",
    "cluster-executor-killed",
    "cluster-worker-cut-off",
    "cluster-s3-away",
    "cluster-worker-lost",
)


def _mixed(name: str, faults: Sequence[str]) -> Scenario:
    run = _under_load(name, [FAULTS[fault] for fault in faults])
    return Scenario(name, f"{', '.join(faults)}, one after the other", run, least=len(faults))


MIXED_SCENARIOS = {
    name: _mixed(name, faults)
    for name, faults in (("drivers", _OF_DRIVERS), ("workers-and-s3", _OF_OTHERS))
}
MIXED_SCENARIOS[POSTED] = Scenario(POSTED, PROMISE, posted(1), least=1)
