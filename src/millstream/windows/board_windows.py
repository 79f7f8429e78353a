"""Which windows a reducer has: those that are open, those that are closed, those still to come.

window|WINDOW         a window (`accounts.Window`), while it is open and for a while after
meta                  `first`, `final`, `open`, `closed`, `kept`, `schedule` (see `scoreboard`)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from millstream.model.slate import Table
from millstream.windows.accounts import Window, window_entry, window_of
from millstream.windows.fidelity import Area, Error, Spatial
from millstream.windows.job import Job
from millstream.windows.members import Members
from millstream.windows.reducers import Schedule, in_force
from millstream.windows.window_counts import clear_shares

AHEAD = 1_000_000
"""Microseconds that the time of an answer may be after what has closed its window."""


@dataclass
class BoardWindows:
    """The windows of a reducer while one event is looked at."""

    job: Job
    members: Members
    table: Table
    reducers: int
    """How many reducers there are, this one among them."""
    dated: bool = False
    """Whether records say themselves where on the axis they are, and so may be late."""
    meta: dict[str, Any] = field(init=False)
    _windows: dict[int, Window] = field(init=False, default_factory=dict)
    """Those that were looked at."""

    @property
    def schedule(self) -> Schedule:
        found: Schedule = self.meta["schedule"]
        return found

    @property
    def by_node(self) -> bool:
        """Whether the fidelity asks for counts of each node; others need not pay for them."""
        return not isinstance(self.job.fidelity, Area | Spatial | Error | None)

    def is_closed(self, window: int) -> bool:
        """Whether nothing more is taken into the window."""
        if self.meta["final"] and self.first_pane(window) < self.meta["first"]:
            return True
        return any(first <= window < end for first, end in self.meta["closed"])

    def first_pane(self, window: int) -> int:
        return self.job.span.panes_of(window)[0]

    def has(self, window: int) -> bool:
        """Whether the window is there, open or closed, and of this reducer. One that begins before
        the first pane of all is there only if late records of it have come."""
        first = self.meta["first"]
        if first is None or not self.is_mine(window):
            return False
        return self.first_pane(window) >= first or self.window(window) is not None

    def is_mine(self, window: int) -> bool:
        return in_force(self.schedule, self.first_pane(window)) == self.reducers

    def window(self, number: int) -> Window | None:
        """A window's entry; None: it was not opened, or is long closed."""
        if number not in self._windows:
            stored = self.table.get(window_entry(number))
            if stored is None:
                return None
            self._windows[number] = window_of(stored)
        return self._windows[number]

    def looked_at(self) -> list[int]:
        """The open windows whose counts may have changed."""
        return [number for number in sorted(self._windows) if not self.is_closed(number)]

    def is_corrected(self, window: int) -> bool:
        """Whether a closed window's answer is given again when more comes."""
        if self.job.corrections == 0 or self.first_pane(window) < self.meta["kept"]:
            return False
        return not self.is_closed(window + self.job.corrections)

    def awaits(self, pane: int) -> bool:
        """Whether an open window may have the pane: also one that is not there yet, but none that
        is other reducers'. (A pane may come here only for the late records that came with it.)"""
        windows = self.job.span.windows_of(pane)
        return any(not self.is_closed(one) and self.is_mine(one) for one in windows)

    def next_time(self, now: int) -> int:
        """The time of the next answer, if it is this time now. Answers of one batch have times of
        their own, so that they come out in the order in which they are given: by window, then by
        key. They are not let run ahead by more than `AHEAD`."""
        began, last = self.meta.get("said", (now, now))
        if not began <= now <= last:
            began, last = now, now
        last = min(last + 1, now + AHEAD)
        self.meta["said"] = [began, last]
        return int(last)

    def drop(self, number: int) -> None:
        """The window is not there any more, as if it had never been opened."""
        self.meta["open"].remove(number)
        self.forget(number)
        if self.by_node:
            clear_shares(self.table, number)

    def forget(self, number: int) -> None:
        """Nobody asks for the window any more."""
        self._windows.pop(number, None)
        self.table.discard(window_entry(number))

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
        if self.by_node:
            clear_shares(self.table, number)
