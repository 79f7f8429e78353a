"""The marks of panes in the root's table: the state of each pane at each node.

    board|PANE|NODE    by node, its `PaneMark`. One entry for each
                       message, named by the first of its nodes
    past|PANE|NODE     the same for the last panes that were deleted; only for display
    tally|PANE         the numbers of nodes that have marked, received and lost the pane, and of
                       which records of it came late
    tardy|PANE|NODE    late records of a pane that its node found after it had sent the pane

Each message writes its own entry, so its cost does not grow with the number of nodes. Late records
are stored separately from the mark of their pane. So the mark need not be read, and late records
may come before it.

Stores of earlier versions have `board|PANE`, `past|PANE` and `tardy|PANE`, each for all nodes. Both
forms can be read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from millstream.model.slate import Table
from millstream.windows.board.board_meta import BoardMeta
from millstream.windows.panes.pane_mark import Marks, PaneMark, read_marks, stored_marks

State = Literal["received", "lost", "late"]
"""The known state of a pane of a node. None if it is still awaited. `late`: it has come, but
records of it came late."""
_ZERO = 1 << 62
"""Added to a pane's number, so that text sorts as the numbers do."""


MOST_SHOWN = 72
"""At most this many panes of a scoreboard are shown."""
MOST_CELLS = 6_000
"""At most this many marks of a scoreboard are shown, unless a single pane has more."""


def shown_panes(nodes: int) -> int:
    """Returns how many panes are shown, and kept for display, for this number of nodes.

    >>> shown_panes(10), shown_panes(1_000)
    (72, 6)
    """
    return max(1, min(MOST_SHOWN, MOST_CELLS // nodes))


class PaneTally(NamedTuple):
    """Numbers of nodes that have marked, received and lost a pane, and of which records of it came
    late."""

    marked: int = 0
    received: int = 0
    lost: int = 0
    late: int = 0


def board(pane: int) -> str:
    """Returns the prefix of the entries of a pane's marks."""
    return _entry("board", pane)


def past(pane: int) -> str:
    """Returns the prefix of the entries of a pane's marks after the pane was deleted."""
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
    if mark.is_lost:
        return "lost"
    return "late" if mark.late else "received"


def with_late(state: State | None, late: bool) -> State | None:
    """Returns the state of a pane of a node, given that without late records. `late`: there are
    some."""
    return "late" if late and state == "received" else state


def take_late(
    tables: Iterable[Mapping[str, Any]], marks: Mapping[int, Marks]
) -> dict[int, dict[str, int]]:
    """Returns the late records by pane and node, and counts them in the marks."""
    late: dict[int, dict[str, int]] = {}
    for table in tables:
        tardy = late_in((entry, table[entry]) for entry in table if entry.startswith("tardy|"))
        for pane, counts in tardy.items():
            late.setdefault(pane, {}).update(counts)
    for pane, counts in late.items():
        for node in counts.keys() & marks.get(pane, {}).keys():
            marks[pane][node].late = counts[node]
    return late


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
        """Returns the same for panes that were deleted recently."""
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

    def let_go_late(self, before: int) -> None:
        if self.meta.tardy:
            self._delete("tardy|", tardy(before))

    def let_go_past(self, first: int, before: int) -> None:
        self._delete(past(first), past(before))

    def _delete(self, start: str, stop: str) -> None:
        for entry in [entry for entry, _ in self.table.scan(start, stop)]:
            del self.table[entry]

    def late(self, panes: range) -> dict[int, dict[str, int]]:
        """Returns the late records by pane and node."""
        if not self.meta.tardy:
            return {}
        return late_in(self.table.scan(tardy(panes.start), tardy(panes.stop)))


def late_in(entries: Iterable[tuple[str, Any]]) -> dict[int, dict[str, int]]:
    """Returns the late records in entries, by pane and node."""
    late: dict[int, dict[str, int]] = {}
    for entry, stored in entries:
        counts = late.setdefault(pane_in(entry), {})
        _, _, *node = entry.split("|", 2)
        for name, count in {node[0]: stored}.items() if node else stored.items():
            counts[name] = counts.get(name, 0) + count
    return late


def _by_pane(entries: Iterator[tuple[str, Any]]) -> dict[int, Marks]:
    marks_of: dict[int, Marks] = {}
    for entry, stored in entries:
        marks_of.setdefault(pane_in(entry), {}).update(read_marks(stored))
    return marks_of
