"""The same update over few, skewed keys: the cost for each key of a batch matters little."""

from __future__ import annotations

from bench import data, on_spark
from bench.bench import Bench
from bench.figures import Bar, Outcome
from bench.keyed_updates import BATCHES, ours

KEYS = 1_000
EXPONENT = 1.1


def run(bench: Bench) -> Outcome:
    events = 50_000 if bench.quick else 1_000_000
    source = data.zipf(bench.data, events, KEYS, EXPONENT, BATCHES)
    rows = [
        *ours(bench, "counter", source),
        on_spark.measured(bench, "transformWithState", on_spark.transform_with_state, source),
    ]
    arrival, _, tws = (row["events_per_s"] for row in rows)
    return Outcome(
        "zipf",
        rows,
        {"ratio_tws": arrival / tws, "events_per_s": arrival},
        [Bar("ratio_tws", arrival / tws, 3)],
        {"events": events, "keys": KEYS, "exponent": EXPONENT, "batches": BATCHES, "shards": 16},
    )
