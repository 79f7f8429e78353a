"""The cost of a node that is idle, or whose clock is an hour ahead, to the others: how long after
their end windows are closed, with and without it."""

from __future__ import annotations

import time
from collections import Counter
from statistics import median
from typing import Any

from bench.bench import Bench
from bench.imr import live, nodes
from bench.imr.noise import Noise
from bench.imr.plan import Clocks
from bench.imr.watching import Watch, Window

Row = dict[str, Any]
KINDS = ("alike", "idle", "ahead")


def run(bench: Bench, plan: Clocks) -> list[Row]:
    """A row for each kind of last node."""
    names = [f"n{number}" for number in range(plan.agents)]
    jobs = [
        live.job(
            kind,
            names,
            range=live.duration(plan.timed.window),
            pane=live.duration(plan.timed.pane),
            latency=live.duration(plan.latency),
        )
        for kind in KINDS
    ]
    with live.root(bench, "clocks", jobs) as root:
        rows = [_run(bench, plan, root, names, kind) for kind in KINDS]
    for row in rows:
        row["ratio"] = row["latency_s"] / rows[0]["latency_s"]
        row["longer_s"] = row["latency_s"] - rows[0]["latency_s"]
    return rows


def _run(bench: Bench, plan: Clocks, root: live.Root, names: list[str], kind: str) -> Row:
    folder, timed = root.folder / kind, plan.timed
    folder.mkdir()
    places = [nodes.Node(node, kind, folder / f"{node}.log", folder / node) for node in names]
    odd = names[-1]
    with (
        Watch(root.url, kind, live.micros(timed.window)) as watch,
        Noise() as shares,
        live.growing(
            folder,
            names,
            plan.rate,
            idle=(odd,) if kind == "idle" else (),
            ahead={odd: plan.ahead} if kind == "ahead" else None,
        ),
        nodes.running(places, root.url, root.environ) as started,
    ):
        watch.until(lambda closed: any(len(one.told) for one in closed), started[0].check)
        first = int(time.time() // timed.window) + 1
        last = first + timed.windows - 1
        found = watch.until(lambda closed: len(_of(closed, first, last)) == timed.windows)
    windows = _of(found, first, last)
    waits = [(one.closed or 0.0) - (one.number + 1) * timed.window for one in windows]
    whys = Counter(one.why for one in windows)
    row = {
        "what": kind,
        "kind": kind,
        "windows": len(windows),
        "latency_s": median(waits),
        "latency_max_s": max(waits),
        "fidelity": sum(one.area for one in windows) / len(windows),
        "why": ", ".join(f"{why} {number}" for why, number in sorted(whys.items())),
        **shares.row(),
    }
    bench.say(f"    {kind}: {row['latency_s']:.2f} s after the end, {row['why']}")
    return row


def _of(closed: list[Window], first: int, last: int) -> list[Window]:
    return [one for one in closed if first <= one.number <= last]
