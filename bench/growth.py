"""The same load over stores of growing size: do existing slates slow down new events?

The load has 100,000 active keys. The existing slates have other keys, scattered between those of
the load. So once there are many, every active slate is alone in its page of the store: no two are
close together.
"""

from __future__ import annotations

from bench import data, on_millstream, prefill
from bench.apart import run_apart
from bench.bench import Bench
from bench.figures import Bar, Outcome

ACTIVE = 100_000
BATCHES = 5
SIZES = (10_000, 1_000_000, 10_000_000, 30_000_000)


def run(bench: Bench) -> Outcome:
    events = 50_000 if bench.quick else 500_000
    sizes = (10_000, 1_000_000) if bench.quick else SIZES
    source, single = (
        data.scattered(bench.data, events, ACTIVE, BATCHES),
        data.single(bench.data),
    )
    rows = []
    for size in sizes:
        store = bench.fresh("store")
        bench.say(f"  {size:,} slates: filling the store ...")
        given = {"single": str(single), "store": str(store), "slates": size, "active": ACTIVE}
        filled, _ = run_apart(prefill.prefill, **given)
        row = bench.measure(
            f"{size:,} slates",
            on_millstream.run_all,
            app="counter",
            order="arrival",
            source=source,
            store=store,
            batches=BATCHES,
            keep=True,
        )
        row["disk_before_mib"] = filled["bytes"] / 2**20
        row["disk_after_mib"] = data.size_of(store / "shards") / 2**20
        row["fill_s"] = filled["seconds"]
        rows.append(row)
    bench.fresh("store")
    ratio = rows[-1]["events_per_s"] / rows[0]["events_per_s"]
    name = f"ratio_{sizes[-1] // 1_000_000}m_to_10k"
    return Outcome(
        "growth",
        rows,
        {name: ratio, "events_per_s": rows[-1]["events_per_s"]},
        [Bar(name, ratio, 0.5)],
        {"events": events, "active_keys": ACTIVE, "sizes": list(sizes), "batches": BATCHES},
    )
