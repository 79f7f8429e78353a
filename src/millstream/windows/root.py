"""The root of a reducer: panes come in, windows go out (iMR, sections 2.3.2, 3.1 and 3.3).

An update with a table for each reducer, "R/r" of R. Its entries, in the order of their names:

    account|NODE          where a node's records went (`accounts`)
    board|PANE|NODE       marks of a pane (`pane_marks`, as are `past`, `tally` and `tardy`)
    meta                  (`scoreboard`)
    moved, sums           the window that was closed last, if windows are moved on (`merged`)
    node|NODE             how far a node is (`node_places`)
    pane|PANE|NODE        what a node has combined of a pane, by key
    share|WINDOW|NODE     (`scoreboard`)
    window|WINDOW         the counts of a window

When a pane comes, each open window that has it is looked at (`fidelity.closing`), by its counts.
What a closed window says comes in the order of its keys (`answers`); panes that no open window has
go. The nodes are told of windows that were opened and closed.

A window has until `latency` after it was opened or, if the axis is time, after its end on the wall
clock, whichever is later: a node whose clock is ahead opens windows, but takes no time from others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import Any

from millstream.model.duration import microseconds
from millstream.model.event import Emit, Event, SetTimer, Timer, emit, timer
from millstream.model.function import takes
from millstream.model.slate import Table
from millstream.windows.accounts import MARK, READ, RECORDS, account, added, counts_of, misdated_in
from millstream.windows.answers import Closed
from millstream.windows.fidelity import Reason, closing
from millstream.windows.job import Job
from millstream.windows.looking import asked, bounds, near
from millstream.windows.members import Members
from millstream.windows.merged import merged, merged_anew, put
from millstream.windows.missing import missing_of
from millstream.windows.pane_ledger import Part
from millstream.windows.pane_retention import let_go
from millstream.windows.reducers import HOPS
from millstream.windows.scoreboard import Scoreboard
from millstream.windows.window_counts import tally_of

ARRIVES = HOPS + 2
"""Microseconds after its end that a pane comes here: the hops from the update that made it."""


@dataclass(frozen=True)
class Root:
    """The update function of a job's root, and its timer function, `on_timer`."""

    job: Job
    name: str
    nodes: tuple[str, ...]
    by_time: bool
    """Whether event time tells that a window is over: then whoever was silent had nothing."""
    agents: bool = False
    """Whether there are agents to be told; events then have the time at which they were sent."""
    dated: bool = False
    """Whether records say themselves where on the axis they are, and so may be late."""
    __signature__ = takes("event", "slate")

    @property
    def __modules__(self) -> set[str]:
        return self.job.modules

    @cached_property
    def members(self) -> Members:
        return Members(self.nodes)

    def __call__(self, event: Event, table: Table) -> Iterator[Emit | SetTimer]:
        part: Part = event.value
        part.setdefault("over", {})  # one that an earlier version left waiting has none
        pane, until, nodes = part["pane"], part["until"], [*part["marks"]]
        board = self._board(event.key, table, part["schedule"])
        if not nodes:  # new reducers are told which logs have ended
            board.move(pane, part)
            board.save()
            return
        for window in board.reach(pane, until, part):
            yield from self._opened(window, event)
        late: list[int] = []
        if board.knows(pane, until, nodes):
            board.meta["repeated"] += 1
        else:
            opened, late = self._take(board, part)
            for window in opened:
                yield from self._opened(window, event)
        closed = False
        for window in board.looked_at():
            found = board.window(window)
            assert found is not None
            fidelity, close = asked(self.job), near(board, window, found)
            tally = tally_of(found, len(self.nodes), self.job.span.panes)
            reason = closing(tally, fidelity, overdue=False, near=close)
            if reason is not None:
                closed = True
                yield from self._close(board, window, reason, event)
        for window in sorted(late):
            yield from self._correct(board, window, event)
        if closed:
            let_go(board)
        board.save()

    def on_timer(self, due: Timer, table: Table) -> Iterator[Emit | SetTimer]:
        """A window's time is over."""
        kind, _, number = due.name.partition(" ")
        window = int(number)
        board = self._board(due.key, table, None)
        if board.is_closed(window) or board.window(window) is None:
            return
        if kind == "latency" and not self.agents:
            wait = self._deadline(window) - due.ts
            if wait > 0:
                yield _after(wait, due.name)
                return
        if kind == "time" and not [*board.boards(self.job.span.panes_of(window))]:
            # No pane of any node has come: event time was ended (`--final`) before the window
            # began. It is no window of the log, unless the log goes on.
            yield timer(at=due.ts + self.job.span.length, name=due.name)
            return
        yield from self._close(board, window, "time" if kind == "time" else "latency", due)
        let_go(board)
        board.save()

    def _board(self, reducer: str, table: Table, schedule: Any) -> Scoreboard:
        reducers = int(reducer.partition("/")[0])
        board = Scoreboard(self.job, self.members, table, reducers, self.dated)
        if schedule is not None:
            board.meta["schedule"] = schedule
        return board

    def _take(self, board: Scoreboard, part: Part) -> tuple[list[int], list[int]]:
        """Take panes in; the windows that late records open, and the closed windows that are to be
        corrected."""
        marks, opened = part["marks"], list[int]()
        corrected: dict[int, None] = {}
        in_time = True
        for pane in range(part["pane"], part["until"]):
            if pane == part["pane"] + 1:  # what was read counts once for a run of panes
                marks = {node: [*mark[:READ], 0, *mark[READ + 1 :]] for node, mark in marks.items()}
            windows, kept = board.mark(pane, marks)
            if kept:
                put(board.table, pane, part["partials"], marks)
            in_time = not windows or any(not board.is_closed(one) for one in windows)
            if not in_time:
                board.meta["late_panes"] += sum(mark[MARK] != "lost" for mark in marks.values())
                board.meta["late_records"] += sum(mark[RECORDS] for mark in marks.values())
            for window in windows:
                found = board.window(window)
                if found is not None and found.why and board.is_corrected(window):
                    found.after += [[node, pane] for node in marks]
                    if any(mark[MARK] != "lost" for mark in marks.values()):
                        corrected[window] = None  # a pane that was given up changes no answer
        for node, mark in part["marks"].items():
            late = part["late"].get(node, {})
            for other, count in late.items():
                new, changed = board.come_late(node, int(other), count)
                opened += new
                corrected |= dict.fromkeys(changed)
            for other, count in part.get("claimed", {}).get(node, {}).items():
                corrected |= dict.fromkeys(board.claim(node, int(other), count))
            if part["accounted"]:
                panes = part["until"] - part["pane"]
                behind = max(
                    ((part["pane"] - int(other)) * self.job.span.pane for other in late), default=0
                )
                counts = _account(board.table, node, mark, late, behind, in_time, panes)
                counts["misdated"] = misdated_in(mark)
                for what in ("read", "late", "misdated"):
                    board.meta[what] = board.meta.get(what, 0) + counts[what]
        return opened, [*corrected]

    def _opened(self, window: int, event: Event) -> Iterator[Emit | SetTimer]:
        """The timers of a window: of its end in event time, and of its latency."""
        end = self.job.span.bounds(window)[1]
        if self.by_time:
            yield timer(at=max(event.ts, end + ARRIVES), name=f"time {window}")
        if self.job.latency is not None:
            # Only agents' messages have a time on the wall clock; others wait, then look again.
            ahead = self._deadline(window) - event.ts if self.agents else 0
            latency = microseconds(self.job.latency, "job: latency")
            yield _after(max(latency, ahead), f"latency {window}")
        if self.agents and event.key.endswith("/0"):
            yield emit(f"{self.name}.told", key=str(window), value={"opened": window})

    def _deadline(self, window: int) -> int:
        """When a window's latency is over on the wall clock, whenever it was opened; 0 if that
        alone counts."""
        if self.job.span.axis != "time" or self.job.latency is None:
            return 0
        latency = microseconds(self.job.latency, "job: latency")
        return self.job.span.bounds(window)[1] + latency

    def _close(
        self, board: Scoreboard, window: int, reason: Reason, by: Event | Timer
    ) -> Iterator[Emit]:
        found = board.window(window)
        assert found is not None
        found.why = reason
        board.close(window)
        combined = merged(self.job, board.table, window)
        yield from self._closed(board, window, by, combined).answers()
        if self.agents:
            told = {"closed": window, "reducer": by.key, "of": board.reducers}
            yield emit(f"{self.name}.told", key=str(window), value=told)

    def _correct(self, board: Scoreboard, window: int, by: Event) -> Iterator[Emit]:
        """Give a closed window's answers again; or for the first time, if it is there only for
        its late records."""
        found = board.window(window)
        assert found is not None
        found.corrections += bool(found.coverage)
        combined = merged_anew(self.job, board.table, self.job.span.panes_of(window))
        yield from self._closed(board, window, by, combined).answers()

    def _closed(
        self, board: Scoreboard, window: int, by: Event | Timer, combined: dict[str, Any]
    ) -> Closed:
        found, panes = board.window(window), self.job.span.panes_of(window)
        assert found is not None
        why: Any = found.why
        return Closed(
            self.job,
            self.name,
            by.key,
            window,
            found,
            why,
            board.coverage(window),
            board.boards(panes),
            combined,
            bounds(board, window, ended=why == "time"),
            missing_of(board, window, ended=why == "time"),
            board.part_of("late"),
            board.part_of("misdated"),
            partial(_next_time, board, by),
        )


def _account(
    table: Table,
    node: str,
    mark: list[Any],
    late: dict[str, int],
    behind: int,
    in_time: bool,
    panes: int,
) -> dict[str, int]:
    """Put a pane, and the late records that were found while it was made, into a node's account;
    or a run of so many panes without records. Gives what was put in."""
    counts = counts_of(mark, on_time=in_time)
    counts["read"] += sum(late.values())
    counts["late"] += sum(late.values())
    counts["behind"] = behind
    counts["gaps"] *= panes
    if any(counts.values()):
        table[account(node)] = added(table.get(account(node)), counts)
    return counts


def _next_time(board: Scoreboard, by: Event | Timer) -> int | None:
    """The time of the next answer. A timer on the wall clock does not know how far events are, so
    that it cannot say what is later."""
    wall = isinstance(by, Timer) and by.clock == "wall"
    return None if wall else board.next_time(by.ts)


def _after(microseconds: int, name: str) -> SetTimer:
    return timer(after=timedelta(microseconds=microseconds), name=name, clock="wall")
