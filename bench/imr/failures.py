"""Figure 10: servers are replaced while their windows are open, and panes of theirs are gone.

In every window some nodes go down shortly before a pane ends, with their log and all that their
agent had; a little later a new server takes their name, with an empty log. Its agent says where it
begins. So the root knows that the pane before will never come, and closes the window as soon as
the others are through (*told*). For comparison the new agents do not say it (*silent*), and the
root waits until the window's latency is over: the same faults, and no boundary panes.
"""

from __future__ import annotations

import shutil
import time
from collections import Counter
from dataclasses import replace
from itertools import cycle
from typing import Any

from bench.bench import Bench
from bench.imr import live, nodes
from bench.imr.lacking import MUTE
from bench.imr.noise import Noise
from bench.imr.plan import Failures
from bench.imr.watching import Watch, Window

Row = dict[str, Any]
DOWN, UP = 0.45, 0.55
"""When in a window of two panes a server goes down, and when the new one is there: the first pane
has not ended, and the second has begun."""


def run(bench: Bench, plan: Failures) -> list[Row]:
    """A row for each number of replaced servers, told and silent."""
    runs = [(count, told) for count in plan.replaced for told in (False, True)]
    names = [f"n{number}" for number in range(plan.agents)]
    jobs = [
        live.job(
            _name(count, told),
            names,
            range=live.duration(plan.timed.window),
            pane=live.duration(plan.timed.pane),
            latency=live.duration(plan.latency),
        )
        for count, told in runs
    ]
    with live.root(bench, "failures", jobs) as root:
        return [_run(bench, plan, root, names, *one) for one in runs]


def _run(
    bench: Bench, plan: Failures, root: live.Root, names: list[str], count: int, told: bool
) -> Row:
    name, timed = _name(count, told), plan.timed
    folder = root.folder / name
    folder.mkdir()
    module = nodes.PLAIN if told else MUTE
    places = [
        nodes.Node(node, name, folder / f"{node}.log", folder / f"{node}-0") for node in names
    ]
    turn = cycle(range(plan.agents))
    with (
        Watch(root.url, name, live.micros(timed.window)) as watch,
        Noise() as shares,
        live.growing(folder, names, plan.rate),
        nodes.running(places, root.url, root.environ) as started,
    ):
        watch.until(lambda closed: any(one.why == "complete" for one in closed))
        first = int(time.time() // timed.window) + 1
        for number in range(first, first + timed.windows):
            struck = [next(turn) for _ in range(count)]
            _until(number * timed.window + DOWN * timed.window)
            for place in struck:
                started[place].kill()
            _until(number * timed.window + UP * timed.window)
            for place in struck:
                started[place] = _replaced(started[place].node, number, module, root)
        last = first + timed.windows - 1
        windows = watch.until(lambda closed: _all_closed(closed, first, last))
    judged = [one for one in windows if first <= one.number <= last]
    row = _row(judged, plan, count, told)
    row |= shares.row()
    bench.say(f"    {row['what']}: {row['goodput']:.2f} panes/s, {row['why']}")
    return row


def _replaced(
    node: nodes.Node, number: int, module: tuple[str, ...], root: live.Root
) -> nodes.Agent:
    """A new server under the same name: nothing of the old one is left."""
    node.log.unlink(missing_ok=True)
    shutil.rmtree(node.state, ignore_errors=True)
    state = node.state.with_name(f"{node.name}-{number}")
    return nodes.start(replace(node, state=state, module=module), root.url, root.environ)


def _all_closed(closed: list[Window], first: int, last: int) -> bool:
    return sum(first <= one.number <= last for one in closed) == last - first + 1


def _row(windows: list[Window], plan: Failures, count: int, told: bool) -> Row:
    """Goodput: panes that were delivered, by the time that their windows took from their begin."""
    timed = plan.timed
    waited = sum((one.closed or 0.0) - one.number * timed.window for one in windows)
    panes = sum(sum(one.told[0]["histogram"]) for one in windows)
    whys = Counter(one.why for one in windows)
    return {
        "what": f"{count} replaced, {'told' if told else 'silent'}",
        "replaced": count,
        "told": told,
        "windows": len(windows),
        "panes": panes,
        "window_s": waited / len(windows),
        "goodput": panes / waited,
        "fidelity": sum(one.area for one in windows) / len(windows),
        "why": ", ".join(f"{why} {number}" for why, number in sorted(whys.items())),
    }


def _name(count: int, told: bool) -> str:
    return f"{'told' if told else 'silent'}{count}"


def _until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.time()))
