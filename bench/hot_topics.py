"""A map, two updates and timers (examples/hot_topics.py), compared with the single update.

The ratio is that of the chain's tweets a second to the single update's events a second in the same
order, measured in the same run.
"""

from __future__ import annotations

from bench import data
from bench.bench import Bench
from bench.figures import Bar, Outcome
from bench.keyed_updates import BATCHES, KEYS, ours

DAYS = 5.0


def run(bench: Bench) -> Outcome:
    events, tweets = (30_000, 20_000) if bench.quick else (1_000_000, 500_000)
    single = ours(bench, "counter", data.uniform(bench.data, events, KEYS, BATCHES))
    chain = ours(bench, "hot_topics", data.tweets(bench.data, tweets, DAYS, BATCHES))
    arrival, event_time = (
        ours["events_per_s"] / base["events_per_s"]
        for ours, base in zip(chain, single, strict=True)
    )
    return Outcome(
        "hot_topics",
        [*single, *chain],
        {
            "ratio_arrival": arrival,
            "ratio_event_time": event_time,
            "events_per_s": chain[0]["events_per_s"],
        },
        [Bar("ratio_arrival", arrival, 0.35), Bar("ratio_event_time", event_time, 0.35)],
        {"events": events, "tweets": tweets, "days": DAYS, "batches": BATCHES, "shards": 16},
    )
