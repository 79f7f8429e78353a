"""An update that declares its algebra, compared with one that is called for each event.

All count (or add up) the same events, in batches of the same size. The batches are large, because
Spark's fixed time for each batch is the same for all and would hide the difference.
"""

from __future__ import annotations

from bench import data, on_millstream
from bench.bench import Bench
from bench.figures import Bar, Outcome

KEYS = 100_000
BATCHES = 4
HOT = 0.9


def run(bench: Bench) -> Outcome:
    events = 40_000 if bench.quick else 8_000_000
    uniform = data.uniform(bench.data, events, KEYS, BATCHES)
    hot = data.one_hot(bench.data, events, KEYS, HOT, BATCHES)
    rows = [
        on_millstream.measured(
            bench, "an update for each event, uniform keys", "counter", uniform, BATCHES
        ),
        on_millstream.measured(bench, "count, uniform keys", "count", uniform, BATCHES),
        on_millstream.measured(bench, f"count, one key with {HOT:.0%}", "count", hot, BATCHES),
        on_millstream.measured(bench, "sum, uniform keys", "sum", uniform, BATCHES),
    ]
    update, count, one_hot, total = (row["events_per_s"] for row in rows)
    figures = {
        "ratio_count": count / update,
        "ratio_hot": one_hot / count,
        "ratio_sum": total / update,
        "events_per_s": count,
    }
    return Outcome(
        "aggregates",
        rows,
        figures,
        [Bar("ratio_count", count / update, 3), Bar("ratio_hot", one_hot / count, 0.9)],
        {"events": events, "keys": KEYS, "batches": BATCHES, "hot": HOT, "shards": 16},
        ["ratio_count, ratio_sum: against the update; ratio_hot: against count of uniform keys"],
    )
