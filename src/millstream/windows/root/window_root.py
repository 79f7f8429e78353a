"""The root of a reducer: panes come in, windows go out (iMR, sections 2.3.2, 3.1 and 3.3).

It is an update with a table for each reducer, keyed "R/r" for reducer r of R. The entries of the
table, in the order of their names:

    account|NODE          where a node's records went (`accounts`)
    board|PANE|NODE       marks of a pane (`pane_marks`, as are `past`, `tally` and `tardy`)
    meta                  (`scoreboard`)
    moved, sums           the window that was closed last, if windows are moved on (`merged`)
    node|NODE             where a node's log begins and ends (`node_places`)
    pane|PANE|NODE        the combined values of a pane of a node, by key
    quiet|WINDOW          a range of windows without records (`quiet_windows`)
    share|WINDOW|NODE     a node's share of a window (`window_counts`)
    window|WINDOW         the counts of a window

When a pane comes, each open window that has it is checked by its counts (`fidelity.closing`). The
answers of a closed window come in the order of its keys (`answers`). Panes that no window needs are
deleted. The nodes are told of windows that were opened and closed.

A window may stay open for `latency` after it was opened or, if the axis is time, after its end on
the wall clock, whichever is later. A node whose clock is ahead opens windows early, but takes no
time from other nodes.

Without agents, a window that is open when event time is ended (`--final`) is closed then: a silent
node had no records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from millstream.model.duration import microseconds
from millstream.model.event import Emit, Event, SetTimer, Timer, emit, timer
from millstream.model.function import takes
from millstream.model.slate import Table
from millstream.trees.messages import ToldRecord
from millstream.windows.accounts import WindowAccount
from millstream.windows.board.missing_panes import Missing, missing_of
from millstream.windows.board.quiet_windows import panes_needed, quiet_ranges
from millstream.windows.board.scoreboard import Scoreboard
from millstream.windows.board.window_counts import tally_of
from millstream.windows.bounds.estimates import estimate
from millstream.windows.coverage import Coverage, UnendedCoverage
from millstream.windows.fidelity import Reason, closing
from millstream.windows.members import Members
from millstream.windows.panes.message import manifest
from millstream.windows.panes.pane_ledger import PanePart
from millstream.windows.reducers import NEVER, order_of
from millstream.windows.root.answers import Closed
from millstream.windows.root.merged import merged, merged_anew, put
from millstream.windows.root.node_accounts import add_to_accounts
from millstream.windows.root.pane_retention import let_go
from millstream.windows.root.window_bounds import asked, bounds, near

if TYPE_CHECKING:
    from millstream.windows.job import Job

LONGEST = 100_000
"""The maximum number of panes of a run for which windows are opened. A node may jump farther while
others are awaited, for example because of a line with the time of another century. It then counts
as absent in between. Otherwise all nodes would have to wait for the root."""
AT_END = "end"
"""The name of the timer for the end of event time."""


@dataclass(frozen=True)
class Root:
    """The update function of a job's root. `on_timer` is its timer function."""

    job: Job
    name: str
    nodes: tuple[str, ...]
    arrival: int | None
    """If event time shows that a window is over: the time from a pane's end until the pane is here.
    A node that is silent until then had no records."""
    agents: bool = False
    """True if there are agents to notify. The time of an event is then when it was sent."""
    dated: bool = False
    """True if records carry their own position on the axis, and so may be late."""
    __signature__ = takes("event", "slate")

    @property
    def __modules__(self) -> set[str]:
        return self.job.modules

    @cached_property
    def members(self) -> Members:
        return Members(self.nodes)

    def __call__(self, event: Event, table: Table) -> Iterator[Emit | SetTimer]:
        part = msgspec.convert(event.value, PanePart)
        pane, until, nodes = part.pane, part.until, [*part.marks]
        board = self._board(event.key, table, part.schedule)
        if not nodes:  # the part only says which logs have ended
            board.move(pane, part)
            yield from self._settle(board, part, event, (), ())
            return
        repeated = board.knows(pane, until, nodes)
        quiet = [] if repeated else quiet_ranges(board, board.places, part)
        if (
            until - pane - sum(map(len, quiet)) * self.job.span.slide // self.job.span.pane
            > LONGEST
        ):
            pane, quiet = until, []
            part = replace(part, pane=until, begin=nodes)
        known = board.come(pane, part)
        for window in board.reach(pane, until, known, quiet):
            yield from self._opened(window, event)
        late: list[int] = []
        if repeated:
            board.meta.repeated += 1
        else:
            opened, late = self._take(board, part, quiet)
            for window in opened:
                yield from self._opened(window, event)
        yield from self._settle(board, part, event, quiet, late)

    def _settle(
        self,
        board: Scoreboard,
        part: PanePart,
        event: Event,
        quiet: Sequence[range],
        late: Sequence[int],
    ) -> Iterator[Emit | SetTimer]:
        """Closes the windows that need not wait any longer, and those of the `quiet` ranges.
        Corrects those in `late`, for which records came late."""
        closed = bool(quiet)
        ranges = {windows.start: windows for windows in quiet}
        for window in sorted([*board.looked_at(), *ranges]):
            if window in ranges:
                yield from self._close_quiet(board, ranges[window], part, event)
                continue
            counts = board.window(window)
            assert counts is not None
            fidelity, close = asked(self.job), near(board, window, counts)
            panes = self.job.span.panes_of(window)
            tally = tally_of(counts, len(self.nodes), len(panes))
            coverage = UnendedCoverage(tally, *board.places.ended(panes))
            reason = closing(coverage, fidelity, overdue=False, near=close)
            if reason is not None:
                closed = True
                yield from self._close(board, window, reason, event)
        for window in sorted(late):
            yield from self._correct(board, window, event)
        if closed:
            let_go(board)
        board.save()

    def on_timer(self, due: Timer, table: Table) -> Iterator[Emit | SetTimer]:
        """Closes a window whose time is over."""
        board = self._board(due.key, table, None)
        if due.name == AT_END:
            yield from self._end(board, due)
            return
        kind, window = _timer_of(due.name)
        counts = board.window(window)
        if board.is_closed(window) or counts is None:
            return
        if kind == "latency" and not self.agents:
            wait = self._deadline(window) - due.ts
            if wait > 0:
                yield _after(wait, due.name)
                return
        has_panes = bool(board.boards(self.job.span.panes_of(window)))
        if kind == "time" and not has_panes and not counts.late:
            # No pane of any node has come: event time was ended (`--final`) before the window
            # began. The log does not reach it, unless the log continues.
            yield timer(at=due.ts + self.job.span.length, name=due.name)
            return
        yield from self._close(board, window, "time" if kind == "time" else "latency", due)
        let_go(board)
        board.save()

    def _end(self, board: Scoreboard, due: Timer) -> Iterator[Emit]:
        """Closes every open window that has a pane, and drops the others: nothing more comes."""
        for window in [*board.meta.open]:
            if board.boards(self.job.span.panes_of(window)):
                yield from self._close(board, window, "time", due)
            else:
                board.drop(window)
        let_go(board)
        board.save()

    def _board(self, reducer: str, table: Table, schedule: Any) -> Scoreboard:
        reducers = int(reducer.partition("/")[0])
        board = Scoreboard(self.job, self.members, table, reducers, self.dated)
        if schedule is not None:
            board.meta.schedule = schedule
        return board

    def _take(
        self, board: Scoreboard, part: PanePart, quiet: Sequence[range]
    ) -> tuple[list[int], list[int]]:
        """Takes panes in, except those that only `quiet` windows have. Returns the windows that
        late records open, and the closed windows to be corrected."""
        marks, opened = part.marks, list[int]()
        corrected: dict[int, None] = {}
        in_time = True
        for pane in panes_needed(self.job.span, part.pane, part.until, quiet):
            if pane != part.pane:
                marks = {node: mark.unread() for node, mark in part.marks.items()}
            windows, kept = board.mark(pane, marks)
            if kept:
                put(board.table, pane, part.partials, marks)
            in_time = not windows or any(not board.is_closed(number) for number in windows)
            for window in windows:
                counted = board.window(window)
                if counted is not None and counted.why and board.is_corrected(window):
                    counted.after += [(node, pane) for node in marks]
                    if any(mark.mark != "lost" for mark in marks.values()):
                        corrected[window] = None  # a lost pane changes no answer
        if part.accounted:
            add_to_accounts(board, part, in_time=in_time)
        for node in part.marks:
            for other, count in part.late.get(node, {}).items():
                new, changed = board.come_late(node, int(other), count)
                opened += new
                corrected |= dict.fromkeys(changed)
            for other, count in part.claimed.get(node, {}).items():
                corrected |= dict.fromkeys(board.claim(node, int(other), count))
        return opened, [*corrected]

    def _opened(self, window: int, event: Event) -> Iterator[Emit | SetTimer]:
        """Sets the timers of a window: for its end in event time (or the end of event time), and
        for its latency. Tells the agents that it is open."""
        end = self.job.span.bounds(window)[1]
        if self.arrival is not None:
            yield timer(at=max(event.ts, end + self.arrival), name=_timer_name("time", window))
        elif not self.agents:
            yield timer(at="end", name=AT_END)
        if self.job.latency is not None:
            # Only agents' messages have a wall-clock time. Without agents the timer checks again.
            ahead = self._deadline(window) - event.ts if self.agents else 0
            latency = microseconds(self.job.latency, "job: latency")
            yield _after(max(latency, ahead), _timer_name("latency", window))
        if self.agents and event.key.endswith("/0"):
            yield emit(f"{self.name}.told", key=str(window), value=ToldRecord(opened=window))

    def _deadline(self, window: int) -> int:
        """Returns when a window's latency is over on the wall clock, regardless of when it was
        opened. 0 if only the time of opening counts."""
        if self.job.span.axis != "time" or self.job.latency is None:
            return 0
        latency = microseconds(self.job.latency, "job: latency")
        return self.job.span.bounds(window)[1] + latency

    def _close(
        self, board: Scoreboard, window: int, reason: Reason, by: Event | Timer
    ) -> Iterator[Emit]:
        entry = board.window(window)
        assert entry is not None
        entry.why = reason
        board.close(window)
        combined = merged(self.job, board.table, window)
        yield from self._closed(board, window, by, combined).answers()
        if self.agents:
            notice = ToldRecord(closed=window, reducer=by.key, reducers=board.reducers)
            yield emit(f"{self.name}.told", key=str(window), value=notice)

    def _close_quiet(
        self, board: Scoreboard, windows: range, part: PanePart, by: Event
    ) -> Iterator[Emit]:
        """Closes windows without records, all at once. The agents are not told, since all that they
        had of these windows was taken in."""
        marks = {node: mark.unread() for node, mark in part.marks.items()}
        board.close_quiet(windows, marks)
        panes, job = self.job.span.panes_of(windows.start), self.job
        units = [(node, pane) for node in self.nodes for pane in panes]
        manifests = dict.fromkeys(units, manifest("empty", 0))
        yield from Closed(
            job,
            self.name,
            by.key,
            windows.start,
            WindowAccount(),
            "complete",
            Coverage(self.nodes, panes, dict.fromkeys(units, "empty")),
            dict.fromkeys(panes, marks),
            {},
            estimate(
                *(job, self.nodes, panes, manifests, {}),
                final=not self.dated,
                tardy=board.late_expected,
            )
            if job.kind
            else None,
            Missing({}),
            board.meta.part_of(board.meta.late),
            board.meta.part_of(board.meta.misdated),
            board.late_expected,
            partial(_next_time, board, by),
            windows=len(windows),
        ).answers()

    def _correct(self, board: Scoreboard, window: int, by: Event) -> Iterator[Emit]:
        """Gives a closed window's answers again, or for the first time if the window exists only
        because of late records."""
        entry = board.window(window)
        assert entry is not None
        entry.corrections += entry.coverage is not UNSET
        combined = merged_anew(self.job, board.table, self.job.span.panes_of(window))
        yield from self._closed(board, window, by, combined).answers()

    def _closed(
        self, board: Scoreboard, window: int, by: Event | Timer, combined: dict[str, Any]
    ) -> Closed:
        entry, panes = board.window(window), self.job.span.panes_of(window)
        assert entry is not None
        why: Any = entry.why
        return Closed(
            self.job,
            self.name,
            by.key,
            window,
            entry,
            why,
            board.coverage(window),
            board.boards(panes),
            combined,
            bounds(board, window, ended=why == "time"),
            missing_of(board, window, ended=why == "time"),
            board.meta.part_of(board.meta.late),
            board.meta.part_of(board.meta.misdated),
            board.late_expected,
            partial(_next_time, board, by),
        )


def _next_time(board: Scoreboard, by: Event | Timer) -> int:
    """Returns the time of the next answer."""
    return board.next_time(by.now if isinstance(by, Timer) else by.ts)


def _timer_name(kind: str, window: int) -> str:
    """Returns the name of a window's timer. Timers that are due at the same time fire in the order
    of their names, which is the order of their windows.

    >>> _timer_of(_timer_name("time", -7)), _timer_name("time", 9) < _timer_name("time", 10)
    (('time', -7), True)
    """
    return f"{kind}|{order_of(window)}"


def _timer_of(name: str) -> tuple[str, int]:
    """Returns the kind and the window of a timer."""
    kind, sep, number = name.partition("|")
    if not sep:  # set by an earlier version
        kind, _, number = name.partition(" ")
        return kind, int(number)
    return kind, int(number) - NEVER


def _after(microseconds: int, name: str) -> SetTimer:
    return timer(after=timedelta(microseconds=microseconds), name=name, clock="wall")
