"""The answers of a run beside the lines that were written: what is wrong, in words.

A record is in the answer of its window, or the accounts say what became of it: late, shed, dead. An
agent that never came back has told nothing of what it had left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from bench.agent_simulation.simulation import Simulation, waiting_panes, written_windows
from millstream.codec import decode_value
from millstream.trees.tree_placement import DEEPEST
from millstream.windows.accounts import COUNTS, residual, window_in

MOST_WORDS = 20


@dataclass(slots=True)
class WindowAnswer:
    """The last answer of a window."""

    summary: dict[str, Any] = field(default_factory=dict)
    keys: dict[str, dict[str, Any]] = field(default_factory=dict)
    times: int = 0
    """The number of times that the window was answered."""


def answers(here: Simulation) -> dict[int, WindowAnswer]:
    """By window."""
    found: dict[int, WindowAnswer] = {}
    slide = here.placed.job.span.slide
    for event in here.root.answers():
        found.setdefault(event.value["from"] // slide, WindowAnswer()).keys[event.key] = event.value
    for event in here.root.summaries():
        answer = found.setdefault(event.value["from"] // slide, WindowAnswer())
        answer.summary = event.value
        answer.times += 1
    return found


def problems(here: Simulation) -> list[str]:
    """All that is wrong with a run; nothing, if it went as it must."""
    found: list[str] = []
    for check in (_failed, _waiting, _windows, _accounts, _tree):
        for sentence in check(here):
            found.append(sentence)
            if len(found) >= MOST_WORDS:
                return found
    return found


def _failed(here: Simulation) -> Iterator[str]:
    """Strands and functions that raised something."""
    for name, error in here.world.failures:
        yield f"{name}: {type(error).__name__}: {error}"
    for node in here.nodes.values():
        if node.agent is not None:
            try:
                node.agent.link.check()
                node.agent.membership.check()
            except Exception as error:
                yield f"{node.name}: {type(error).__name__}: {error}"
    for letter in here.root.application.dead_letters:
        yield f"{letter.function} at the root: {letter.error}"


def _waiting(here: Simulation) -> Iterator[str]:
    """Windows that wait for ever, and panes that are never taken."""
    for window in written_windows(here):
        if window not in here.root.closed_at:
            yield f"window {window} is open {here.world.now - here.end:.0f} s after the logs' end"
    for node in here.nodes.values():
        waiting = waiting_panes(here, node)
        if waiting:
            yield f"{node.name}: panes {waiting[:5]} were not taken; it said {node.said}"


def _windows(here: Simulation) -> Iterator[str]:
    """Answers against the lines of their windows."""
    whole = not here.faults.never_back
    entries = _entries(here)
    for window, answer in sorted(answers(here).items()):
        truth = _lines_of(here, window)
        counted = {key: int(value["value"]["count"]) for key, value in answer.keys.items()}
        more = {key: count for key, count in counted.items() if count > truth[key]}
        if answer.times != 1:
            yield f"window {window}: was answered {answer.times} times"
        if more:
            yield f"window {window}: more than was written: {more}, truth {dict(truth)}"
        known = entries.get(window)
        if known is None:
            continue
        where = f"window {window} ({answer.summary.get('why')})"
        if sum(counted.values()) != known["on_time"]:
            yield f"{where}: answers {sum(counted.values())}, on time {known['on_time']}"
        if residual(known):
            yield f"{where}: a residual of {residual(known)}"
        told = known["on_time"] + known["late"] + known["shed"]
        if told > truth.total() or (whole and told < truth.total()):
            yield f"{where}: {told} records are known of {truth.total()}: {known}"
        bounds = {**{key: one.get("bounds") for key, one in answer.keys.items()}}
        for key, bound in {**bounds, "": answer.summary.get("total")}.items():
            if bound is not None:
                true = truth.total() if key == "" else truth[key]
                yield from _bound(f"{where}, key {key!r}", bound, true, known["late"])


def _bound(where: str, bound: dict[str, Any], true: int, late: int) -> Iterator[str]:
    """A bound holds the truth, or says that late records may break it, and only they do."""
    low, high = bound["low"], bound["high"]
    if low is not None and true < low:
        yield f"{where}: {true} is under the bound {bound}"
    if high is not None and true > high and (bound.get("final", True) or true > high + late):
        yield f"{where}: {true} is over the bound {bound}, and {late} were late"


def _accounts(here: Simulation) -> Iterator[str]:
    """Yields the differences between the root's account of each node and the lines that the node
    has written."""
    accounts: dict[str, Counter[str]] = {}
    for table in here.root.tables():
        for entry, value in table.items():
            if entry.startswith("account|"):
                account = accounts.setdefault(entry.partition("|")[2], Counter())
                account.update({one: decode_value(value)[one] for one in COUNTS})
    for name, node in here.nodes.items():
        known, written = accounts.get(name, Counter()), here.truth.written[name]
        if residual({one: known[one] for one in COUNTS}):
            yield f"{name}: its account leaves a residual: {dict(known)}"
        if known["read"] > written or (node.agent is not None and known["read"] < written):
            yield f"{name}: {known['read']} records are accounted for of {written}"
        if node.agent is not None and known["dead"] != here.truth.broken[name]:
            yield f"{name}: {known['dead']} dead letters of {here.truth.broken[name]}"


def _tree(here: Simulation) -> Iterator[str]:
    """No node is outside, and none sits where it must not."""
    rows = {row.node: row for row in here.root.placement.rows(here.world.now)}
    for name, node in here.nodes.items():
        if node.agent is None:
            continue
        row, member = rows.get(name), node.agent.member
        if row is None:
            yield f"{name}: the root does not know it"
            continue
        way = member.way()
        if (way.parent if way is not None else None) != row.parent:
            yield f"{name}: sits below {way}, and by the root below {row.parent}"
        if row.depth > DEEPEST:
            yield f"{name}: is {row.depth} steps from the root"
        if len(row.children) > node.capacity:
            yield f"{name}: has {len(row.children)} children, and takes {node.capacity}"
    top = [row for row in rows.values() if row.parent is None and here.nodes[row.node].agent]
    newest = sorted(top, key=lambda row: -_seat_of(here, row.node))
    over = newest[: max(0, len(top) - here.scenario.fan_out)]  # there for want of room
    leaves = [row.node for row in over if not row.children]
    room = [
        row.node
        for row in rows.values()
        if len(row.children) < here.nodes[row.node].capacity and row.depth < DEEPEST
    ]
    if leaves and {*room} - {*leaves}:
        yield f"the root has {len(top)} children, {leaves[:3]} among them, and {room[:3]} have room"


def _seat_of(here: Simulation, name: str) -> int:
    agent = here.nodes[name].agent
    return 0 if agent is None else agent.member.seat.number


def _lines_of(here: Simulation, window: int) -> Counter[str]:
    truth: Counter[str] = Counter()
    for pane in here.placed.job.span.panes_of(window):
        truth.update(here.truth.keys.get(pane, Counter()))
    return truth


def _entries(here: Simulation) -> dict[int, dict[str, Any]]:
    """Returns the entries of windows in the root's tables."""
    return {
        window_in(entry): decode_value(value)
        for table in here.root.tables()
        for entry, value in table.items()
        if entry.startswith("window|")
    }
