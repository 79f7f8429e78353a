"""An update that declares its algebra, compared with one that is called for each event.

All count (or add up) the same events, in batches of the same size. The batches are large, because
Spark's fixed time for each batch is the same for all and would hide the difference.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
        _measured(bench, "an update for each event, uniform keys", "counter", uniform),
        _measured(bench, "count, uniform keys", "count", uniform),
        _measured(bench, f"count, one key with {HOT:.0%}", "count", hot),
        _measured(bench, "sum, uniform keys", "sum", uniform),
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


def _measured(bench: Bench, what: str, app: str, source: Path) -> dict[str, Any]:
    return bench.measure(
        what,
        on_millstream.run_all,
        app=app,
        order="arrival",
        source=source,
        store=bench.fresh("store"),
        batches=BATCHES,
    )
