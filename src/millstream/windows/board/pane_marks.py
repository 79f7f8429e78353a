"""The marks of panes in the root's table: the state of each pane at each node.

    board|PANE|NODE    by node, its `PaneMark`. One entry for each
                       message, named by the first of its nodes
    past|PANE|NODE     the same for the last panes that were let go; only for display
    tally|PANE         the number of nodes that have marked, received and lost the pane
    tardy|PANE|NODE    late records of a pane that its node found after it had sent the pane

Each message writes an entry of its own, so its cost does not grow with the number of nodes. Late
records are stored apart from the mark of their pane: so the mark need not be read, and late records
may come before it.

Stores of earlier versions have `board|PANE`, `past|PANE` and `tardy|PANE`, each for all nodes. They
are read as they are.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from millstream.model.slate import Table
from millstream.windows.board.board_meta import BoardMeta
from millstream.windows.panes.pane_mark import Marks, PaneMark, read_marks, stored_marks

State = Literal["received", "lost"]
"""The known state of a pane of a node. None if it is still awaited."""
_ZERO = 1 << 62
"""Added to a pane's number, so that text sorts as the numbers do."""


MOST_SHOWN = 72
"""The most panes of a scoreboard that are shown."""
MOST_CELLS = 6_000
"""The most marks of a scoreboard that are shown."""


def shown_panes(nodes: int) -> int:
    """Returns how many panes are shown, and kept for display, for this number of nodes.

    >>> shown_panes(10), shown_panes(1_000)
    (72, 6)
    """
    return max(1, min(MOST_SHOWN, MOST_CELLS // nodes))


class PaneTally(NamedTuple):
    """Numbers of nodes that have marked, received and lost a pane."""

    marked: int = 0
    received: int = 0
    lost: int = 0


def board(pane: int) -> str:
    """Returns the prefix of the entries of a pane's marks."""
    return _entry("board", pane)


def past(pane: int) -> str:
    """Returns the prefix of the entries of a pane's marks after it was let go."""
    return _entry("past", pane)


def tally(pane: int) -> str:
    """Returns the name of the entry of a pane's counts."""
    return _entry("tally", pane)


def tardy(pane: int) -> str:
    """Returns the prefix of the entries of a pane's late records."""
    return _entry("tardy", pane)


def pane_in(entry: str) -> int:
    """Returns the pane that an entry belongs to."""
    return int(entry.split("|", 2)[1]) - _ZERO


def state_of(mark: PaneMark) -> State:
    """Returns the state of a marked pane."""
    return "lost" if mark.is_lost else "received"


def _entry(kind: str, pane: int) -> str:
    return f"{kind}|{pane + _ZERO:020d}"


@dataclass(frozen=True, slots=True)
class PaneMarks:
    """The marks in a table."""

    table: Table
    meta: BoardMeta
    """The scoreboard's `meta`. Its `tardy` is set once there are late records. Before that they are
    not searched for."""

    def put(self, pane: int, marks: Marks) -> None:
        """Stores the marks of a message."""
        self.table[f"{board(pane)}|{min(marks)}"] = stored_marks(marks)

    def of(self, panes: range) -> dict[int, Marks]:
        """Returns the panes that have marks, in order, each with the marks of all nodes."""
        by_pane = _by_pane(self.table.scan(board(panes.start), board(panes.stop)))
        for pane, counts in self.late(panes).items():
            marks = by_pane.get(pane, {})
            for node in counts.keys() & marks.keys():
                marks[node].late += counts[node]
                marks[node].read += counts[node]
        return by_pane

    def were(self, panes: range) -> dict[int, Marks]:
        """Returns the same for panes that were let go recently."""
        return _by_pane(self.table.scan(past(panes.start), past(panes.stop)))

    def last(self, default: int) -> int:
        """Returns the last pane that has marks, or had them."""
        rows = (
            next(self.table.scan(prefix(-_ZERO), prefix(_ZERO), reverse=True), None)
            for prefix in (board, past)
        )
        return max((pane_in(row[0]) for row in rows if row is not None), default=default)

    def tally(self, pane: int) -> PaneTally | None:
        """Returns the counts of a pane. None: it was not counted yet."""
        stored = self.table.get(tally(pane))
        return None if stored is None else PaneTally(*stored)

    def put_tally(self, pane: int, counts: PaneTally) -> None:
        if any(counts):
            self.table[tally(pane)] = counts
        elif tally(pane) in self.table:
            del self.table[tally(pane)]

    def add_late(self, node: str, pane: int, count: int) -> None:
        """Stores that a node has found late records of a pane."""
        self.meta.tardy = True
        entry = f"{tardy(pane)}|{node}"
        self.table[entry] = self.table.get(entry, 0) + count

    def let_go(self, first: int, before: int, shown: int) -> None:
        """Deletes the marks of panes. The last `shown` of them are kept for display."""
        table = self.table
        for entry, marks in [*table.scan(board(first), board(before))]:
            del table[entry]
            if pane_in(entry) >= before - shown:
                table[entry.replace("board", "past", 1)] = marks
        self._delete(tally(first), tally(before))

    def let_go_late(self, first: int, before: int) -> None:
        if self.meta.tardy:
            self._delete(tardy(first), tardy(before))

    def let_go_past(self, first: int, before: int) -> None:
        self._delete(past(first), past(before))

    def _delete(self, start: str, stop: str) -> None:
        for entry in [entry for entry, _ in self.table.scan(start, stop)]:
            del self.table[entry]

    def late(self, panes: range) -> dict[int, dict[str, int]]:
        """Returns the late records by pane and node."""
        late: dict[int, dict[str, int]] = {}
        if not self.meta.tardy:
            return late
        for entry, stored in self.table.scan(tardy(panes.start), tardy(panes.stop)):
            counts = late.setdefault(pane_in(entry), {})
            _, _, *node = entry.split("|", 2)
            for name, count in {node[0]: stored}.items() if node else stored.items():
                counts[name] = counts.get(name, 0) + count
        return late


def _by_pane(entries: Iterator[tuple[str, Any]]) -> dict[int, Marks]:
    """Groups the marks of entries by pane."""
    marks_of: dict[int, Marks] = {}
    for entry, stored in entries:
        marks_of.setdefault(pane_in(entry), {}).update(read_marks(stored))
    return marks_of
