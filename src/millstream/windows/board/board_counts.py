"""The counts of panes and windows on a scoreboard. Each mark updates them, or they are recounted.

The counts of a pane are in its `tally` (`pane_marks`), those of a window in its entry
(`window_counts`). They count the marks that nodes have sent, and what is known of silent nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from millstream.windows.accounts import WindowAccount
from millstream.windows.board.board_windows import BoardWindows
from millstream.windows.board.node_places import NodePlaces
from millstream.windows.board.pane_marks import PaneMarks, PaneTally, State, state_of, with_late
from millstream.windows.board.window_counts import clear, clear_shares, count_pane, count_share
from millstream.windows.panes.pane_mark import Marks
from millstream.windows.panes.shedder import drawn_in, is_drawn

Change = tuple[State | None, State | None]
"""The state of a pane of a node before and after a change."""


@dataclass
class BoardCounts(BoardWindows):
    """The windows of a reducer, with the marks of their panes and the places of the nodes."""

    places: NodePlaces = field(init=False)
    marks: PaneMarks = field(init=False)
    _boards: tuple[range, dict[int, Marks]] | None = field(init=False, default=None)
    """The last result of `boards`: reading all nodes' marks is expensive."""

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.members.nodes

    def boards(self, panes: range) -> dict[int, Marks]:
        """Returns the panes that have marks, in order, each with the marks of all nodes."""
        if self._boards is None or self._boards[0] != panes:
            self._boards = panes, self.marks.of(panes)
        return self._boards[1]

    def silent(self, panes: range) -> Iterator[tuple[str, int, State]]:
        """Yields the state that follows from a node's beginning and end, for each pane where these
        decide it. A node may also have a mark for such a pane."""
        if self.places.all_await(panes[0]) and self.places.all_await(panes[-1]):
            return
        for node, place in self.places.all():
            for pane in panes:
                state = place.silent(pane)
                if state is not None:
                    yield node, pane, state

    def _tally(self, pane: int) -> PaneTally:
        return self.marks.tally(pane) or PaneTally(0, *self.places.silent(pane))

    def _change(
        self, pane: int, before: PaneTally, changes: Mapping[str, Change], marked: int = 0
    ) -> None:
        """Changes the counts of a pane, and of the open windows that have it. `marked` is the
        number of nodes that marked the pane for the first time."""
        was, now = zip(*changes.values(), strict=True)
        after = PaneTally(
            before.marked + marked,
            before.received + now.count("received") - was.count("received"),
            before.lost + now.count("lost") - was.count("lost"),
            before.late + now.count("late") - was.count("late"),
        )
        self.marks.put_tally(pane, after)
        drawn = sum(
            (new == "received") - (old == "received")
            for node, (old, new) in changes.items()
            if is_drawn(self.job, node, pane)
        )
        for number in self.job.span.windows_of(pane):
            window = self.window(number) if self.has(number) else None
            if window is not None and not window.why:
                count_pane(window, before, after, len(self.nodes))
                window.drawn_received += drawn
                for node, (old, new) in changes.items() if self.by_node else ():
                    self._count_share(number, window, node, old, new)

    def _count_share(
        self, number: int, window: WindowAccount, node: str, was: State | None, now: State | None
    ) -> None:
        count_share(self.table, number, window, self.job.span.panes, node, was, now)

    def _recounted(self, number: int) -> WindowAccount:
        """Returns a window with its counts taken anew from the marks."""
        old = self.window(number)
        window = WindowAccount() if old is None else old
        clear(window)
        panes = self.job.span.panes_of(number)
        boards, late = self.boards(panes), self.marks.late(panes)
        for pane in panes:
            marks = boards.get(pane, {})
            after = self._recounted_pane(pane, marks, late.get(pane, {}))
            self.marks.put_tally(pane, after)
            count_pane(window, PaneTally(), after, len(self.nodes))
            if old is None:
                for mark in marks.values():
                    window.account_for(mark, on_time=True)
                for node in late.get(pane, {}).keys() - marks.keys():
                    window.come_late(late[pane][node], late_expected=False)
        window.drawn = drawn_in(self.job, self.nodes, panes)
        if self.by_node:
            clear_shares(self.table, number)
        if self.by_node or window.drawn:
            known = {
                (node, pane): with_late(state, node in late.get(pane, {}))
                for node, pane, state in self.silent(panes)
            }
            for pane, marks in boards.items():
                known.update({(node, pane): state_of(mark) for node, mark in marks.items()})
            for (node, pane), state in known.items():
                if node in self.members.known:
                    window.drawn_received += state == "received" and is_drawn(self.job, node, pane)
                    if self.by_node:
                        self._count_share(number, window, node, None, state)
        return window

    def _recounted_pane(self, pane: int, marks: Marks, late: Mapping[str, int]) -> PaneTally:
        received, lost = self.places.silent(pane)
        tardy = 0
        for node in self.members.known & (marks.keys() | late.keys()):
            was, mark = self.places.silent_at(node, pane), marks.get(node)
            now = with_late(was if mark is None else state_of(mark), node in late)
            received += (now == "received") - (was == "received")
            lost += (now == "lost") - (was == "lost")
            tardy += now == "late"
        return PaneTally(len(marks), received, lost, tardy)

    def _state_at(self, node: str, pane: int) -> State | None:
        """Returns the state of a pane of a node. None: it is awaited."""
        mark = self.marks.of(range(pane, pane + 1)).get(pane, {}).get(node)
        if mark is not None:
            return state_of(mark)
        late = self.marks.late(range(pane, pane + 1)).get(pane, {})
        return with_late(self.places.silent_at(node, pane), node in late)
