"""Writes changes of slates to tables of real servers: the whole path, from files to rows.

Each event of a batch updates a different key, so a batch changes as many slates as it has events.
The rate is that of changed slates that are in the table, after the first batch: a batch is only
committed once the one before it is in every sink. The server is on the same machine, and shares its
cores with Spark.

A server of a JVM is slow until its code is compiled: Cassandra took 226 us of CPU a row for its
first 50,000 rows, 95 us after 400,000 and 33 us after 700,000. So each server is first given all
records twice, into other tables.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import millstream as ms
from bench.apart import run_apart
from bench.bench import Bench
from bench.figures import Bar, Batch, Outcome, rate_after_first
from fault_runs.database_servers import (
    DatabaseServer,
    cassandra_server,
    postgres_server,
    running,
)
from millstream.driver.report import BatchSummary
from millstream.settings.settings import Settings
from millstream.spark.runner import run as run_on_spark

KEYS = 50_000
BATCHES = 8
LEAST = 15_000
"""The least rate of changed slates a second."""
ADDRESSES = {
    "postgres": "postgres:{}?{}&database=postgres",
    "cassandra": "cassandra:shop.{}?{}&replication=1&consistency=ONE",
}


def run(bench: Bench) -> Outcome:
    keys, batches = (2_000, 3) if bench.quick else (KEYS, BATCHES)
    source = _records(bench.data / f"tables-{keys}-{batches}", keys, batches)
    rows = []
    servers = {
        "postgres": postgres_server(bench.fresh("postgres") / "data"),
        "cassandra": cassandra_server(
            bench.fresh("cassandra") / "data", CASSANDRA_SERVER_TIER="4", CASSANDRA_SERVER_HEAP="1g"
        ),
    }
    for kind, server in servers.items():
        server.folder.parent.mkdir(parents=True, exist_ok=True)
        with running(server):
            rows.append(_measured(bench, kind, server, source, batches))
    figures = {f"{row['what']}_per_s": row["slates_per_s"] for row in rows}
    return Outcome(
        "tables",
        rows,
        figures,
        [Bar(name, value, LEAST) for name, value in figures.items()],
        {"keys": keys, "batches": batches},
        [
            "slates_per_s: changed slates that are in the table, a second, after the first batch",
            "each server was written to twice before (see bench/tables.py)",
        ],
    )


def _measured(
    bench: Bench, kind: str, server: DatabaseServer, source: Path, batches: int
) -> dict[str, Any]:
    os.environ.update(server.environ)
    for table in ("first", "second", "counts"):
        found, _ = run_apart(
            run_into,
            store=str(bench.fresh(f"store-{kind}-{table}")),
            source=str(source),
            sink=ADDRESSES[kind].format(table, server.options),
            batches=batches,
        )
    ended = [Batch(*batch) for batch in found["batches"]]
    return {
        "what": kind,
        "slates_per_s": rate_after_first(ended),
        "slates": sum(batch.events for batch in ended),
        "whole_s": found["whole_s"],
    }


def run_into(store: str, source: str, sink: str, batches: int) -> dict[str, Any]:
    """Run over all the files of a folder, and send the changes to the sink."""
    ended: list[tuple[int, float]] = []

    def report(batch: BatchSummary) -> None:
        ended.append((batch.events, time.perf_counter()))

    length = sum(path.stat().st_size for path in Path(source).iterdir())
    began = time.perf_counter()
    settings = Settings.of(
        "bench",
        Path(store),
        {"orders": f"json:{source}"},
        {"counts": sink},
        available_now=True,
        batch_bytes=-(-length // batches),
        batch_seconds=60_000_000,
        master="local[2]",
    )
    run_on_spark(counting(), settings, report)
    # The last batch is in the table when the run ends.
    ended.append((0, time.perf_counter()))
    return {"batches": ended, "whole_s": time.perf_counter() - began}


def counting() -> ms.App:
    """Counts a customer's orders, and publishes the changes."""
    app = ms.App("bench")
    app.source("orders", key="customer", ts="ts", unit="us")
    app.changes("count", name="counts")

    @app.update("orders")
    def count(event: Any, slate: Any) -> None:
        slate["count"] = slate.get("count", 0) + 1
        slate["last"] = event.value["item"]

    return app


def _records(folder: Path, keys: int, batches: int) -> Path:
    """Writes a file for each batch, with one order of each customer."""
    if not folder.exists():
        partial = folder.with_name(f"{folder.name}.part")
        partial.mkdir(parents=True, exist_ok=True)
        for batch in range(batches):
            lines = (
                {
                    "customer": f"customer-{key}",
                    "ts": batch * keys + key,
                    "item": f"item-{key % 97}",
                }
                for key in range(keys)
            )
            text = "".join(json.dumps(line) + "\n" for line in lines)
            (partial / f"{batch:04d}.jsonl").write_text(text)
        partial.rename(folder)
    return folder
