"""Runs a load of `bench.in_turn` with the Millstream and the benchmarks that PYTHONPATH names.

`python in_turn_run.py NAME WORK TREE` prints a row as JSON. It is a script, not a module of the
package, so that the code of the other commit is measured by that commit's own benchmarks.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import millstream
from bench import data, on_millstream, prefill
from bench.apart import begun, run_apart
from bench.bench import Bench
from bench.processes import Sampler, Usage

EVENTS = 4_000_000
KEYS = 100_000
BATCHES = 5
SLATES = 1_000_000
POST_SECONDS = 10.0


def uniform(bench: Bench) -> Path:
    return data.uniform(bench.data, EVENTS, KEYS, BATCHES)


def zipf(bench: Bench) -> Path:
    return data.zipf(bench.data, EVENTS, 1_000, 1.1, BATCHES)


def tweets(bench: Bench) -> Path:
    return data.tweets(bench.data, 300_000, 3.0, BATCHES)


def scattered(bench: Bench) -> Path:
    return data.scattered(bench.data, 500_000, KEYS, BATCHES)


HTTP = "HTTP intake"
LOADS = {
    "keyed_updates, arrival": ("counter", "arrival", uniform),
    "keyed_updates, event-time": ("counter", "event-time", uniform),
    "zipf, arrival": ("counter", "arrival", zipf),
    "hot_topics, event-time": ("hot_topics", "event-time", tweets),
    "aggregates, count": ("count", "arrival", uniform),
    "aggregates, sum": ("sum", "arrival", uniform),
    "batch across keys": ("table_mean", "arrival", uniform),
    HTTP: ("live", "arrival", uniform),
    f"growth, {SLATES:,} slates": ("counter", "arrival", scattered),
}


def run(name: str, bench: Bench) -> dict[str, Any]:
    if name == HTTP:
        return _posted(bench)
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


def _posted(bench: Bench) -> dict[str, Any]:
    """The rate at which a running application accepts posts of 500 events over four connections;
    it counts them meanwhile."""
    from bench import sending  # only for this load: they have changed more than the others
    from bench.served import served

    store, log, usage = bench.fresh("served/store"), bench.work / "served" / "log", Usage()
    given: dict[str, Any] = {"keys": 10_000, "batch": 500}
    with served("run", "bench/live_app.py:arrival", store=store, log=log) as app:
        with begun(sending.fill, url=app.url, **given) as filling:
            filling.wait()
        posting = {"parts": app.parts, "connections": 4, "seconds": POST_SECONDS, **given}
        with (
            Sampler(os.getpid(), usage),
            begun(sending.post_closed, url=app.url, **posting) as posts,
        ):
            found = posts.wait()
    assert "not_200" not in found, found
    return {
        "what": HTTP,
        "events_per_s": found["per_s"],
        "caught_up_s": found["caught_up_s"],
        "cpu_others": round(usage.cpu_others, 2),
    }


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
