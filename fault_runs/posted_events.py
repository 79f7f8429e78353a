"""Events come by HTTP to servers on several hosts, while S3 fails and the driver's host is lost.

The records are in an event log in S3, to which the servers append. A client on another host sends
each of them with an idempotency key, and again with that key if nobody has acknowledged it.
"""

from __future__ import annotations

import signal
from pathlib import Path
from random import Random

import msgspec

from fault_runs.chain import records
from fault_runs.cluster_run import ClusterRun
from fault_runs.posting_client import MOST_RECORDS
from fault_runs.processes import wait_until
from fault_runs.result import Result
from fault_runs.s3_proxy import ProxyFaults
from fault_runs.scenario import Context, Run
from fault_runs.struck_run import (
    EVENT_MS,
    ONE,
    OTHER,
    PATIENCE,
    S3_FAILS,
    TO_THE_END,
    Struck,
    ended,
    lose_driver,
)

POSTED = "cluster-posted"
PROMISE = (
    "Events come by POST while S3 fails and the driver's host is lost, and are sent again with "
    "their keys to other servers: each acknowledged event counts once"
)
SERVERS = (ONE, "reader", OTHER)
"""The hosts with servers, in the order in which a client tries them."""
RECORDS = 100
"""Records that are acknowledged before each strike, and after the last."""


def posted(strikes: int) -> Run:
    """A run whose input comes by HTTP, while S3 fails and the driver's host is lost several times.

    A client sends every record with an idempotency key, to the server beside the driver, or to
    those on other hosts if it does not answer. When it has ended, a last run processes what is
    left.
    """

    def run(seed: int, folder: Path, context: Context) -> Result:
        cluster = context.hosts
        cluster.mend()
        cluster.proxy.counts(reset=True)
        cluster.proxy.order(msgspec.structs.replace(S3_FAILS, seed=seed))
        running = ClusterRun(cluster, folder, posted=True)
        leader = running.start(ONE, event_ms=EVENT_MS)
        reader = running.serve("reader")
        if not wait_until(lambda: "serving" in reader.said(), reader, PATIENCE):
            raise AssertionError(f"the server has ended: {reader.said()}")
        client = running.post("master", [running.url(host) for host in SERVERS], seed)
        struck = Struck(running, Random(seed), leader, flags=())
        for _ in range(strikes):
            client.await_records(client.counts()[0] + RECORDS)
            lose_driver(struck)
        client.await_records(client.counts()[0] + RECORDS)
        sent, repeated = client.finish()
        struck.leader.process.send_signal(signal.SIGTERM)
        ended(struck.leader)
        ended(running.start(struck.at, *TO_THE_END))
        counts = cluster.proxy.counts(reset=True)
        cluster.proxy.order(ProxyFaults())
        reader.kill()
        found = running.difference(records(seed, MOST_RECORDS)[:sent])
        struck.notes += [
            f"{sent} records, {repeated} of them sent again",
            f"{counts.failed} requests failed, {counts.lost} answers were lost",
        ]
        return Result(
            POSTED,
            seed,
            found.lost,
            found.doubled,
            tuple(struck.times),
            found.note or ", ".join(struck.notes),
            runs=strikes,  # the bar for take-overs is that of `cluster-driver-lost`
        )

    return run
