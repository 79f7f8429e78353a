"""What people see of a job: the tables of its root as one JSON view. Pure.

    panes       where most nodes are: of each pane and node what came of it, its `mark`
    windows     the newest that are open, then the last that were closed, each in order
    accounts    of each node, where its records went; `totals` of all nodes together

A mark is one of a manifest's (`data`, `empty`, `lost`), or `awaited`, or `missing`: all windows of
the pane were closed without it. Of a log that has ended, panes from there on are `empty`, and `why`
is `over`. Each reducer of a job has the marks of all nodes, so the view is
that of the first of them; a window is open for as long as any of its reducers has it open.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median_low
from typing import Any

from millstream.windows.accounts import (
    BYTES,
    COUNTS,
    GAP,
    MARK,
    RECORDS,
    SHED,
    WHY,
    account,
    added,
    residual,
    window_in,
    window_of,
)
from millstream.windows.lateness import late_warning
from millstream.windows.missing import UNKNOWN, cause_of
from millstream.windows.node_places import places_in
from millstream.windows.pane_marks import pane_in, shown_panes, state_of
from millstream.windows.reducers import BEGINNING, NEVER
from millstream.windows.span import Span

Entries = Mapping[str, Any]
View = dict[str, Any]
Schedule = Sequence[Sequence[int]]

MOST_OPEN, MOST_CLOSED = 24, 24
SHOWN = ("account|", "board|", "meta", "node|", "past|", "window|")
"""How the entries of the root's table begin that are needed here; those of values are not."""
_NOTHING = dict.fromkeys(COUNTS, 0)


def shown(
    name: str,
    described: Mapping[str, Any],
    tables: Mapping[str, Entries],
    batch: int,
    schedule: Schedule = (),
) -> View:
    """The view of a job; `described` is its `PlacedJob.described`, `tables` are by reducer, and
    `schedule` is that of the reducers as the nodes have agreed on it (see `reducers`)."""
    board = _board(described, tables)
    accounts = {node: _with_residual(board.account(node)) for node in board.nodes}
    totals = _NOTHING
    for counts in accounts.values():
        totals = added(totals, counts)
    windows = board.windows()
    still_open = [one for one in windows if one["state"] == "open"]
    said = ("agents", "axis", "range", "slide", "pane", "latency", "fidelity")
    return {
        "name": name,
        "batch": batch,
        **{one: described[one] for one in said},
        "nodes": list(board.nodes),
        "ended": {node: pane * board.span.pane for node, pane in sorted(board.over.items())},
        "reducers": board.reducers,
        "change": board.change(schedule),
        "panes": [board.pane(pane) for pane in board.columns()],
        "windows": [
            *still_open[-MOST_OPEN:],
            *[one for one in windows if one["state"] == "closed"][-MOST_CLOSED:],
        ],
        "open": len(still_open),
        "closed": sum(end - first for table in board.first for first, end in _closed(table)),
        "accounts": accounts,
        "totals": _with_residual(totals),
        "warnings": [*board.warnings()],
    }


def summary(view: Mapping[str, Any]) -> View:
    """A view in short: the accounts of the nodes, what is not accounted for, how many windows."""
    return {
        "nodes": view["accounts"],
        "residual": view["totals"]["residual"],
        "open": view["open"],
        "closed": view["closed"],
    }


@dataclass(frozen=True)
class _Board:
    """The tables of a job's reducers, with what is looked up in them again and again."""

    span: Span
    nodes: tuple[str, ...]
    every: Sequence[Entries]
    first: Sequence[Entries]
    """Of each number of reducers that there was, the table of the first."""
    marks: Mapping[int, Mapping[str, Sequence[Any]]]
    """By pane and node."""
    start: int
    """The first pane of all: windows that began before it are not there."""
    begun: Mapping[str, int]
    """The pane that a node has begun with, if it was not there before."""
    over: Mapping[str, int]
    """The pane that a node's log ends at, if it has ended."""
    at: Mapping[str, int]
    """The pane that a node has reached, if it is among those that are known."""
    kept: int
    """Of panes before it nothing is known any more."""
    why: Mapping[int, str | None]
    """Why a window was closed, if it has an entry; None: it is open."""

    @property
    def reducers(self) -> int | None:
        """How many there are, of the newest windows."""
        known = [table["meta"]["schedule"] for table in self.first if "meta" in table]
        newest = max((schedule[-1] for schedule in known if schedule), default=None)
        return None if newest is None else newest[1]

    def change(self, schedule: Schedule) -> View | None:
        """Another number of reducers that is to come, and the position that it holds from; None:
        no window is waited for, or there is no change."""
        ahead = [one for one in schedule if one[0] > max(self.at.values(), default=one[0])]
        if not ahead:
            return None
        first, number = ahead[-1]
        return {"reducers": number, "from": first * self.span.pane}

    def account(self, node: str) -> dict[str, int]:
        counts = _NOTHING
        for table in self.first:
            counts = added(counts, table.get(account(node), _NOTHING))
        return counts

    def warnings(self) -> Iterator[str]:
        """What is likely to be wrong with the nodes' logs, in words."""
        for node in self.nodes:
            counts = self.account(node)
            behind = counts.get("behind", 0) if self.span.axis == "time" else 0
            said = late_warning(node, counts["read"], counts["late"], behind)
            if said is not None:
                yield said

    def columns(self) -> range:
        """The panes to show: up to where most nodes are, and on to the end of the window there."""
        if not self.at:
            return range(0)
        most = shown_panes(len(self.nodes))
        last = median_low(self.at.values()) - 1
        ahead = max(self.marks, default=last)
        here = [one for one in self.span.windows_of(last) if self.why.get(one, "") is None]
        end = self.span.panes_of(here[0])[-1] if here else last
        last = max(last, *(pane for pane in (ahead, end) if pane <= last + most // 3), last)
        known = max(self.kept, min(self.marks, default=last))
        return range(max(last - most + 1, min(known, last)), last + 1)

    def pane(self, pane: int) -> View:
        """A column: what came of a pane at each node."""
        windows = [
            one for one in self.span.windows_of(pane) if self.span.panes_of(one)[0] >= self.start
        ]
        silent = "missing"
        if any(not self._is_closed(one) for one in windows):
            silent = "awaited"
        elif any(self.why.get(window) == "time" for window in windows):
            silent = "empty"  # event time has passed it: whoever was silent had nothing
        return {
            "pane": pane,
            "from": pane * self.span.pane,
            "to": (pane + 1) * self.span.pane,
            "nodes": {node: self._cell(node, pane, silent) for node in self.nodes},
        }

    def windows(self) -> list[View]:
        """All that have an entry, in order; but for those that the nodes have only come to the
        beginning of: nobody knows whether there will be anything in them."""
        found: dict[int, list[Mapping[str, Any]]] = {}
        for table in self.every:
            for entry, of in table.items():
                if entry.startswith("window|"):
                    found.setdefault(window_in(entry), []).append(of)
        return [
            self._window(number, found[number])
            for number in sorted(found)
            if any(of["why"] for of in found[number]) or any(self._boards(number))
        ]

    def _is_closed(self, window: int) -> bool:
        ranges = (one for table in self.first for one in _closed(table))
        return any(first <= window < end for first, end in ranges)

    def _cell(self, node: str, pane: int, silent: str) -> View:
        mark = self.marks.get(pane, {}).get(node)
        if mark is None:
            said, why = silent, None
            if pane < self.begun.get(node, pane):
                said, why = "lost", "absent"
            elif pane >= self.over.get(node, pane + 1):
                said, why = "empty", "over"
            return {"mark": said, "why": why, "records": 0, "bytes": 0, "shed": 0, "gap": 0}
        return {
            "mark": mark[MARK],
            "why": mark[WHY] or None,
            "records": mark[RECORDS],
            "bytes": mark[BYTES],
            "shed": mark[SHED],
            "gap": mark[GAP],
        }

    def _window(self, number: int, reducers: Sequence[Mapping[str, Any]]) -> View:
        begin, end = self.span.bounds(number)
        waiting = [one for one in reducers if not one["why"]]
        one = (waiting or reducers)[0]
        return {
            "window": number,
            "from": begin,
            "to": end,
            "state": "open" if waiting else "closed",
            "why": one["why"] or None,
            "corrections": max(of["corrections"] for of in reducers),
            "coverage": {"missing": {}, **(one["coverage"] or self._coverage(number, one))},
            "completeness": {
                "late": 0.0,
                "misdated": 0.0,
                **(one["completeness"] or self._completeness(number, one)),
            },
            "account": _with_residual(
                {**{count: one[count] for count in COUNTS}, "gaps": self._torn(number)}
            ),
        }

    def _coverage(self, number: int, window: Mapping[str, Any]) -> dict[str, Any]:
        """As `coverage.Tally` has it, but for the nodes, which not every job counts."""
        responded = {
            node
            for marks in self._boards(number)
            for node, mark in marks.items()
            if state_of(mark) == "received"
        }
        return {
            "area": window["received"] / (len(self.nodes) * self.span.panes),
            "time": window["some"] / self.span.panes,
            "space": len(responded) / len(self.nodes),
            "missing": dict(sorted(self._missing(number).items())),
        }

    def _completeness(self, number: int, window: Mapping[str, Any]) -> dict[str, float | None]:
        """As `answers` says it of a window that is closed."""
        size = sum(mark[BYTES] for marks in self._boards(number) for mark in marks.values())
        missing = self._missing(number)
        unknown = sum(missing[cause] for cause in UNKNOWN)
        return window_of({**window}).complete(window["on_time"], size, unknown)

    def _missing(self, number: int) -> Counter[str]:
        """As `missing` says it of a window that is closed: by cause, panes of nodes."""
        found = Counter[str]()
        for pane in self.span.panes_of(number):
            marks = self.marks.get(pane, {})
            for node in self.nodes:
                mark = marks.get(node)
                if mark is not None:
                    found.update([] if state_of(mark) == "received" else [cause_of(mark)])
                elif node not in self.begun or pane < self.begun[node]:
                    found["absent"] += 1
                elif pane < self.over.get(node, pane + 1):
                    found["awaited"] += 1
        return found

    def _torn(self, window: int) -> int:
        """Panes of nodes that have a gap."""
        return sum(mark[GAP] != 0 for marks in self._boards(window) for mark in marks.values())

    def _boards(self, window: int) -> Iterator[Mapping[str, Sequence[Any]]]:
        return (self.marks[pane] for pane in self.span.panes_of(window) if pane in self.marks)


def _board(described: Mapping[str, Any], tables: Mapping[str, Entries]) -> _Board:
    span = Span(described["axis"], described["range"], described["slide"], described["pane"])
    first: dict[str, Entries] = {}
    for reducer in sorted(tables):
        first.setdefault(reducer.partition("/")[0], tables[reducer])
    marks: dict[int, dict[str, Sequence[Any]]] = {}
    starts: list[int] = []
    kept: list[int] = []
    begun: dict[str, int] = {}
    over: dict[str, int] = {}
    at: dict[str, int] = {}
    why: dict[int, str | None] = {}
    for table in first.values():
        meta = table.get("meta", {})
        starts += [] if meta.get("first") is None else [meta["first"]]
        past = [pane_in(entry) for entry in table if entry.startswith("past|")]
        kept += [min([*past, meta["kept"]])] if "kept" in meta else []
        for node, place in places_in(table):
            begun[node] = place.begun
            if place.over != NEVER:
                over[node] = place.over
        at |= {node: pane for node, pane in begun.items() if pane != BEGINNING and node not in at}
        at |= meta.get("at", {})  # of an earlier version
        for entry, of in table.items():
            if entry.startswith(("board|", "past|")):
                pane = pane_in(entry)
                marks.setdefault(pane, {}).update(of)
                at.update({node: max(pane + 1, at.get(node, pane)) for node in of})
            elif entry.startswith("window|"):
                why[window_in(entry)] = of["why"] or None
    start = min(starts, default=0)
    return _Board(
        span,
        tuple(described["nodes"]),
        every=[tables[one] for one in sorted(tables)],
        first=[*first.values()],
        marks=marks,
        start=start,
        begun=begun,
        over=over,
        at=at,
        kept=max(kept, default=start),
        why=why,
    )


def _closed(table: Entries) -> list[list[int]]:
    """The ranges of windows that are closed."""
    found: list[list[int]] = table.get("meta", {}).get("closed", [])
    return found


def _with_residual(counts: Mapping[str, int]) -> dict[str, int]:
    shown = {one: counts[one] for one in COUNTS}
    return {**shown, "residual": residual(counts), "gaps": counts.get("gaps", 0)}
