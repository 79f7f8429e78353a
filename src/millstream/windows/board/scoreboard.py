"""The scoreboard of a reducer: the panes of each node that have come (iMR, 3.1).

    meta                  what is known of all panes, windows and nodes (`board_meta`)
    window|WINDOW         a window (`board_windows`), with the counts of its marks
    share|WINDOW|NODE     a node's share of a window (`window_counts`)
    node|NODE             where a node's log begins and ends (`node_places`)
    board|..., past|..., tally|..., tardy|...    the marks of panes (`pane_marks`)

A window exists once a node has reported its first pane or an earlier one, until it is closed. It is
*opened* when a node reaches its first pane, or when a pane of it comes. Panes before the first one
of a node that the node has not marked are lost: the node is absent there. That costs the other
nodes nothing, whether its clock is an hour ahead or it comes an hour late. Panes after the end of
its log that it has not marked are empty. Once the logs of all nodes that have sent anything have
ended, no window begins after that. A window that was opened before the end was known is dropped.

The cost of a message depends on the number of its nodes, not on the number of the job's: only their
entries are read. All nodes are read when a window is opened or closed.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from millstream.messages.jobs import WindowCoverage
from millstream.windows.accounts import WindowAccount, window_entry
from millstream.windows.board.board_counts import BoardCounts, Change
from millstream.windows.board.board_meta import BoardMeta
from millstream.windows.board.node_places import UNHEARD, NodePlace, NodePlaces, carried_over
from millstream.windows.board.pane_marks import PaneMarks, state_of, with_late
from millstream.windows.board.quiet_windows import put as put_quiet
from millstream.windows.board.quiet_windows import quiet_marks
from millstream.windows.coverage import Coverage, Mark
from millstream.windows.panes.pane_ledger import PanePart
from millstream.windows.panes.pane_mark import Marks
from millstream.windows.reducers import BEGINNING, NEVER


@dataclass
class Scoreboard(BoardCounts):
    """The scoreboard while one event is processed. `save` stores it."""

    def __post_init__(self) -> None:
        stored = self.table.get("meta") or {"job": self.members.digest, "late_counted": True}
        self.meta = msgspec.convert(stored, BoardMeta)
        self.marks = PaneMarks(self.table, self.meta)
        self.places = NodePlaces(self.table, self.members, self.meta.places)
        if self.meta.from_ is not msgspec.UNSET:
            self._carry_over()
        elif self.meta.job != self.members.digest or not self.meta.late_counted:
            self._count_again()

    def _carry_over(self) -> None:
        """Converts what an earlier version has stored: places were in `meta`, and panes were not
        counted."""
        for node, place in carried_over(self.meta):
            self.places.put(node, place)
        # Panes from before there was a ledger may come again, since they are not in the ledger.
        self.meta.legacy = self.marks.last(default=BEGINNING)
        self.meta.tardy = True
        self.meta.from_ = self.meta.at = self.meta.nodes = msgspec.UNSET
        self._count_again()

    def _count_again(self) -> None:
        """Recounts, because the nodes differ from those of the last run, or because an earlier
        version has counted."""
        self.meta.job, self.meta.late_counted = self.members.digest, True
        self.places.count_again()
        for number in self.meta.open:
            self._windows[number] = self._recounted(number)

    def come(self, pane: int, part: PanePart) -> int | None:
        """Records that nodes have come to a pane, and which of them begin or end there. Returns the
        first pane that was known before."""
        meta, span = self.meta, self.job.span
        known: int | None = meta.first
        if known is None:
            meta.first = pane if span.begin is None else span.pane_of(span.begin)
            meta.final = span.begin is not None
        elif not meta.final:
            meta.first = min(pane, known)
        self.move(pane, part)
        return known

    def reach(
        self, pane: int, until: int, known: int | None, quiet: Sequence[range] = ()
    ) -> list[int]:
        """Opens the windows that nodes have reached, and returns them. `known` is the result of
        `come`. `quiet` are windows that need not be opened."""
        meta, span = self.meta, self.job.span
        step = span.slide // span.pane
        earliest = pane if pane == until else pane - span.panes + 1
        numbers = set[int]()
        begin = -(-earliest // step)
        for windows in quiet:
            numbers.update(range(begin, windows.start))
            begin = windows.stop
        numbers.update(range(begin, until // step + 1))
        if known is not None and meta.first is not None and meta.first < known:
            # Windows that exist only now may have panes that came earlier: they are opened too.
            before = range(-(-(known - span.panes + 1) // step), -(-known // step))
            numbers.update(number for number in before if self.boards(span.panes_of(number)))
        opened = []
        for number in sorted(numbers):
            there = self.has(number) and not self.is_closed(number) and not self._is_after(number)
            if there and self.window(number) is None:
                self._open(number)
                opened.append(number)
        return opened

    @property
    def late_expected(self) -> bool:
        """True if late records of a window must be expected."""
        return self.dated and self.meta.expects_late(len(self.nodes))

    def _is_after(self, number: int) -> bool:
        """True if a window begins after all logs have ended."""
        return self.first_pane(number) >= self.places.counts.end

    def move(self, pane: int, part: PanePart) -> None:
        """Records that nodes are at a pane, which of them begin there, and which logs end or
        continue. Updates the state of the panes that they sent nothing about."""
        begin, over, places = part.begin, part.over, self.places
        changed = {node: places.get(node) for node in (*begin, *over)}
        moved = {
            node: (
                old or UNHEARD,
                (old or UNHEARD).moved(pane if node in begin else None, over.get(node)),
            )
            for node, old in changed.items()
        }
        panes = self._open_panes() if moved else []
        before = {pane: self._tally(pane) for pane in panes}
        marks: dict[int, Marks] = {}
        if panes and any(changed[node] for node in begin):
            # Other nodes have no marks there: they sent nothing before, or only the panes after
            # their end change.
            marks = self.boards(range(panes[0], panes[-1] + 1))
        late = self.marks.late(range(panes[0], panes[-1] + 1)) if panes else {}
        for node, (_, new) in moved.items():
            places.put(node, new)
        for node in places.unheard(part.marks):
            places.put(node, UNHEARD)
        for pane in panes:
            changes = _silence(pane, moved, marks.get(pane, {}), late.get(pane, {}))
            if changes:
                self._change(pane, before[pane], changes)
        if over and places.counts.end != NEVER:
            for number in [number for number in self.meta.open if self._is_after(number)]:
                if not self.boards(self.job.span.panes_of(number)):
                    self.drop(number)

    def _open_panes(self) -> list[int]:
        """Returns the panes of all open windows, in order."""
        span = self.job.span
        return sorted({pane for number in self.meta.open for pane in span.panes_of(number)})

    def knows(self, pane: int, until: int, nodes: list[str]) -> bool:
        """True if any of the panes has a mark of any of the nodes. The ledger stops such panes, but
        does not know those from before there was a ledger."""
        legacy = self.meta.legacy
        if pane > legacy:
            return False
        panes = range(pane, min(until, legacy + 1))
        return any(
            node in marks
            for read_marks in (self.marks.of, self.marks.were)
            for marks in read_marks(panes).values()
            for node in nodes
        )

    def mark(self, pane: int, marks: Marks) -> tuple[list[int], bool]:
        """Adds marks of a pane. Returns the windows of this reducer that have the pane, open or
        not, and whether the pane is kept because some window can still use it."""
        windows = [number for number in self.job.span.windows_of(pane) if self.has(number)]
        for number in windows:
            window = self.window(number) or self._unquieted(number)
            if window is not None:
                for mark in marks.values():
                    window.account_for(mark, on_time=not window.why)
        kept = self.awaits(pane) or any(self.is_corrected(number) for number in windows)
        if kept:
            late = self.marks.late(range(pane, pane + 1)).get(pane, {})
            changes = {
                node: (
                    with_late(self.places.silent_at(node, pane), node in late),
                    with_late(state_of(mark), node in late),
                )
                for node, mark in marks.items()
            }
            self._change(pane, self._tally(pane), changes, marked=len(marks))
            self.marks.put(pane, marks)
            self._boards = None
            self._sweep_again(pane)
        return windows, kept

    def come_late(self, node: str, pane: int, count: int) -> tuple[list[int], list[int]]:
        """Records that a node has read records of a pane that it had sent, or of one before its
        first. Returns the windows that this opens, and the closed windows that have the pane and
        are still corrected."""
        self.meta.unordered = True
        corrected = self.claim(node, pane, count)
        opened = [
            number
            for number in self.job.span.windows_of(pane)
            if self.is_mine(number)
            and self.window(number) is None
            and self.has(number)
            and not self.is_closed(number)
        ]
        for number in opened:
            self._open(number)  # its node jumped over it
        return opened, corrected

    def claim(self, node: str, pane: int, count: int) -> list[int]:
        """Counts records that belong, or claim to belong, to a pane that no longer takes them: its
        windows may lack them. Returns the closed windows that have the pane and are still
        corrected."""
        numbers = [number for number in self.job.span.windows_of(pane) if self.is_mine(number)]
        # First, while there are no late records of the pane yet.
        unquieted = {number: self._unquieted(number) for number in numbers}
        first = self._add_late(node, pane, count, numbers)
        corrected = list[int]()
        for number in numbers:
            window = self.window(number) or unquieted.get(number)
            if window is not None:
                window.come_late(count, late_expected=self.late_expected)
                if first:
                    panes = self.job.span.panes_of(number)
                    window.lower(self.marks.late(panes), len(self.nodes), panes)
                if window.why and self.is_corrected(number):
                    corrected.append(number)
            elif not self.has(number) and self.is_corrected(number):
                # It begins before the very first pane, so nothing else of it can come.
                self._open(number).why = "failure"
                self.close(number)
                corrected.append(number)
        return corrected

    def _add_late(self, node: str, pane: int, count: int, numbers: list[int]) -> bool:
        """Stores late records of a pane, as long as a window among `numbers` is known that has it.
        Returns True if they are the first, and the pane is not lost otherwise."""
        kept = self.awaits(pane) or any(self.is_corrected(number) for number in numbers)
        if not kept and all(self.window(number) is None for number in numbers):
            return False
        was, known = self._state_at(node, pane), self.marks.late(range(pane, pane + 1))
        self.marks.add_late(node, pane, count)
        if kept:
            if was == "received":
                self._change(pane, self._tally(pane), {node: (was, "late")})
            self._boards = None
            self._sweep_again(pane)
        return was != "lost" and node not in known.get(pane, {})

    def close_quiet(self, windows: range, marks: Marks) -> None:
        """Closes windows that were not opened: they are complete, and have no records."""
        self.close_all(windows)
        if self.job.corrections:
            put_quiet(self.table, self.meta, windows, marks)

    def _unquieted(self, number: int) -> WindowAccount | None:
        """Recreates a window that was closed in a range, as if it had been closed alone. None: it
        was not, or it is no longer corrected."""
        if not self.meta.quiet or self.window(number) is not None:
            return None
        marks = quiet_marks(self.table, self.meta, number)
        if marks is None or not self.is_corrected(number):
            return None
        panes = self.job.span.panes_of(number)
        present = self.marks.of(panes)
        for pane in panes:
            missing = {
                node: mark for node, mark in marks.items() if node not in present.get(pane, {})
            }
            if missing:
                self.marks.put(pane, missing)
                self._sweep_again(pane)
        self._boards = None
        window = self._windows[number] = self._recounted(number)
        window.why = "complete"
        window.coverage = WindowCoverage(area=1.0, time=1.0, space=1.0, missing={})
        window.completeness = window.complete(0, 0, 0, late_expected=self.late_expected)
        self.meta.forgot = min(number, self.meta.forgot)
        return window

    def _open(self, number: int) -> WindowAccount:
        window = self._windows[number] = self._recounted(number)
        insort(self.meta.open, number)
        self.meta.forgot = min(number, self.meta.forgot)
        return window

    def coverage(self, window: int) -> Coverage:
        """Returns the coverage of a window, mark by mark."""
        panes = self.job.span.panes_of(window)
        marks: dict[tuple[str, int], Mark] = {
            (node, pane): "lost" if state == "lost" else "empty"
            for node, pane, state in self.silent(panes)
        }
        for pane, late in self.marks.late(panes).items():
            tardy = ((node, pane) for node in late)
            marks.update({unit: "late" for unit in tardy if marks.get(unit) == "empty"})
        for pane, board in self.boards(panes).items():
            for node, mark in board.items():
                state = state_of(mark)
                marks[node, pane] = mark.mark if state == "received" else state
        return Coverage(self.nodes, panes, marks)

    def _sweep_again(self, pane: int) -> None:
        """Makes the next sweep include a pane that may have been deleted before."""
        self.meta.swept = min(pane, self.meta.swept)

    def save(self) -> None:
        for number, window in self._windows.items():
            self.table[window_entry(number)] = window
        self.table["meta"] = self.meta


def _silence(
    pane: int,
    moved: Mapping[str, tuple[NodePlace, NodePlace]],
    marked: Collection[str],
    late: Collection[str],
) -> dict[str, Change]:
    """Returns the states of a pane, before and now, of nodes in `moved` without a mark, where
    they differ. `late` are the nodes whose records came late."""
    return {
        node: (
            with_late(old.silent(pane), node in late),
            with_late(new.silent(pane), node in late),
        )
        for node, (old, new) in moved.items()
        if node not in marked and old.silent(pane) != new.silent(pane)
    }
