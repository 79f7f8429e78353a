"""A Python update for each event, over many keys, durable every batch; compared with Spark's ways.

All read the same files in batches of the same size: `transformWithState` has a cost for each key of
a batch, so smaller batches would be unfair to it. It is slow; a quick run gives all of them less.
"""

from __future__ import annotations

from typing import Any

from bench import data, on_millstream, on_spark
from bench.bench import Bench
from bench.figures import Bar, Outcome

KEYS = 100_000
BATCHES = 5


def run(bench: Bench) -> Outcome:
    events = 30_000 if bench.quick else 1_000_000
    source = data.uniform(bench.data, events, KEYS, BATCHES)
    rows = [
        *ours(bench, "counter", source),
        on_spark.measured(bench, "transformWithState", on_spark.transform_with_state, source),
        on_spark.measured(bench, "SQL count", on_spark.sql_count, source),
    ]
    arrival, _, tws, sql = (row["events_per_s"] for row in rows)
    figures = {
        "ratio_tws": arrival / tws,
        "ratio_sql": arrival / sql,
        "events_per_s": arrival,
    }
    return Outcome(
        "keyed_updates",
        rows,
        figures,
        [Bar("ratio_tws", arrival / tws, 15, 25), Bar("ratio_sql", arrival / sql, 1.5, 3)],
        {"events": events, "keys": KEYS, "batches": BATCHES, "shards": 16, "slate": "dict"},
        [
            "ratios: millstream in arrival order against each of Spark's ways",
            "SQL count runs no Python: it is what the JVM alone takes for the same",
        ],
    )


def ours(bench: Bench, app: str, source: Any, batches: int = BATCHES) -> list[dict[str, Any]]:
    """Millstream's rows, in both orders."""
    return [
        on_millstream.measured(bench, f"millstream: {app}, {order}", app, source, batches, order)
        for order in ("arrival", "event-time")
    ]
