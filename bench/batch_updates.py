"""Updates over many events at once, compared with one that is called for each event.

All keep a sum and a mean for each key, of the same events in batches of the same size. The batches
are large, as in `bench.aggregates`.
"""

from __future__ import annotations

from bench import data, on_millstream
from bench.bench import Bench
from bench.figures import Bar, Outcome

KEYS = 100_000
BATCHES = 4
WANTED = 3_000_000
"""Events a second of the update across keys, on 2 cores."""


def run(bench: Bench) -> Outcome:
    events = 40_000 if bench.quick else 8_000_000
    source = data.uniform(bench.data, events, KEYS, BATCHES)
    rows = [
        on_millstream.measured(bench, "an update for each event", "mean", source, BATCHES),
        on_millstream.measured(bench, "batch=True", "batch_mean", source, BATCHES),
        on_millstream.measured(
            bench, "batch=True, across_keys=True", "table_mean", source, BATCHES
        ),
    ]
    each, batch, table = (row["events_per_s"] for row in rows)
    return Outcome(
        "batch_updates",
        rows,
        {"ratio_batch": batch / each, "ratio_table": table / each, "events_per_s": table},
        [Bar("events_per_s", table, WANTED)],
        {"events": events, "keys": KEYS, "batches": BATCHES, "shards": 16},
        ["ratio_batch, ratio_table: against the update that is called for each event"],
    )
