"""The scoreboard of a reducer: which pane of which node is there, in the root's table (iMR, 3.1).

    meta                  `first`: the first pane that any node has told of, `final` if none can
                          come before it; `open`: windows; `closed`: ranges of windows; `job`: its
                          nodes, in short; `places`: counts of theirs (`node_places`); `kept`: panes
                          before it were let go, `swept`: those of the last time, as far as none
                          came again; `forgot`: so were windows; `schedule` of the reducers;
                          `late_panes`, `late_records`, `repeated`; `read`, `late` and
                          `misdated`: records of all nodes, whatever window they are of
    window|WINDOW         a window (`board_windows`), with the counts of its marks
    share|WINDOW|NODE     a node's share of a window (`window_counts`)
    node|NODE             how far a node is (`node_places`)
    board|..., past|..., tally|..., tardy|...    the marks of panes (`pane_marks`)

A window is there once a node has told of its first pane or of an earlier one, and until it is
closed; it is *opened* when a node reaches its first pane, or when a pane of it comes. What a node
has not marked before the pane that it begins with is lost: it is absent there. That costs the other
nodes nothing, whether its clock is ahead by an hour or it comes an hour late. What it has not
marked from the pane on that its log ends at is empty. Once the logs of all nodes that have told
anything have ended, no window begins after; one that was opened before that was known is dropped.

A message costs as much as it has nodes, however many the job has: only their entries are looked at.
All nodes are looked at when a window is opened or closed.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.windows.accounts import (
    MARK,
    Window,
    window_entry,
)
from millstream.windows.board_windows import BoardWindows
from millstream.windows.coverage import Coverage, Mark
from millstream.windows.node_places import (
    UNHEARD,
    NodePlaces,
    PlaceCounts,
    carried_over,
)
from millstream.windows.pane_ledger import Part
from millstream.windows.pane_marks import (
    Marks,
    PaneMarks,
    PaneTally,
    State,
    state_of,
)
from millstream.windows.reducers import BEGINNING, NEVER
from millstream.windows.shedding import drawn_in, is_drawn
from millstream.windows.window_counts import clear, clear_shares, count_pane, count_share

Change = tuple[State | None, State | None]
"""What was known of a pane of a node, and what is known now."""


@dataclass
class Scoreboard(BoardWindows):
    """The scoreboard as it is while one event is looked at; `save` puts it back."""

    places: NodePlaces = field(init=False)
    marks: PaneMarks = field(init=False)
    _boards: tuple[range, dict[int, Marks]] | None = field(init=False, default=None)
    """What was asked for last: all nodes' marks are much to read."""

    def __post_init__(self) -> None:
        counts = dict.fromkeys(("late_panes", "late_records", "repeated"), 0)
        begun: dict[str, Any] = {
            "first": None,
            "final": False,
            "kept": BEGINNING,
            "open": [],
            "closed": [],
            "job": self.members.digest,
            "places": {},
            "schedule": [],
        }
        self.meta = self.table.get("meta") or {**begun, **counts}
        self.marks = PaneMarks(self.table, self.meta)
        counted = PlaceCounts(**self.meta.get("places", {}))
        self.places = NodePlaces(self.table, self.members, counted)
        if "from" in self.meta:
            self._carry_over()
        elif self.meta["job"] != self.members.digest:
            self._count_again()

    def _carry_over(self) -> None:
        """Take over what an earlier version has left: places were in `meta`, panes not counted."""
        for node, place in carried_over(self.meta):
            self.places.put(node, place)
        # Panes from before there was a ledger may come again: the ledger does not know them.
        self.meta["legacy"] = self.marks.last(default=BEGINNING)
        self.meta["tardy"] = True
        for name in ("from", "at", "nodes"):
            del self.meta[name]
        self._count_again()

    def _count_again(self) -> None:
        """Count anew for nodes that are others than when the application ran before."""
        self.meta["job"] = self.members.digest
        self.places.count_again()
        for number in self.meta["open"]:
            self._windows[number] = self._recounted(number)

    @property
    def nodes(self) -> tuple[str, ...]:
        return self.members.nodes

    def part_of(self, fate: str) -> float:
        """Of all records that were read, the part that came `late`, or was `misdated`."""
        read: int = self.meta.get("read", 0)
        return self.meta.get(fate, 0) / read if read else 0.0

    def reach(self, pane: int, until: int, part: Part) -> list[int]:
        """Nodes have come so far, some of them begin there, or end; the windows that this opens."""
        meta, span = self.meta, self.job.span
        step = span.slide // span.pane
        known = meta["first"]
        if known is None:
            meta["first"] = pane if span.begin is None else span.pane_of(span.begin)
            meta["final"] = span.begin is not None
        elif not meta["final"]:
            meta["first"] = min(pane, known)
        self.move(pane, part)
        earliest = pane if pane == until else pane - span.panes + 1
        numbers = {*range(-(-earliest // step), until // step + 1)}
        if known is not None and meta["first"] < known:
            # Windows that are there only now may have panes that came before: those are needed.
            before = range(-(-(known - span.panes + 1) // step), -(-known // step))
            numbers.update(one for one in before if self.boards(span.panes_of(one)))
        opened = []
        for number in sorted(numbers):
            there = self.has(number) and not self.is_closed(number) and not self._is_after(number)
            if there and self.window(number) is None:
                self._open(number)
                opened.append(number)
        return opened

    def _is_after(self, number: int) -> bool:
        """Whether a window begins when all logs have ended."""
        return self.first_pane(number) >= self.places.counts.end

    def move(self, pane: int, part: Part) -> None:
        """Note which nodes are there, which of them begin here, and which logs end or go on: with
        that changes what is known of panes that they told nothing of."""
        begin, over, places = part["begin"], part["over"], self.places
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
            # Others have no marks: who told nothing before, or whose panes after the end are meant.
            marks = self.boards(range(panes[0], panes[-1] + 1))
        for node, (_, new) in moved.items():
            places.put(node, new)
        for node in places.unheard(part["marks"]):
            places.put(node, UNHEARD)
        for pane in panes:
            told = marks.get(pane, {})
            changes = {
                node: (old.silent(pane), new.silent(pane))
                for node, (old, new) in moved.items()
                if node not in told and old.silent(pane) != new.silent(pane)
            }
            if changes:
                self._change(pane, before[pane], changes)
        if over and places.counts.end != NEVER:
            for number in [number for number in self.meta["open"] if self._is_after(number)]:
                if not self.boards(self.job.span.panes_of(number)):
                    self.drop(number)

    def _open_panes(self) -> list[int]:
        """The panes of all open windows, in order."""
        span = self.job.span
        return sorted({pane for number in self.meta["open"] for pane in span.panes_of(number)})

    def knows(self, pane: int, until: int, nodes: list[str]) -> bool:
        """Whether any of the panes has a mark of any of the nodes. The ledger does not let such
        panes through; but it does not know those of before there was one."""
        legacy = self.meta.get("legacy", BEGINNING)
        if pane > legacy:
            return False
        panes = range(pane, min(until, legacy + 1))
        return any(
            node in marks
            for known in (self.marks.of, self.marks.were)
            for marks in known(panes).values()
            for node in nodes
        )

    def mark(self, pane: int, told: Marks) -> tuple[list[int], bool]:
        """Put marks of a pane in; the windows of this reducer that it is in, open or not, and
        whether the pane is kept: some window can still use it."""
        windows = [one for one in self.job.span.windows_of(pane) if self.has(one)]
        for number in windows:
            window = self.window(number)
            if window is not None:
                for mark in told.values():
                    window.account_for(mark, on_time=not window.why)
        kept = self.awaits(pane) or any(self.is_corrected(one) for one in windows)
        if kept:
            changes = {
                node: (self.places.silent_at(node, pane), state_of(mark))
                for node, mark in told.items()
            }
            self._change(pane, self._tally(pane), changes, marked=len(told))
            self.marks.put(pane, told)
            self._boards = None
            self._sweep_again(pane)
        return windows, kept

    def come_late(self, node: str, pane: int, count: int) -> tuple[list[int], list[int]]:
        """A node has read records of a pane that it had sent, or of one before its first: the
        windows that this opens; and the closed ones that have the pane and are still corrected."""
        corrected = self.claim(node, pane, count)
        opened = [
            one
            for one in self.job.span.windows_of(pane)
            if self.is_mine(one)
            and self.window(one) is None
            and self.has(one)
            and not self.is_closed(one)
        ]
        for number in opened:
            self._open(number)  # its node has jumped over it
        return opened, corrected

    def claim(self, node: str, pane: int, count: int) -> list[int]:
        """Records say that they are of a pane, which is not open to them: its windows may lack
        them. The closed windows that have the pane and are still corrected."""
        numbers = [one for one in self.job.span.windows_of(pane) if self.is_mine(one)]
        if self.awaits(pane) or any(self.is_corrected(one) for one in numbers):
            self.marks.add_late(node, pane, count)
            self._boards = None
            self._sweep_again(pane)
        corrected = list[int]()
        for number in numbers:
            window = self.window(number)
            if window is not None:
                window.come_late(count)
                if window.why and self.is_corrected(number):
                    corrected.append(number)
            elif not self.has(number) and self.is_corrected(number):
                # It begins before the first pane of all, so that nothing else of it can come.
                self._open(number).why = "failure"
                self.close(number)
                corrected.append(number)
        return corrected

    def _open(self, number: int) -> Window:
        window = self._windows[number] = self._recounted(number)
        insort(self.meta["open"], number)
        self.meta["forgot"] = min(number, self.meta.get("forgot", BEGINNING))
        return window

    # What it shows

    def boards(self, panes: range) -> dict[int, Marks]:
        """The panes that have marks, in order, each with those of all nodes."""
        if self._boards is None or self._boards[0] != panes:
            self._boards = panes, self.marks.of(panes)
        return self._boards[1]

    def silent(self, panes: range) -> Iterator[tuple[str, int, State]]:
        """What is known of panes that a node has told nothing of, or that it told of otherwise."""
        if self.places.all_await(panes[0]) and self.places.all_await(panes[-1]):
            return
        for node, place in self.places.all():
            for pane in panes:
                state = place.silent(pane)
                if state is not None:
                    yield node, pane, state

    def coverage(self, window: int) -> Coverage:
        """The scoreboard of a window, mark by mark."""
        panes = self.job.span.panes_of(window)
        marks: dict[tuple[str, int], Mark] = {
            (node, pane): "lost" if state == "lost" else "empty"
            for node, pane, state in self.silent(panes)
        }
        for pane, told in self.boards(panes).items():
            marks.update(
                {
                    (node, pane): "lost" if state_of(mark) == "lost" else mark[MARK]
                    for node, mark in told.items()
                }
            )
        return Coverage(self.nodes, panes, marks)

    def _sweep_again(self, pane: int) -> None:
        """There is something of a pane that may have been let go before."""
        if "swept" in self.meta:
            self.meta["swept"] = min(pane, self.meta["swept"])

    def save(self) -> None:
        for number, window in self._windows.items():
            self.table[window_entry(number)] = vars(window)
        self.meta["places"] = vars(self.places.counts)
        self.table["meta"] = self.meta

    # Counting

    def _tally(self, pane: int) -> PaneTally:
        """The counts of a pane as they are."""
        return self.marks.tally(pane) or PaneTally(0, *self.places.silent(pane))

    def _change(
        self, pane: int, before: PaneTally, changes: Mapping[str, Change], marked: int = 0
    ) -> None:
        """Change the counts of a pane, and of the open windows that have it. `marked`: so many
        nodes have told of it that had not."""
        was, now = zip(*changes.values(), strict=True)
        after = PaneTally(
            before.marked + marked,
            before.received + now.count("received") - was.count("received"),
            before.lost + now.count("lost") - was.count("lost"),
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
        self, number: int, window: Window, node: str, was: State | None, now: State | None
    ) -> None:
        count_share(self.table, number, window, self.job.span.panes, node, was, now)

    def _recounted(self, number: int) -> Window:
        """A window with the counts of its marks as they stand."""
        old = self.window(number)
        window = Window() if old is None else old
        clear(window)
        panes = self.job.span.panes_of(number)
        boards, late = self.boards(panes), self.marks.late(panes)
        for pane in panes:
            marks = boards.get(pane, {})
            after = self._recounted_pane(pane, marks)
            self.marks.put_tally(pane, after)
            count_pane(window, PaneTally(), after, len(self.nodes))
            if old is None:
                for mark in marks.values():
                    window.account_for(mark, on_time=True)
                for node in late.get(pane, {}).keys() - marks.keys():
                    window.come_late(late[pane][node])
        window.drawn = drawn_in(self.job, self.nodes, panes)
        if self.by_node:
            clear_shares(self.table, number)
        if self.by_node or window.drawn:
            known = {(node, pane): state for node, pane, state in self.silent(panes)}
            for pane, marks in boards.items():
                known.update({(node, pane): state_of(mark) for node, mark in marks.items()})
            for (node, pane), state in known.items():
                if node in self.members.known:
                    window.drawn_received += state == "received" and is_drawn(self.job, node, pane)
                    if self.by_node:
                        self._count_share(number, window, node, None, state)
        return window

    def _recounted_pane(self, pane: int, marks: Marks) -> PaneTally:
        received, lost = self.places.silent(pane)
        for node, mark in marks.items():
            if node in self.members.known:
                was, now = self.places.silent_at(node, pane), state_of(mark)
                received += (now == "received") - (was == "received")
                lost += (now == "lost") - (was == "lost")
        return PaneTally(len(marks), received, lost)
