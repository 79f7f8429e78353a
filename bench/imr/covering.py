"""How often bounds and contracts hold, over many windows.

*Simulated*: the windows of `drawn_windows`, whose panes are made up, with the truth of each.
*Panes*: words skewed over the nodes, made into panes by the code that agents run, half of them
drawn; the bounds are worked out from the messages, as the root does.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from bench.bench import Bench
from bench.imr import drawn_windows
from bench.imr.plan import Covering
from examples.imr.word_traffic import Words, log
from examples.skewed_words import word_count
from millstream.messages.answers import Bound
from millstream.windows.bounds.estimates import Estimate, estimate
from millstream.windows.fidelity import Area, Error
from millstream.windows.job import Job
from millstream.windows.panes.message import Message, PaneManifest
from millstream.windows.panes.pane_maker import Maker, Making
from millstream.windows.panes.pane_rank import rank

Row = dict[str, Any]
PART = 0.5
SEED = 6
LINES = 4
"""Records of a pane."""
FREQUENT = 0.01
"""The share of all words from which on a word counts as frequent."""


@dataclass(slots=True)
class Tally:
    """The number of intervals, and of those that contain the truth."""

    intervals: int = 0
    covered: int = 0

    def add(self, bound: Bound, truth: float) -> None:
        low, high = bound.low, bound.high
        self.intervals += 1
        self.covered += (low is None or low <= truth) and (high is None or truth <= high)


def panes(bench: Bench, plan: Covering) -> list[Row]:
    """Rows of the windows that go through maps and panes."""
    names = tuple(f"node{number}" for number in range(1, plan.nodes + 1))
    size = plan.panes * LINES
    job = word_count(range=size, pane=LINES, fidelity=Area(PART, drawn=True), shed="drawn", most=8)
    given = Words(plan.real * size, nodes=names)
    logs = [list(log(given, number)) for number in range(plan.nodes)]
    told = [message for n, node in enumerate(names) for message in _messages(job, node, logs[n])]
    tallies = {"count, total": Tally(), "count, frequent keys": Tally()}
    for window in range(plan.real):
        truth = Counter(
            word
            for of in logs
            for record in of[window * size : (window + 1) * size]
            for word in record["line"].split()
        )
        found = _estimate(job, names, job.span.panes_of(window), told)
        tallies["count, total"].add(found.total, truth.total())
        for word, count in truth.items():
            if word in found.keys and count >= FREQUENT * truth.total():
                tallies["count, frequent keys"].add(found.keys[word], count)
    return [_row(what, "panes", one) for what, one in tallies.items()]


def _messages(job: Job, node: str, records: list[Row]) -> list[Message]:
    """Returns the messages of an agent that makes only the drawn panes."""
    maker, making = Maker(job, node, live=True), Making()
    found: list[Message] = []
    for record in records:
        before = making.pane
        found += maker.take(making, record, record["time"] * 1_000, len(record["line"]))
        if making.pane != before:
            assert making.pane is not None
            if rank(job.seed, node, making.pane, job.span.panes) >= PART * job.span.panes:
                maker.give_up(making, "drawn")
    assert making.pane is not None
    return [*found, *maker.end(making, making.pane + 1)]


def _estimate(job: Job, names: tuple[str, ...], panes: range, told: list[Message]) -> Estimate:
    """Returns the bounds of a window from the reported panes."""
    manifests: dict[tuple[str, int], PaneManifest] = {}
    values: dict[str, dict[tuple[str, int], Any]] = {}
    for message in told:
        if message.pane in panes:
            ((node, manifest),) = message.nodes.items()
            manifests[node, message.pane] = manifest
            for key, partial in message.partials.items():
                values.setdefault(key, {})[node, message.pane] = partial
    return estimate(job, names, panes, manifests, values)


def _row(what: str, how: str, tally: Tally) -> Row:
    covered = tally.covered / tally.intervals if tally.intervals else 0.0
    return {"what": what, "how": how, "intervals": tally.intervals, "covered": covered}


def simulated(bench: Bench, plan: Covering) -> list[Row]:
    """Rows of the simulated windows: for each kind of answer its total and its keys."""
    rows = []
    for found in drawn_windows.covered(plan.windows, seed=SEED, part=PART):
        rare = found["what"] in set(drawn_windows.KEYS) - set(drawn_windows.FREQUENT)
        rows.append(
            {
                "what": f"{found['kind']}, {found['what']}",
                "kind": found["kind"],
                "of": found["what"],
                "how": "simulated, rare key" if rare else "simulated",
                "intervals": found["windows"],
                "covered": found["covered"],
                "width": found["width"],
            }
        )
    return rows


def run(bench: Bench, plan: Covering) -> list[Row]:
    """Rows of simulated windows and of panes."""
    rows = [*simulated(bench, plan), *panes(bench, plan)]
    for row in rows:
        bench.say(f"    {row['what']}, {row['how']}: {row['covered']:.1%} of {row['intervals']}")
    return rows


def contract(bench: Bench, plan: Covering) -> list[Row]:
    """Returns how often simulated windows that were closed by an error contract were within it."""
    rows = []
    for kind in ("count", "mean"):
        found = drawn_windows.contract(plan.windows, kind, Error(plan.error), seed=SEED)
        held = [one["error"] <= plan.error for one in found]
        rows.append(
            {
                "what": f"{kind}, ±{plan.error:.0%}",
                "windows": len(found),
                "held": sum(held) / len(held),
                "data": fmean(one["part"] for one in found),
            }
        )
        bench.say(f"    {rows[-1]['what']}: held {rows[-1]['held']:.1%}")
    return rows
