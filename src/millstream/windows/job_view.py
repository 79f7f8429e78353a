"""The view of a job for its users: the tables of its root as one `JobAnswer`. Pure.

    panes       around where most nodes are: for each pane and node its `mark`
    windows     the newest open ones, then the last closed ones, each in order
    accounts    for each node, where its records went; `totals` is the sum over all nodes

A mark is that of a manifest (`data`, `empty`, `lost`), or `awaited`, or `missing` if all windows of
the pane were closed without it. After the end of a log, panes are `empty`, and `why` is `over`.
Each reducer of a job has the marks of all nodes, so the view shows those of the first. A window is
open as long as any of its reducers has it open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from statistics import median_low
from typing import Any

import msgspec
from msgspec import UNSET

from millstream.messages.jobs import (
    JobAnswer,
    JobWindow,
    NodeCounts,
    PaneCell,
    PaneColumn,
    ReducerChange,
    WindowCompleteness,
    WindowCoverage,
)
from millstream.windows.accounts import (
    NodeAccount,
    WindowAccount,
    account_in,
    reason,
    window_in,
    window_of,
)
from millstream.windows.board.board_meta import BoardMeta
from millstream.windows.board.missing_panes import UNKNOWN, cause_of
from millstream.windows.board.node_places import places_in
from millstream.windows.board.pane_marks import pane_in, shown_panes, state_of, take_late
from millstream.windows.board.window_counts import tally_of
from millstream.windows.lateness import log_warnings, unit_warning
from millstream.windows.panes.pane_mark import Marks, read_marks
from millstream.windows.placed import JobPart
from millstream.windows.reducers import BEGINNING, NEVER
from millstream.windows.span import Span

Entries = Mapping[str, Any]
Schedule = Sequence[Sequence[int]]

MOST_OPEN, MOST_CLOSED = 24, 24
SHOWN = ("account|", "board|", "meta", "node|", "past|", "tardy|", "window|")
"""The prefixes of the entries of the root's table that are needed here. Values are not needed."""


def shown(
    name: str,
    part: JobPart,
    tables: Mapping[str, Entries],
    batch: int,
    schedule: Schedule = (),
    clock: int = 0,
) -> JobAnswer:
    """Returns the view of a job at `clock`. `tables` are by reducer, and `schedule` is the current
    schedule of the reducers (see `reducers`)."""
    board = _board(part, tables)
    accounts = {node: board.account(node) for node in board.nodes}
    totals = reduce(NodeAccount.plus, accounts.values(), NodeAccount(0, 0, 0, 0, 0))
    windows = board.windows()
    still_open = [window for window in windows if window.state == "open"]
    closed = [window for window in windows if window.state == "closed"]
    return JobAnswer(
        name=name,
        batch=batch,
        agents=part.agents,
        axis=part.axis,
        range=part.range,
        slide=part.slide,
        pane=part.pane,
        latency=part.latency,
        fidelity=part.fidelity,
        nodes=[*board.nodes],
        ended={
            node: None if pane == -board.span.furthest else pane * board.span.pane
            for node, pane in sorted(board.over.items())
        },
        reducers=board.reducers,
        change=board.change(schedule),
        panes=[board.pane(pane) for pane in board.columns()],
        windows=[*still_open[-MOST_OPEN:], *closed[-MOST_CLOSED:]],
        open=len(still_open),
        closed=sum(end - first for meta in board.metas for first, end in meta.closed),
        accounts={node: _shown(counts) for node, counts in accounts.items()},
        totals=_shown(totals),
        warnings=[*board.warnings(part.unit, clock)],
        silent=board.silent() if part.agents else [],
    )


@dataclass(frozen=True)
class _Board:
    """The tables of a job's reducers, with values from them that are needed repeatedly."""

    span: Span
    nodes: tuple[str, ...]
    every: Sequence[Entries]
    first: Sequence[Entries]
    """The table of the first reducer, for each number of reducers that there was."""
    metas: Sequence[BoardMeta]
    """The `meta` of each of these tables."""
    marks: Mapping[int, Marks]
    """The marks by pane and node."""
    late: Mapping[int, Mapping[str, int]]
    """Late records by pane and node."""
    start: int
    """The very first pane: windows that begin before it do not exist."""
    begun: Mapping[str, int]
    """The first pane of each node, if it was absent before."""
    over: Mapping[str, int]
    """The pane at which a node's log ends, if it has ended."""
    at: Mapping[str, int]
    """The pane that a node has reached, if it is known."""
    kept: int
    """Nothing is known any more of panes before this one."""
    late_expected: bool
    """True if late records must be expected."""
    why: Mapping[int, str | None]
    """The reason why a window was closed, for windows with an entry. None: it is open."""

    @property
    def reducers(self) -> int | None:
        """The number of reducers of the newest windows."""
        known = [meta.schedule for meta in self.metas]
        newest = max((schedule[-1] for schedule in known if schedule), default=None)
        return None if newest is None else newest[1]

    def change(self, schedule: Schedule) -> ReducerChange | None:
        """Returns the next number of reducers, and the position from which it holds. None: no
        change is pending."""
        ahead = [entry for entry in schedule if entry[0] > max(self.at.values(), default=entry[0])]
        if not ahead:
            return None
        first, number = ahead[-1]
        return ReducerChange(number, first * self.span.pane)

    def account(self, node: str) -> NodeAccount:
        tables = (account_in(table, node) for table in self.first)
        return reduce(NodeAccount.plus, tables, NodeAccount(0, 0, 0, 0, 0))

    def warnings(self, unit: str | None, clock: int) -> Iterator[str]:
        """Yields warnings about the nodes' logs, whose times are in `unit`."""
        timed = self.span.axis == "time"
        for node in self.nodes:
            begun = self.begun.get(node, BEGINNING)
            ts = begun * self.span.pane if timed and begun != BEGINNING else None
            warning = unit_warning(node, unit, ts, clock)
            yield from () if warning is None else (warning,)
            yield from log_warnings(node, self.account(node), timed=timed)

    def silent(self) -> list[str]:
        """Returns the nodes that are more than a window behind the furthest one, and whose log has
        not ended. A node that has sent nothing counts as being at the very first pane. On axes
        other than time nodes may differ by any amount, so none is silent."""
        if self.span.axis != "time" or not self.at:
            return []
        furthest = max(self.at.values())
        return [
            node
            for node in self.nodes
            if node not in self.over and furthest - self.at.get(node, self.start) > self.span.panes
        ]

    def columns(self) -> range:
        """Returns the panes to show: up to where most nodes are, and further to the end of the
        window there."""
        if not self.at:
            return range(0)
        most = shown_panes(len(self.nodes))
        last = median_low(self.at.values()) - 1
        ahead = max(self.marks, default=last)
        here = [window for window in self.span.windows_of(last) if self.why.get(window, "") is None]
        end = self.span.panes_of(here[0])[-1] if here else last
        last = max(last, *(pane for pane in (ahead, end) if pane <= last + most // 3), last)
        known = max(self.kept, min(self.marks, default=last))
        return range(max(last - most + 1, min(known, last)), last + 1)

    def pane(self, pane: int) -> PaneColumn:
        """Returns a column: the state of a pane at each node."""
        windows = [
            window
            for window in self.span.windows_of(pane)
            if self.span.panes_of(window)[0] >= self.start
        ]
        silent = "missing"
        if any(not self._is_closed(window) for window in windows):
            silent = "awaited"
        elif any(self.why.get(window) == "time" for window in windows):
            silent = "empty"  # event time has passed it: a silent node had no records
        return PaneColumn(
            pane,
            pane * self.span.pane,
            (pane + 1) * self.span.pane,
            {node: self._cell(node, pane, silent) for node in self.nodes},
        )

    def windows(self) -> list[JobWindow]:
        """Returns all windows with an entry, in order. Leaves out open windows of which no pane has
        come: they may stay empty."""
        entries: dict[int, list[WindowAccount]] = {}
        for table in self.every:
            for entry, stored in table.items():
                if entry.startswith("window|"):
                    entries.setdefault(window_in(entry), []).append(window_of(stored))
        return [
            self._window(number, entries[number])
            for number in sorted(entries)
            if any(stored.why for stored in entries[number]) or any(self._boards(number))
        ]

    def _is_closed(self, window: int) -> bool:
        ranges = (closed for meta in self.metas for closed in meta.closed)
        return any(first <= window < end for first, end in ranges)

    def _cell(self, node: str, pane: int, silent: str) -> PaneCell:
        mark = self.marks.get(pane, {}).get(node)
        if mark is None:
            state, why = silent, None
            if pane < self.begun.get(node, pane):
                state, why = "lost", "absent"
            elif pane >= self.over.get(node, pane + 1):
                state, why = "empty", "over"
            return PaneCell(state, why, records=0, bytes=0, shed=0, gap=0)
        return PaneCell(
            mark.mark,
            mark.why or None,
            records=mark.records,
            bytes=mark.bytes,
            shed=mark.shed,
            gap=mark.gap,
            late=mark.late,
        )

    def _window(self, number: int, reducers: Sequence[WindowAccount]) -> JobWindow:
        begin, end = self.span.bounds(number)
        waiting = [stored for stored in reducers if not stored.why]
        entry = (waiting or reducers)[0]
        coverage, completeness = self._coverage(number, entry), self._completeness(number, entry)
        why: Any = entry.why
        return JobWindow(
            window=number,
            start=begin,
            to=end,
            state="open" if waiting else "closed",
            why=reason(why, coverage, completeness) or None,
            corrections=max(stored.corrections for stored in reducers),
            coverage=coverage,
            completeness=completeness,
            account=_shown(
                NodeAccount(
                    entry.read,
                    entry.on_time,
                    entry.late,
                    entry.shed,
                    entry.dead,
                    gaps=self._torn(number),
                    misdated=entry.misdated,
                )
            ),
        )

    def _coverage(self, number: int, window: WindowAccount) -> WindowCoverage:
        """Returns the measures of `CoverageTally`, unless they are kept. The nodes are counted
        here, since not every job keeps their counts."""
        if window.coverage is not UNSET:
            return window.coverage
        responded = {
            node
            for marks in self._boards(number)
            for node, mark in marks.items()
            if state_of(mark) == "received"
        }
        counts = tally_of(window, len(self.nodes), self.span.panes)
        tally = replace(counts, some_nodes=len(responded))
        return WindowCoverage(
            area=tally.area,
            time=tally.time,
            space=tally.space,
            missing=dict(sorted(self._missing(number).items())),
        )

    def _completeness(self, number: int, window: WindowAccount) -> WindowCompleteness:
        """Returns the completeness of a window as known now, computed as in `answers`."""
        if window.completeness is not UNSET:
            return window.completed(window.completeness, late_expected=self.late_expected)
        size = sum(mark.bytes for marks in self._boards(number) for mark in marks.values())
        missing = self._missing(number)
        unknown = sum(missing[cause] for cause in UNKNOWN)
        return window.complete(window.on_time, size, unknown, late_expected=self.late_expected)

    def _missing(self, number: int) -> Counter[str]:
        """Returns the missing panes of nodes by cause, as the module `missing_panes` does for a
        closed window."""
        causes = Counter[str]()
        for pane in self.span.panes_of(number):
            causes.update(filter(None, (self._cause(node, pane) for node in self.nodes)))
        return causes

    def _cause(self, node: str, pane: int) -> str | None:
        """Returns why a pane of a node is missing, or None if it is not."""
        mark = self.marks.get(pane, {}).get(node)
        if mark is not None:
            return None if state_of(mark) == "received" else cause_of(mark)
        if node not in self.begun or pane < self.begun[node]:
            return "absent"
        if pane < self.over.get(node, pane + 1):
            return "awaited"
        return "late" if node in self.late.get(pane, {}) else None

    def _torn(self, window: int) -> int:
        """Counts the panes of nodes that have a gap."""
        return sum(mark.gap != 0 for marks in self._boards(window) for mark in marks.values())

    def _boards(self, window: int) -> Iterator[Marks]:
        return (self.marks[pane] for pane in self.span.panes_of(window) if pane in self.marks)


def _board(part: JobPart, tables: Mapping[str, Entries]) -> _Board:
    span = Span(part.axis, part.range, part.slide, part.pane)
    first: dict[str, Entries] = {}
    for reducer in sorted(tables):
        first.setdefault(reducer.partition("/")[0], tables[reducer])
    marks: dict[int, Marks] = {}
    metas: list[BoardMeta] = []
    starts: list[int] = []
    kept: list[int] = []
    begun: dict[str, int] = {}
    over: dict[str, int] = {}
    at: dict[str, int] = {}
    why: dict[int, str | None] = {}
    for table in first.values():
        meta = msgspec.convert(table.get("meta", {}), BoardMeta)
        metas.append(meta)
        starts += [] if meta.first is None else [meta.first]
        past = [pane_in(entry) for entry in table if entry.startswith("past|")]
        kept += [min([*past, meta.kept])] if "meta" in table else []
        for node, place in places_in(table):
            begun[node] = place.begun
            if place.over != NEVER:
                over[node] = place.over
        at |= {node: pane for node, pane in begun.items() if pane != BEGINNING and node not in at}
        at |= meta.at or {}  # stored by an earlier version
        for entry, stored in table.items():
            if entry.startswith(("board|", "past|")):
                pane = pane_in(entry)
                marks.setdefault(pane, {}).update(read_marks(stored))
                at.update({node: max(pane + 1, at.get(node, pane)) for node in stored})
            elif entry.startswith("window|"):
                why[window_in(entry)] = window_of(stored).why or None
    start = min(starts, default=0)
    return _Board(
        span,
        tuple(part.nodes),
        every=[tables[reducer] for reducer in sorted(tables)],
        first=[*first.values()],
        metas=metas,
        marks=marks,
        late=take_late(first.values(), marks),
        start=start,
        begun=begun,
        over=over,
        at=at,
        kept=max(kept, default=start),
        late_expected=any(meta.expects_late(len(part.nodes)) for meta in metas),
        why=why,
    )


def _shown(counts: NodeAccount) -> NodeCounts:
    return msgspec.convert(counts, NodeCounts, from_attributes=True)
