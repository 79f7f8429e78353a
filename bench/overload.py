"""The load rises tenfold, above the application's capacity, and falls again: how long are batches?

The slow update can process about 7,000 events a second on two cores. Calm, storm and calm follow
each other without a pause. The intake must keep the time of a batch near the target in the storm,
and the backlog must be gone at the end.
"""

from __future__ import annotations

import time
from typing import Any

from bench import feed, on_millstream
from bench.apart import started
from bench.bench import Bench
from bench.figures import Bar, Outcome, percentile
from bench.latency import EVERY, opened

TARGET = 2.0
CALM, STORM = 1_000, 10_000


def run(bench: Bench) -> Outcome:
    calm, storm, after = (8.0, 8.0, 10.0) if bench.quick else (20.0, 40.0, 90.0)
    source, store, stop = (bench.fresh(f"live/{name}") for name in ("in", "store", "stop"))
    stop.unlink(missing_ok=True)
    source.mkdir()
    given = {"app": "slow", "order": "arrival", "address": f"json:{source}", "store": str(store)}
    phases = [[CALM, calm], [STORM, storm], [CALM, after]]
    with started(on_millstream.run_until, **given, stop=str(stop)) as running:
        (source / "first.json").write_text('{"key":"first","ts":1,"n":0}\n')
        opened(store, running).close()
        began = time.time()
        with started(feed.feed, folder=str(source), every=EVERY, phases=phases) as feeding:
            feeding.wait()
        time.sleep(5)
        stop.touch()
        batches = running.wait()["batches"]
    ends = [began + calm, began + calm + storm, began + calm + storm + after]
    rows = [
        _row("calm", batches, began, ends[0]),
        _row("ten times as much", batches, ends[0] + storm / 4, ends[1]),
        _row("calm again, the last third", batches, ends[2] - after / 3, ends[2]),
    ]
    figures = {
        "storm_p95_of_target": rows[1]["batch_p95_s"] / TARGET,
        "after_p50_of_calm": rows[2]["batch_p50_s"] / rows[0]["batch_p50_s"],
    }
    return Outcome(
        "overload",
        rows,
        figures,
        [
            Bar("storm_p95_of_target", figures["storm_p95_of_target"], 1.5, at_least=False),
            Bar("after_p50_of_calm", figures["after_p50_of_calm"], 1.5, at_least=False),
        ],
        {"calm": CALM, "storm": STORM, "target_s": TARGET, "seconds": [calm, storm, after]},
        ["the first quarter of the storm is left out: the intake finds its size in it"],
    )


def _row(what: str, batches: list[Any], start: float, stop: float) -> dict[str, Any]:
    found = [
        (events, seconds) for events, seconds, _, at, _ in batches if events and start < at <= stop
    ]
    times = [seconds for _, seconds in found]
    return {
        "what": what,
        "batches": len(found),
        "events": sum(events for events, _ in found),
        "batch_p50_s": percentile(times, 0.5),
        "batch_p95_s": percentile(times, 0.95),
        "batch_max_s": max(times),
    }
