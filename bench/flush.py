"""The cost of flushing each batch to disk: batches flushed one by one, and every ten seconds.

Both are measured in turn, over the same files, with small batches, where the flush is a large part
of the batch, and with large ones, where it is a small part. A run's last flush counts in its whole
time, not in its batches.
"""

from __future__ import annotations

from typing import Any

from bench import data, on_millstream
from bench.apart import run_apart
from bench.bench import Bench, row_of
from bench.figures import Outcome, percentile

KEYS, ROUNDS, INTERVAL = 100_000, 3, 10_000_000
WAYS = {"batch": None, "10s": INTERVAL}


def run(bench: Bench) -> Outcome:
    sizes = {"small": (10_000, 20)} if bench.quick else {"small": (60_000, 60), "large": (10**6, 5)}
    rows, figures = [], {}
    for size, (events, batches) in sizes.items():
        source = data.uniform(bench.data, events, KEYS, batches)
        found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
        for _ in range(1 if bench.quick else ROUNDS):
            for way in WAYS:
                row = _measure(bench, f"{size} batches, flush={way}", source, batches, way)
                found[way].append(row)
                rows.append(row)
        rate, time = (
            {way: percentile([row[name] for row in found[way]], 0.5) for way in WAYS}
            for name in ("events_per_s", "batch_p50_s")
        )
        figures[f"ratio_rate_{size}"] = rate["10s"] / rate["batch"]
        for way in WAYS:
            figures[f"batch_p50_s_{size}_{way}"] = time[way]
    settings = {"keys": KEYS, "interval_s": INTERVAL / 1e6, "sizes": sizes, "shards": 16}
    notes = ["ratio: medians of the rounds, flush=10s against flush=batch"]
    return Outcome("flush", rows, figures, [], settings, notes)


def _measure(bench: Bench, what: str, source: Any, batches: int, way: str) -> dict[str, Any]:
    bench.say(f"  {what} ...")
    result, usage = run_apart(
        on_millstream.run_all,
        app="counter",
        order="arrival",
        source=str(source),
        store=str(bench.fresh("store")),
        batches=batches,
        flush=WAYS[way],
    )
    seconds = result["seconds"][1:]  # the first batch warms Spark up
    row = row_of(what, result, usage)
    row["batch_p50_s"], row["batch_p95_s"] = (percentile(seconds, share) for share in (0.5, 0.95))
    bench.say(f"  {what}: {row['events_per_s']:,.0f} events/s, {row['batch_p50_s']:.3f} s a batch")
    return row
