"""The windows of a reducer: the open ones, the closed ones, and those still to come.

window|WINDOW         a window (`WindowAccount`), while it is open and for a while after
meta                  `first`, `final`, `open`, `closed`, `kept`, `schedule` (see `scoreboard`)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from millstream.model.slate import Table
from millstream.windows.accounts import WindowAccount, window_entry, window_of
from millstream.windows.board.board_meta import BoardMeta
from millstream.windows.board.window_counts import clear_shares
from millstream.windows.fidelity import Area, Error, Spatial
from millstream.windows.members import Members
from millstream.windows.reducers import Schedule, in_force

if TYPE_CHECKING:
    from millstream.windows.job import Job

AHEAD = 1_000_000
"""An answer's time may be at most this many microseconds after the event that closed its window."""


@dataclass
class BoardWindows:
    """The windows of a reducer while one event is processed."""

    job: Job
    members: Members
    table: Table
    reducers: int
    """The number of reducers, including this one."""
    dated: bool = False
    """True if records carry their own position on the axis, and so may be late."""
    meta: BoardMeta = field(init=False)
    _windows: dict[int, WindowAccount] = field(init=False, default_factory=dict)
    """The windows that were read so far."""

    @property
    def schedule(self) -> Schedule:
        return self.meta.schedule

    @property
    def by_node(self) -> bool:
        """True if the fidelity needs counts for each node. Other jobs do not pay for them."""
        return not isinstance(self.job.fidelity, Area | Spatial | Error | None)

    def is_closed(self, window: int) -> bool:
        """True if the window takes in nothing more."""
        if self.meta.is_before(self.first_pane(window)):
            return True
        return any(first <= window < end for first, end in self.meta.closed)

    def first_pane(self, window: int) -> int:
        return self.job.span.panes_of(window)[0]

    def has(self, window: int) -> bool:
        """True if the window exists, open or closed, and belongs to this reducer. A window that
        begins before the very first pane exists only if late records of it have come."""
        first = self.meta.first
        if first is None or not self.is_mine(window):
            return False
        return self.first_pane(window) >= first or self.window(window) is not None

    def is_mine(self, window: int) -> bool:
        return in_force(self.schedule, self.first_pane(window)) == self.reducers

    def window(self, number: int) -> WindowAccount | None:
        """Returns a window's entry. None: it was not opened, or was closed long ago."""
        if number not in self._windows:
            stored = self.table.get(window_entry(number))
            if stored is None:
                return None
            self._windows[number] = window_of(stored)
        return self._windows[number]

    def looked_at(self) -> list[int]:
        """Returns the open windows whose counts may have changed."""
        return [number for number in sorted(self._windows) if not self.is_closed(number)]

    def is_corrected(self, window: int) -> bool:
        """True if a closed window is answered again when more of it comes."""
        if self.job.corrections == 0 or self.first_pane(window) < self.meta.kept:
            return False
        return not self.is_closed(window + self.job.corrections)

    def awaits(self, pane: int) -> bool:
        """True if an open window may have the pane. That includes windows not opened yet, but not
        those of other numbers of reducers. (A pane may come here only because of late records that
        came with it.)"""
        windows = self.job.span.windows_of(pane)
        return any(not self.is_closed(window) and self.is_mine(window) for window in windows)

    def next_time(self, now: int) -> int:
        """Returns the time of the next answer, given the current time. The times of a batch's
        answers differ, so that the answers come out in the order in which they are given: by
        window, then by key. They run ahead by at most `AHEAD`."""
        began, last = self.meta.said or (now, now)
        if not began <= now <= last:
            began, last = now, now
        last = min(last + 1, now + AHEAD)
        self.meta.said = [began, last]
        return last

    def drop(self, number: int) -> None:
        """Removes an open window, as if it had never been opened."""
        self.meta.open.remove(number)
        self.forget(number)
        if self.by_node:
            clear_shares(self.table, number)

    def forget(self, number: int) -> None:
        """Deletes the entry of a window that is no longer needed."""
        self._windows.pop(number, None)
        self.table.discard(window_entry(number))

    def close(self, number: int) -> None:
        """Closes an open window. Its entry stays for a while."""
        self.meta.open.remove(number)
        self.close_all(range(number, number + 1))
        if self.by_node:
            clear_shares(self.table, number)

    def close_all(self, windows: range) -> None:
        """Records windows as closed. None of them is in the list of open ones."""
        ranges = sorted([*self.meta.closed, [windows.start, windows.stop]])
        joined: list[list[int]] = []
        for first, end in ranges:
            if joined and joined[-1][1] == first:
                joined[-1][1] = end
            else:
                joined.append([first, end])
        self.meta.closed = joined
