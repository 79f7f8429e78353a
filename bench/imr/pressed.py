"""A node that has less time for its log than it would need: one run, seen from outside (Figures 8
and 13).

The agent and the other work have a core of their own, the root and whoever writes the log have the
rest, so that only the node is pressed. The log grows at a stated rate. The run has a fixed length:
a window that is not closed by then has nothing in it, and is late.
"""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass
from functools import partial
from math import ceil
from typing import Any

from bench.apart import RunFailedError
from bench.bench import Bench
from bench.imr import live, nodes, texts
from bench.imr.lacking import DEAF
from bench.imr.noise import Noise
from bench.imr.plan import Timed
from bench.imr.watching import LOOK, PATIENCE, Watch, Window

Row = dict[str, Any]
NODE = "node"
SLACK = 1.0
"""Seconds after its deadline that a window still counts as in time: the root works in batches, and
this process looks every so often."""
PATIENT = 10.0
"""A latency from which on windows are waited for, however long they take."""
PRECISE = 1.0
"""Latencies are rounded up to a multiple of this."""
POLICIES = {"none": "never", "cancelling": "never", "order": "order", "drawn": "drawn"}
"""The agent's policies under pressure. `none`: no shedding, ignores closed windows. `cancelling`:
stops work on closed windows. Others: the policies of `Job.shed`."""


@dataclass(frozen=True, slots=True)
class Calibrated:
    """The capacity of an agent on its core, the load on it, and the undisturbed time of its
    windows."""

    capacity: float
    rate: float
    latency: float
    took: float
    """The latency as it was, before it was rounded up."""


def job(name: str, timed: Timed, policy: str, latency: float | None) -> live.JobOptions:
    """The job of a run."""
    return live.job(
        name,
        [NODE],
        range=live.duration(timed.window),
        pane=live.duration(timed.pane),
        latency=None if latency is None else live.duration(latency),
        shed=POLICIES[policy],
    )


def calibrated(bench: Bench, timed: Timed, load: float, records: int) -> Calibrated:
    """Measures the speed of an agent alone, and the time of its windows at a fraction of that
    load."""
    _, rest = nodes.split_cores()
    at_once = live.job("capacity", [NODE], by="records", range=records, pane=records // 10)
    jobs = [at_once, job("undisturbed", timed, "none", None)]
    with live.root(bench, "calibrated", jobs, rest) as root:
        capacity = _capacity(bench, root, records)
        rate = load * capacity
        row, windows = pressed(bench, root, "undisturbed", timed, rate, PATIENCE)
        took = max(one.closed - end_of(one, timed) for one in windows if one.closed is not None)
    latency = ceil(took / PRECISE) * PRECISE
    bench.say(f"    capacity {capacity:,.0f}/s, undisturbed {took:.2f} s, {row['fidelity']:.0%}")
    return Calibrated(capacity, rate, latency, took)


def _capacity(bench: Bench, root: live.Root, records: int) -> float:
    """Records a second of an agent with a core to itself, over a log that is there at once."""
    own, _ = nodes.split_cores()
    log = texts.written(bench.data / f"imr-long-{records}.log", 0, 1, records, texts.LONG)
    node = nodes.Node(NODE, "capacity", log, root.folder / "capacity", cores=own, once=True)
    with (
        Watch(root.url, "capacity", records) as watch,
        nodes.running([node], root.url, root.environ) as started,
    ):
        (window,) = watch.until(lambda closed: len(closed) == 1, started[0].check)
    return records / window.took


def pressed(
    bench: Bench,
    root: live.Root,
    name: str,
    timed: Timed,
    rate: float,
    latency: float,
    *,
    policy: str = "order",
    burns: int = 0,
    nice: int = 0,
) -> tuple[Row, list[Window]]:
    """Makes a run, and returns its row and its windows."""
    own, rest = nodes.split_cores()
    folder = root.folder / name
    folder.mkdir()
    module = DEAF if policy == "none" else nodes.PLAIN
    node = nodes.Node(
        NODE, name, folder / f"{NODE}.log", folder / "state", nice, own, module=module
    )
    with (
        Watch(root.url, name, live.micros(timed.window)) as watch,
        Noise() as shares,
        live.growing(folder, [NODE], rate, rest, words=texts.LONG) as written,
        nodes.running([node], root.url, root.environ) as started,
    ):
        _at_work(watch, started[0])
        with live.burnt(folder, burns, own) as done:
            first = ceil(time.time() / timed.window)
            over = (first + timed.windows) * timed.window + latency + SLACK
            if latency < PATIENT:
                time.sleep(max(0.0, over - time.time()))
            else:
                watch.until(partial(_are_closed, first + timed.windows - 1))
        started[0].check()
    asked = range(first, first + timed.windows)
    windows = [watch.windows.get(number, Window(number)) for number in asked]
    row = {
        **judged(windows, timed, latency),
        "lines": written[NODE],
        "other_per_s": sum(one["per_s"] for one in done),
        **shares.row(),
    }
    return row, windows


def _at_work(watch: Watch, agent: nodes.Agent) -> None:
    """Wait until the agent has told the root where it begins."""
    deadline = time.monotonic() + PATIENCE
    while not watch.windows:
        if time.monotonic() > deadline:
            raise RunFailedError(f"the agent told nothing in {PATIENCE:.0f} s")
        agent.check()
        time.sleep(LOOK)


def _are_closed(last: int, closed: list[Window]) -> bool:
    return bool(closed) and closed[-1].number >= last


def end_of(window: Window, timed: Timed) -> float:
    return (window.number + 1) * timed.window


def judged(windows: list[Window], timed: Timed, latency: float) -> Row:
    """Judges windows that had to be closed a given time after their end. `fidelity` counts the data
    that was there when the window was due, and none for a late window; `whenever` counts all data
    that came."""
    waits = [one.closed - end_of(one, timed) for one in windows if one.closed is not None]
    in_time = [wait <= latency + SLACK for wait in waits]
    answered = [one for one in windows if one.closed is not None]
    areas = [one.area for one, kept in zip(answered, in_time, strict=True) if kept]
    whys = Counter(one.why for one in windows if one.closed is not None)
    return {
        "windows": len(windows),
        "met": sum(in_time) / len(windows),
        "fidelity": sum(areas) / len(windows),
        "whenever": sum(one.area for one in windows) / len(windows),
        "latency_s": sum(waits) / len(waits) if waits else None,
        "latency_max_s": max(waits, default=None),
        "never": len(windows) - len(waits),
        "why": ", ".join(f"{why} {count}" for why, count in sorted(whys.items())),
    }
