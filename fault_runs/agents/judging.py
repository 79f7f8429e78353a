"""Compares the messages that the root got, and its windows, with the truth of the logs.

There are two checks. `told` adds up the manifests of the messages that the root accepts: each line
of the log must be in one of the four counts, once. `windows` compares every window that all nodes
have passed with the sums of its lines; if lines were late, and counted so, only with the number of
the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from fault_runs.agents.app import NAME
from fault_runs.agents.writing import Truth
from fault_runs.outcome import Difference
from millstream import App
from millstream.model.event import Event
from millstream.testing import Run
from millstream.testing import run as run_in_memory
from millstream.windows.panes.message import Message, PaneManifest
from millstream.windows.span import Span

HOP = 1_000
"""Microseconds between two messages: each takes some hops, one microsecond each, to the root."""
Answers = dict[int, dict[str, Any]]
"""By window and key, the answer of a window."""


@dataclass
class Account:
    """The sum of the messages of one node."""

    total: int = 0
    """The lines that its reader has counted."""
    records: Counter[int] = field(default_factory=Counter)
    late: Counter[int] = field(default_factory=Counter)
    shed: Counter[int] = field(default_factory=Counter)
    dead: int = 0
    repeated: int = 0
    """Repeated messages, which do not count."""
    panes: set[int] = field(default_factory=set)
    """The panes in its messages, in any order."""

    @property
    def residual(self) -> int:
        counted = self.records.total() + self.late.total() + self.shed.total() + self.dead
        return self.total - counted

    @property
    def holes(self) -> list[int]:
        """Panes that are missing in between."""
        return sorted(set(range(min(self.panes), max(self.panes))) - self.panes)

    def add(self, message: Message, told: PaneManifest) -> None:
        pane = message.pane
        self.panes.update(range(pane, message.until))
        self.records[pane] += told.records
        self.shed[pane] += told.shed
        self.dead += told.dead
        for late, count in told.late.items():
            self.late[int(late)] += count
        self.total = max(self.total, told.total)


def accounts(messages: Iterable[Message]) -> dict[str, Account]:
    """Adds up each node's messages; a message with a pane that is known already is not counted."""
    found: dict[str, Account] = {}
    taken: set[tuple[str, int]] = set()
    for message in messages:
        panes = range(message.pane, message.until)
        places = {(node, pane) for node in message.nodes for pane in panes}
        for node, told in message.nodes.items():
            account = found.setdefault(node, Account())
            if places & taken:
                account.repeated += 1
            elif places:
                account.add(message, told)
        if not places & taken:
            taken |= places
    return found


def told(messages: Sequence[Message], truths: Mapping[str, Truth]) -> Difference:
    """Lines that no message counts are lost; lines that are counted twice are doubled."""
    found, lost, doubled, notes = accounts(messages), 0, 0, list[str]()
    for node, truth in truths.items():
        account = found[node]
        counted = account.records + account.late + account.shed
        missing, extra = truth.records - counted, counted - truth.records
        dead = truth.dead - account.dead
        read = truth.lines - account.total
        lost += missing.total() + max(dead, 0) + len(account.holes)
        doubled += extra.total() + max(-dead, 0)
        if missing or extra or dead or read or account.holes:
            notes.append(
                f"{node}: panes with too few {dict(missing)}, with too many {dict(extra)}, "
                f"never told {account.holes[:5]}, dead letters {account.dead} of {truth.dead}, "
                f"read {account.total} of {truth.lines}"
            )
        if account.late:
            notes.append(f"{node}: {account.late.total()} lines were late, and counted")
        if account.residual or read:
            lost, doubled = lost + max(read, 0), doubled + max(-read, 0)
            notes.append(f"{node}: residual {account.residual}")
            lost += abs(account.residual)
    return Difference(lost, doubled, "; ".join(notes)[:1_000])


def in_memory(app: App, messages: Sequence[Message]) -> Run:
    """Runs the application over these messages, in the root's order."""
    stream = f"{NAME}.panes"
    events = [
        Event(stream, (number + 1) * HOP, message.tree, msgspec.to_builtins(message))
        for number, message in enumerate(messages)
    ]
    ran = run_in_memory(app, events)
    if ran.dead_letters:
        raise AssertionError(f"the root failed on a message: {ran.dead_letters[0]}")
    return ran


def answers(span: Span, rows: Iterable[tuple[str, Any]]) -> Answers:
    """The answers of windows, from the rows (key, value) of the job's output."""
    found: Answers = {}
    for key, value in rows:
        of = found.setdefault(value["from"] // span.slide, {})
        if key in of:
            raise AssertionError(f"window {value['from']}, key {key!r}: it was answered twice")
        of[key] = value["value"]
    return found


def windows(
    span: Span,
    found: Answers,
    truths: Sequence[Truth],
    late: Mapping[int, int] | None = None,
    first: int = 0,
) -> Difference:
    """Each window from `first` on, up to the last one that all nodes are in, must have the sums of
    its lines: at the end of its log an agent ends the windows that it is in.

    A key that is missing or too small is lost, one that is too large is doubled. A window whose
    lines were late, according to `late`, can only be too small.
    """
    lost, doubled, notes, late = 0, 0, list[str](), late or {}
    last = span.windows_of(min(truth.last for truth in truths))[-1]
    for window in range(first, last + 1):
        panes = span.panes_of(window)
        must: Counter[str] = Counter()
        for truth in truths:
            for pane in panes:
                must.update(truth.sums.get(pane, {}))
        have = Counter({key: value for key, value in found.get(window, {}).items() if value})
        missing, extra = must - have, have - must
        if missing and any(late.get(pane) for pane in panes):
            missing = Counter()
        if missing or extra:
            notes.append(f"window {window}: lost {dict(missing)}, doubled {dict(extra)}")
        lost, doubled = lost + len(missing), doubled + len(extra)
    if last - first < 3:
        raise AssertionError(f"only windows {first} to {last} were passed: nothing was shown")
    return Difference(lost, doubled, "; ".join(notes)[:1_000])


def both(one: Difference, other: Difference) -> Difference:
    """Adds two differences."""
    note = "; ".join(filter(None, (one.note, other.note)))
    return Difference(one.lost + other.lost, one.doubled + other.doubled, note)
