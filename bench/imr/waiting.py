"""Figure 9 (c), and the error contract: how long a window takes by what is asked of it.

All of a job's logs are there at once, and its agents read them as fast as they can. A window takes
from when the first node has reached it until it is closed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.bench import Bench
from bench.imr import live, nodes, texts
from bench.imr.noise import Noise
from bench.imr.plan import Waiting
from bench.imr.watching import Watch

Row = dict[str, Any]
ASKED = ("full", "area", "drawn", "spatial", "temporal", "error")


def run(bench: Bench, plan: Waiting) -> list[Row]:
    """A row for each specification."""
    names = [f"n{number}" for number in range(plan.agents)]
    jobs = [live.job(asked, names, **_options(plan, asked)) for asked in ASKED]
    lines = plan.records * plan.windows
    logs = [
        texts.written(
            bench.data / f"imr-words-{lines}-{node}-{plan.agents}.log", node, plan.agents, lines
        )
        for node in range(plan.agents)
    ]
    with live.root(bench, "waiting", jobs) as root:
        return [_run(bench, plan, root, logs, asked) for asked in ASKED]


def _options(plan: Waiting, asked: str) -> dict[str, Any]:
    given: dict[str, Any] = {
        "by": "records",
        "range": plan.records,
        "pane": plan.records // plan.panes,
    }
    if asked == "error":
        return {**given, "fidelity": ["error", plan.error], "bounds": "count"}
    return given if asked == "full" else {**given, "fidelity": [asked, plan.part]}


def _run(bench: Bench, plan: Waiting, root: live.Root, logs: list[Path], asked: str) -> Row:
    named = {f"n{number}": log for number, log in enumerate(logs)}
    found = measured(root, asked, named, slide=plan.records, windows=plan.windows)
    bench.say(f"    {asked}: {found['window_s']:.2f} s a window, {found['fidelity']:.0%}")
    return {"what": asked, "asked": asked, **found}


def measured(
    root: live.Root, job: str, logs: Mapping[str, Path], *, slide: int, windows: int
) -> Row:
    """Have agents read the logs of a job's nodes, until so many of its windows are closed."""
    places = [
        nodes.Node(node, job, log, root.folder / f"{job}-{node}", once=True)
        for node, log in logs.items()
    ]
    with (
        Watch(root.url, job, slide) as watch,
        Noise() as shares,
        nodes.running(places, root.url, root.environ) as started,
    ):

        def look() -> None:
            for agent in started:
                agent.check()

        closed = watch.until(lambda closed: len(closed) >= windows, look)[:windows]
    whys = Counter(one.why for one in closed)
    return {
        "windows": len(closed),
        "window_s": sum(one.took for one in closed) / len(closed),
        "fidelity": sum(one.area for one in closed) / len(closed),
        "why": ", ".join(f"{why} {number}" for why, number in sorted(whys.items())),
        **shares.row(),
    }
