"""The scoreboard of a reducer: which pane of which node is there, in the root's table (iMR, 3.1).

    meta                  `first`: the first pane that any node has told of, `final` if none can
                          come before it; `open`: windows; `closed`: ranges of windows; `nodes`;
                          `from`: the pane that a node has begun with, `at`: the one that it has
                          reached; `kept`: panes before it were let go, `swept`: those of
                          the last time, as far as none came again; `forgot`: so were windows;
                          `schedule` of the reducers;
                          `late_panes`, `late_records`, `repeated`; `read` and `late`: records
                          of all nodes, whatever window they are of
    board|PANE            by node, its mark of the pane (`accounts`: what stands where)
    past|PANE             the same of the last `PAST` panes that were let go, only to be looked at
    tardy|PANE            by node, late records of a pane that it has found before it sent the pane
    window|WINDOW         counts of the marks of a window (`accounts.Window`)

A window is there once a node has told of its first pane or of an earlier one, and until it is
closed; it is *opened* when a node reaches its first pane, or when a pane of it comes. What a node
has not marked before the pane that it begins with is lost: it is absent there. That costs the other
nodes nothing, whether its clock is ahead by an hour or it comes an hour late.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from millstream.model.slate import Table
from millstream.windows.accounts import (
    KEPT,
    LATE,
    MARK,
    READ,
    Window,
    window_entry,
    window_in,
)
from millstream.windows.coverage import RECEIVED, Coverage, Mark, Tally
from millstream.windows.fidelity import Area, Error, Spatial
from millstream.windows.job import Job
from millstream.windows.merged import board, pane_in, past, tardy, values
from millstream.windows.reducers import BEGINNING, Schedule, in_force

PAST = 72
Marks = dict[str, list[Any]]
Standing = tuple[int, int]
"""How many nodes have responded for a pane, and how many have lost it."""


@dataclass
class Scoreboard:
    """The scoreboard as it is while one event is looked at; `save` puts it back."""

    job: Job
    nodes: tuple[str, ...]
    table: Table
    reducers: int
    """How many reducers there are, this one among them."""
    dated: bool = False
    """Whether records say themselves where on the axis they are, and so may be late."""
    meta: dict[str, Any] = field(init=False)
    _windows: dict[int, Window] = field(init=False, default_factory=dict)
    """Those that were looked at."""

    def __post_init__(self) -> None:
        counts = dict.fromkeys(("late_panes", "late_records", "repeated"), 0)
        begun: dict[str, Any] = {
            "first": None,
            "final": False,
            "kept": BEGINNING,
            "open": [],
            "closed": [],
            "nodes": list(self.nodes),
            "from": {},
            "at": {},
            "schedule": [],
        }
        self.meta = self.table.get("meta") or {**begun, **counts}

    @property
    def schedule(self) -> Schedule:
        found: Schedule = self.meta["schedule"]
        return found

    @property
    def late_part(self) -> float:
        """Of all records that were read, the part that came late."""
        read: int = self.meta.get("read", 0)
        return self.meta.get("late", 0) / read if read else 0.0

    # Which windows there are

    def is_closed(self, window: int) -> bool:
        """Whether nothing more is taken into the window."""
        if self.meta["final"] and self.first_pane(window) < self.meta["first"]:
            return True
        return any(first <= window < end for first, end in self.meta["closed"])

    def first_pane(self, window: int) -> int:
        return self.job.span.panes_of(window)[0]

    def has(self, window: int) -> bool:
        """Whether the window is there, open or closed, and of this reducer."""
        first = self.meta["first"]
        return first is not None and self.first_pane(window) >= first and self._is_mine(window)

    def _is_mine(self, window: int) -> bool:
        return in_force(self.schedule, self.first_pane(window)) == self.reducers

    def window(self, number: int) -> Window | None:
        """A window's entry; None: it was not opened, or is long closed."""
        if number not in self._windows:
            stored = self.table.get(window_entry(number))
            if stored is None:
                return None
            self._windows[number] = Window(**stored)
        return self._windows[number]

    # What nodes tell

    def reach(self, pane: int, until: int, nodes: list[str], begin: list[str]) -> list[int]:
        """Nodes have come so far, some of them begin there; the windows that this opens."""
        meta, span = self.meta, self.job.span
        step = span.slide // span.pane
        changed = meta["nodes"] != [*self.nodes]  # others than when the application ran before
        meta["nodes"] = [*self.nodes]
        known = meta["first"]
        if known is None:
            meta["first"] = pane if span.begin is None else span.pane_of(span.begin)
            meta["final"] = span.begin is not None
        elif not meta["final"]:
            meta["first"] = min(pane, known)
        for node in begin:
            meta["from"][node] = pane
            changed = True
        for node in nodes:
            meta["at"][node] = max(until, meta["at"].get(node, until))
        if changed:
            for number in meta["open"]:
                self._windows[number] = self._recounted(number)
        earliest = pane if pane == until else pane - span.panes + 1
        numbers = {*range(-(-earliest // step), until // step + 1)}
        if known is not None and meta["first"] < known:
            # Windows that are there only now may have panes that came before: those are needed.
            before = range(-(-(known - span.panes + 1) // step), -(-known // step))
            numbers.update(one for one in before if any(self.boards(span.panes_of(one))))
        opened = []
        for number in sorted(numbers):
            if self.has(number) and not self.is_closed(number) and self.window(number) is None:
                self._windows[number] = self._recounted(number)
                opened.append(number)
        if opened:
            meta["open"] = sorted([*meta["open"], *opened])
            meta["forgot"] = min(opened[0], meta.get("forgot", BEGINNING))
        return opened

    def looked_at(self) -> list[int]:
        """The open windows whose counts may have changed."""
        return [number for number in sorted(self._windows) if not self.is_closed(number)]

    def knows(self, pane: int, until: int, nodes: list[str]) -> bool:
        """Whether any of the panes has a mark of any of the nodes."""
        return any(
            node in marks
            for _, marks in self.table.scan(board(pane), board(until))
            for node in nodes
        )

    def mark(self, pane: int, told: Marks) -> tuple[list[int], bool]:
        """Put marks of a pane in; the windows of this reducer that it is in, open or not, and
        whether the pane is kept: some window can still use it."""
        held: Marks = self.table.get(board(pane), {})
        marks = {**held, **told, **self._with_tardy(pane, told)}
        before, after = self._standing(pane, held), self._standing(pane, marks)
        windows = [one for one in self.job.span.windows_of(pane) if self.has(one)]
        for number in windows:
            window = self.window(number)
            if window is None:
                continue
            for mark in told.values():
                window.account_for(mark, on_time=not window.why)
            if not window.why:
                self._change(window, pane, before, after, held, marks)
        kept = self._awaits(pane) or any(self.is_corrected(one) for one in windows)
        if kept:
            self.table[board(pane)] = marks
            self._sweep_again(pane)
        return windows, kept

    def is_corrected(self, window: int) -> bool:
        """Whether a closed window's answer is given again when more comes."""
        if self.job.corrections == 0 or self.first_pane(window) < self.meta["kept"]:
            return False
        return not self.is_closed(window + self.job.corrections)

    def come_late(self, node: str, pane: int, count: int) -> list[int]:
        """A node has read records of a pane that it had sent; the closed windows that have it and
        are still corrected."""
        marks: Marks = self.table.get(board(pane), {})
        if node in marks:
            marks[node][LATE] += count
            marks[node][READ] += count
            self.table[board(pane)] = marks
        elif self._awaits(pane):
            waiting = self.table.get(tardy(pane), {})
            self.table[tardy(pane)] = {**waiting, node: waiting.get(node, 0) + count}
            self._sweep_again(pane)
        corrected = []
        for number in self.job.span.windows_of(pane):
            window = self.window(number) if self.has(number) else None
            if window is not None:
                window.come_late(count)
                if window.why and self.is_corrected(number):
                    corrected.append(number)
        return corrected

    def _awaits(self, pane: int) -> bool:
        """Whether an open window may have the pane: also one that is not there yet, but none that
        is other reducers'. (A pane may come here only for the late records that came with it.)"""
        windows = self.job.span.windows_of(pane)
        return any(not self.is_closed(one) and self._is_mine(one) for one in windows)

    def _with_tardy(self, pane: int, told: Marks) -> Marks:
        """The marks of nodes that have told of late records of the pane before."""
        waiting: dict[str, int] = self.table.get(tardy(pane), {})
        found = {node: [*told[node]] for node in told if node in waiting}
        for node, mark in found.items():
            mark[LATE] += waiting[node]
            mark[READ] += waiting[node]
        return found

    def close(self, number: int) -> None:
        """The window is closed; its entry stays for a while."""
        self.meta["open"].remove(number)
        ranges = sorted([*self.meta["closed"], [number, number + 1]])
        joined: list[list[int]] = []
        for first, end in ranges:
            if joined and joined[-1][1] == first:
                joined[-1][1] = end
            else:
                joined.append([first, end])
        self.meta["closed"] = joined

    # What it shows

    def boards(self, panes: range) -> Iterator[tuple[int, Marks]]:
        for entry, marks in self.table.scan(board(panes[0]), board(panes[-1] + 1)):
            yield pane_in(entry), marks

    def coverage(self, window: int) -> Coverage:
        """The scoreboard of a window, mark by mark."""
        panes = self.job.span.panes_of(window)
        marks: dict[tuple[str, int], Mark] = {}
        for node, begun in self.meta["from"].items():
            marks.update({(node, pane): "lost" for pane in range(panes[0], min(begun, panes.stop))})
        for pane, found in self.boards(panes):
            marks.update({(node, pane): mark[MARK] for node, mark in found.items()})
        return Coverage(self.nodes, panes, marks)

    def tally(self, window: Window) -> Tally:
        """The counts of a window's marks."""
        return Tally(
            nodes=len(self.nodes),
            panes=self.job.span.panes,
            received=window.received,
            lost=window.lost,
            whole=window.whole,
            hurt=window.hurt,
            some=window.some,
            by_node=window.nodes,
        )

    def needed(self) -> int:
        """The first window that may still need its panes. (A pane opens every window that it is in,
        so a window that is not open has none.)"""
        first: int = min(self.meta["open"], default=self.meta["closed"][-1][1])
        return first - self.job.corrections

    def forget(self, before: int) -> None:
        """Let go of the panes before one, and of windows that were closed long ago.

        The first panes of all stay for as long as a node might begin even earlier: then windows
        that begin before them need them.
        """
        meta, span, table = self.meta, self.job.span, self.table
        if not meta["final"] and {*self.nodes} <= meta["from"].keys():
            meta["final"] = True
            meta["swept"] = BEGINNING  # the first panes may go now
        if meta.get("swept") == before:
            return
        # What lies before the last sweep is gone, and need not be looked for.
        last_before = -(-meta["first"] // (span.slide // span.pane)) - 1
        first = meta["first"] if meta["final"] else span.panes_of(last_before).stop
        swept = meta.get("swept", BEGINNING)
        first = max(first, swept)
        # A node that is far ahead may have had windows closed: then less is let go than before.
        meta["swept"], meta["kept"] = before, max(before, meta["kept"])
        for entry, marks in [*table.scan(board(first), board(before))]:
            del table[entry]
            if pane_in(entry) >= before - PAST:
                table[past(pane_in(entry))] = marks
        for start, stop in (
            (values(first), values(before)),
            (tardy(swept), tardy(before)),
            (past(swept - PAST), past(before - PAST)),
        ):
            for entry in [entry for entry, _ in table.scan(start, stop)]:
                del table[entry]
        until = self.needed() - KEPT
        for entry, _ in [
            *table.scan(window_entry(meta.get("forgot", BEGINNING)), window_entry(until))
        ]:
            del table[entry]
            self._windows.pop(window_in(entry), None)
        meta["forgot"] = until

    def _sweep_again(self, pane: int) -> None:
        """There is something of a pane that may have been let go before."""
        if "swept" in self.meta:
            self.meta["swept"] = min(pane, self.meta["swept"])

    def save(self) -> None:
        for number, window in self._windows.items():
            self.table[window_entry(number)] = vars(window)
        self.table["meta"] = self.meta

    # Counting

    def _mark(self, node: str, pane: int, marks: Marks) -> str | None:
        """What is known of a pane of a node: its mark, or that it is absent; None: awaited."""
        if node in marks:
            return str(marks[node][MARK])
        begun = self.meta["from"].get(node)
        return "lost" if begun is not None and pane < begun else None

    def _standing(self, pane: int, marks: Marks) -> Standing:
        found = [self._mark(node, pane, marks) for node in self.nodes]
        received = sum(mark in RECEIVED for mark in found)
        return received, found.count("lost")

    def _change(
        self,
        window: Window,
        pane: int,
        before: Standing,
        after: Standing,
        held: Marks | None,
        marks: Marks,
    ) -> None:
        """Change a window's counts as a pane has changed from one standing to another; `held` are
        the marks before, None if the pane is counted for the first time."""
        everyone = len(self.nodes)
        window.received += after[0] - before[0]
        window.lost += after[1] - before[1]
        window.whole += (after[0] == everyone) - (before[0] == everyone)
        window.hurt += (after[1] > 0) - (before[1] > 0)
        window.some += (after[0] > 0) - (before[0] > 0)
        for node in self.nodes if self._by_node else ():
            was = None if held is None else self._mark(node, pane, held)
            now = self._mark(node, pane, marks)
            if was != now:
                received, lost = window.nodes.get(node, [0, 0])
                received += (now in RECEIVED) - (was in RECEIVED)
                window.nodes[node] = [received, lost + (now == "lost") - (was == "lost")]

    @property
    def _by_node(self) -> bool:
        """Whether the fidelity asks for counts of each node; others need not pay for them."""
        return not isinstance(self.job.fidelity, Area | Spatial | Error | None)

    def _recounted(self, number: int) -> Window:
        """A window with the counts of its marks as they stand."""
        old = self.window(number)
        window = Window() if old is None else old
        window.received = window.lost = window.whole = window.hurt = window.some = 0
        window.nodes = {}
        panes = self.job.span.panes_of(number)
        found, begun = dict(self.boards(panes)), max(self.meta["from"].values(), default=panes[0])
        for pane in panes:
            marks = found.get(pane, {})
            if marks or pane < begun:
                self._change(window, pane, (0, 0), self._standing(pane, marks), None, marks)
            for mark in marks.values() if old is None else ():
                window.account_for(mark, on_time=True)
        return window
