"""Measures how long other keys wait while one key has most of the events, at an update without an
algebra.

The update computes for a while for each event, so that the hot key alone needs more than one core.
Latency is that of the markers, which have keys of their own among the others (see `latency`). The
loads are uniform keys, one hot key, and one hot key without the shares that limit it.
"""

from __future__ import annotations

from bench import latency, on_millstream
from bench.bench import Bench
from bench.figures import Bar, Outcome

RATE = 3_800
HOT = 0.9


def run(bench: Bench) -> Outcome:
    warm_up, seconds = (3.0, 8.0) if bench.quick else (15.0, 45.0)
    uniform, hot, unshared = (
        latency.measure(bench, what, app, "arrival", warm_up, seconds, RATE, share)
        for what, app, share in (
            ("uniform keys", "slow", 0.0),
            ("one hot key", "slow", HOT),
            ("one hot key, no shares", "slow_unshared", HOT),
        )
    )
    ratio = hot["p99_s"] / uniform["p99_s"]
    figures = {"ratio_p99": ratio, "p99_s_uniform": uniform["p99_s"], "p99_s_hot": hot["p99_s"]}
    return Outcome(
        "hot_key",
        [uniform, hot, unshared],
        figures,
        [Bar("ratio_p99", ratio, 2.0, at_least=False)],
        {
            "rate": RATE,
            "hot": HOT,
            "event_us": on_millstream.SLOW * 1e6,
            "seconds": seconds,
            "warm_up_s": warm_up,
        },
        ["the other keys' latency, from a file's arrival to the marker's slate being readable"],
    )
