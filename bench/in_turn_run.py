"""Runs a load of `bench.in_turn` with the Millstream and the benchmarks that PYTHONPATH names.

`python in_turn_run.py NAME WORK TREE` prints a row as JSON. It is a script, not a module of the
package, so that the code of the other commit is measured by that commit's own benchmarks.
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import millstream
from bench import data, on_millstream, prefill
from bench.apart import run_apart
from bench.bench import Bench

EVENTS = 1_000_000
KEYS = 100_000
BATCHES = 5
SLATES = 1_000_000


def uniform(bench: Bench) -> Path:
    return data.uniform(bench.data, EVENTS, KEYS, BATCHES)


def zipf(bench: Bench) -> Path:
    return data.zipf(bench.data, EVENTS, 1_000, 1.1, BATCHES)


def tweets(bench: Bench) -> Path:
    return data.tweets(bench.data, 300_000, 3.0, BATCHES)


def scattered(bench: Bench) -> Path:
    return data.scattered(bench.data, EVENTS // 2, KEYS, BATCHES)


LOADS = {
    "keyed_updates, arrival": ("counter", "arrival", uniform),
    "keyed_updates, event-time": ("counter", "event-time", uniform),
    "zipf, arrival": ("counter", "arrival", zipf),
    "hot_topics, event-time": ("hot_topics", "event-time", tweets),
    "aggregates, count": ("count", "arrival", uniform),
    f"growth, {SLATES:,} slates": ("counter", "arrival", scattered),
}


def run(name: str, bench: Bench) -> dict[str, Any]:
    app, order, source = LOADS[name]
    store = bench.fresh("store")
    if name.startswith("growth"):
        shutil.copytree(_filled(bench), store)
    return bench.measure(
        name,
        on_millstream.run_all,
        app=app,
        order=order,
        source=source(bench),
        store=store,
        batches=BATCHES,
        keep=True,
    )


def _filled(bench: Bench) -> Path:
    """A store with many slates, created once."""
    store = bench.work / "filled"
    if not store.exists():
        given = {"single": str(data.single(bench.data)), "slates": SLATES, "active": KEYS}
        run_apart(prefill.prefill, store=str(store), **given)
    return store


if __name__ == "__main__":
    _, name, work, tree = sys.argv
    assert Path(millstream.__file__).is_relative_to(tree), f"{millstream.__file__} is measured"
    print(json.dumps(run(name, Bench(Path(work)))))
