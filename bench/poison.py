"""The cost of one failing event in a hundred for the others: dead letters, and restored slates."""

from __future__ import annotations

from bench import data, on_millstream
from bench.bench import Bench
from bench.figures import Bar, Outcome

KEYS, BATCHES, SHARE, ROUNDS = 100_000, 5, 0.01, 3


def run(bench: Bench) -> Outcome:
    events = 30_000 if bench.quick else 1_000_000
    rows = []
    for _ in range(1 if bench.quick else ROUNDS):  # both ways, in turn
        for share in (0.0, SHARE):
            row = bench.measure(
                f"{share:.0%} poison",
                on_millstream.run_all,
                app="poisoned",
                order="arrival",
                source=data.poisoned(bench.data, events, KEYS, share, BATCHES),
                store=bench.fresh("store"),
                batches=BATCHES,
            )
            rows.append(row)
    clean, bad = (sorted(row["events_per_s"] for row in rows[start::2]) for start in (0, 1))
    ratio = bad[len(bad) // 2] / clean[len(clean) // 2]
    return Outcome(
        "poison",
        rows,
        {"ratio_poison": ratio, "events_per_s": bad[len(bad) // 2]},
        [Bar("ratio_poison", ratio, 0.9)],
        {"events": events, "keys": KEYS, "batches": BATCHES, "share": SHARE},
        ["ratio: medians of the rounds, with poison against without"],
    )
