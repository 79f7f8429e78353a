"""The marks of panes, in the root's table: what which node has told of which pane.

    board|PANE|NODE    by node, its mark of the pane (`accounts`: what stands where); one entry for
                       each message, by the first of its nodes
    past|PANE|NODE     the same of the last panes that were let go, only to be looked at
    tally|PANE         how many nodes have marked the pane, have received it, have lost it
    tardy|PANE|NODE    late records of a pane that its node has found since it sent the pane

A message writes an entry of its own, so that it costs no more the more nodes a job has. Late
records stay apart from the mark of their pane, which need not be looked for; and may come before.

Stores of earlier versions have `board|PANE`, `past|PANE` and `tardy|PANE`, each of all nodes. They
are read as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from millstream.model.slate import Table
from millstream.windows.accounts import GAP, LATE, MARK, READ

Marks = dict[str, list[Any]]
State = Literal["received", "lost"]
"""What is known of a pane of a node; None if it is still awaited."""
_ZERO = 1 << 62
"""Added to a pane's number, so that the order of texts is that of numbers."""


MOST_SHOWN = 72
"""Panes of a scoreboard that is shown."""
MOST_CELLS = 6_000
"""Marks of a scoreboard that is shown."""


def shown_panes(nodes: int) -> int:
    """How many panes are shown of so many nodes, and kept to be shown.

    >>> shown_panes(10), shown_panes(1_000)
    (72, 6)
    """
    return max(1, min(MOST_SHOWN, MOST_CELLS // nodes))


class PaneTally(NamedTuple):
    """Counts of nodes."""

    marked: int = 0
    received: int = 0
    lost: int = 0


def board(pane: int) -> str:
    """How the entries of a pane's marks begin."""
    return _entry("board", pane)


def past(pane: int) -> str:
    """How the entries of a pane's marks begin once nothing needs them."""
    return _entry("past", pane)


def tally(pane: int) -> str:
    """The entry of a pane's counts."""
    return _entry("tally", pane)


def tardy(pane: int) -> str:
    """How the entries of late records begin."""
    return _entry("tardy", pane)


def pane_in(entry: str) -> int:
    """The pane that an entry is of."""
    return int(entry.split("|", 2)[1]) - _ZERO


def state_of(mark: Sequence[Any]) -> State:
    """What is known of a pane of a node that has told of it. One with a gap is not whole, though
    its records are in the values."""
    return "lost" if mark[MARK] == "lost" or mark[GAP] else "received"


def _entry(kind: str, pane: int) -> str:
    return f"{kind}|{pane + _ZERO:020d}"


@dataclass(frozen=True, slots=True)
class PaneMarks:
    """The marks in a table."""

    table: Table
    meta: dict[str, Any]
    """The scoreboard's. `tardy`: there are late records, or were; else nobody looks for them."""

    def put(self, pane: int, marks: Marks) -> None:
        """Keep the marks of a message."""
        self.table[f"{board(pane)}|{min(marks)}"] = marks

    def of(self, panes: range) -> dict[int, Marks]:
        """The panes that have marks, in order, each with those of all nodes."""
        found = _by_pane(self.table.scan(board(panes.start), board(panes.stop)))
        for pane, counts in self.late(panes).items():
            marks = found.get(pane, {})
            for node in counts.keys() & marks.keys():
                marks[node][LATE] += counts[node]
                marks[node][READ] += counts[node]
        return found

    def were(self, panes: range) -> dict[int, Marks]:
        """The same of panes that were let go a short while ago."""
        return _by_pane(self.table.scan(past(panes.start), past(panes.stop)))

    def last(self, default: int) -> int:
        """The last pane that has marks, or had them."""
        found = (
            next(self.table.scan(prefix(-_ZERO), prefix(_ZERO), reverse=True), None)
            for prefix in (board, past)
        )
        return max((pane_in(row[0]) for row in found if row is not None), default=default)

    def tally(self, pane: int) -> PaneTally | None:
        """The counts of a pane; None: they were not counted yet."""
        stored = self.table.get(tally(pane))
        return None if stored is None else PaneTally(*stored)

    def put_tally(self, pane: int, counts: PaneTally) -> None:
        if any(counts):
            self.table[tally(pane)] = counts
        elif tally(pane) in self.table:
            del self.table[tally(pane)]

    def add_late(self, node: str, pane: int, count: int) -> None:
        """Keep that a node has found late records of a pane."""
        self.meta["tardy"] = True
        entry = f"{tardy(pane)}|{node}"
        self.table[entry] = self.table.get(entry, 0) + count

    def let_go(self, first: int, before: int, shown: int) -> None:
        """Let go of panes; the last few are `shown` for a while."""
        table = self.table
        for entry, marks in [*table.scan(board(first), board(before))]:
            del table[entry]
            if pane_in(entry) >= before - shown:
                table[entry.replace("board", "past", 1)] = marks
        self._delete(tally(first), tally(before))

    def let_go_late(self, first: int, before: int) -> None:
        if "tardy" in self.meta:
            self._delete(tardy(first), tardy(before))

    def let_go_past(self, first: int, before: int) -> None:
        self._delete(past(first), past(before))

    def _delete(self, start: str, stop: str) -> None:
        for entry in [entry for entry, _ in self.table.scan(start, stop)]:
            del self.table[entry]

    def late(self, panes: range) -> dict[int, dict[str, int]]:
        """By pane and node, late records."""
        late: dict[int, dict[str, int]] = {}
        if "tardy" not in self.meta:
            return late
        for entry, stored in self.table.scan(tardy(panes.start), tardy(panes.stop)):
            counts = late.setdefault(pane_in(entry), {})
            _, _, *node = entry.split("|", 2)
            for name, count in {node[0]: stored}.items() if node else stored.items():
                counts[name] = counts.get(name, 0) + count
        return late


def _by_pane(entries: Iterator[tuple[str, Marks]]) -> dict[int, Marks]:
    """The marks of entries, put together by pane."""
    found: dict[int, Marks] = {}
    for entry, marks in entries:
        found.setdefault(pane_in(entry), {}).update(marks)
    return found
