"""Decides which panes an agent makes: it skips those that are not wanted or would be too late.

The root says which windows it has opened and closed. A pane is *cancelled* if all of its windows
are closed and will not be corrected (iMR, 3.3). When time is short, or only a sample is wanted,
`shedder` decides (3.4, 4.2). The deadline of a window is its latency after it was opened. If a
window ends while the agent runs, its deadline is its latency after that end, no matter when it is
opened. Otherwise a node that falls behind its log would open windows later and later, and never be
late.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from millstream.model.duration import SECOND, microseconds
from millstream.windows.job import Job
from millstream.windows.panes.message import Why
from millstream.windows.panes.shedder import Shedder

LAG = 2.0
"""An agent learns within this many seconds that a window was opened."""
REMEMBERED = 1_000
"""At most this many windows that the node has reached are remembered."""


class Windows(Protocol):
    """The root's windows, as far as they are known here: see `RootDecisions`."""

    def closed(self, window: int) -> bool: ...

    def opened(self, window: int) -> float | None: ...


class Pacing:
    """Decides for each pane, when it begins and while it is made. Used by one thread."""

    def __init__(
        self,
        job: Job,
        node: str,
        windows: Windows,
        clock: Callable[[], float],
        wall: Callable[[], int],
    ) -> None:
        """`clock` is in seconds and only goes forward; `wall` is the time in microseconds."""
        self._job, self._windows, self._clock, self._wall = job, windows, clock, wall
        latency = job.latency
        self._latency = None if latency is None else microseconds(latency, "job: latency") / SECOND
        self._shedder = Shedder(job, node)
        self._skip_to: int | None = None
        self._live_from = wall()
        """Windows that end after this are live; the others belong to an old log."""
        self._reached: dict[int, float] = {}
        """When this node reached a window, by `clock`."""
        self._pane: int | None = None
        self._given_up = False

    def choose(self, pane: int, *, later: bool = False) -> Why | None:
        """Returns the reason not to make a pane that begins now; None if it must be made. With
        `later` it is not made now, but may be made later."""
        now = self._clock()
        if self._pane is not None:
            self._shedder.ended(self._pane, now, made=not self._given_up)
        self._pane = pane
        self._shedder.begin(pane, now)
        for window in self._job.span.windows_of(pane):
            self._reached.setdefault(window, now)
        while len(self._reached) > REMEMBERED:
            del self._reached[next(iter(self._reached))]
        why = self._why_not(pane) or ("drawn" if later else None)
        self._given_up = why is not None
        return why

    def look(self, pane: int, part_done: float) -> Why | None:
        """Returns the reason to give up the current pane; None if there is none. `part_done` is the
        fraction of the pane that was read."""
        if self._given_up:
            return None
        why: Why | None = "cancelled" if self.cancelled(pane) else None
        if why is None and self._latency is not None:
            until = self._shedder.decide(self._clock(), pane, part_done, self._deadline)
            if until is not None:
                self._skip_to, why = until, "shed"
        self._given_up = why is not None
        return why

    def waited(self, seconds: float) -> None:
        """Notes that nothing was read for `seconds`: there was nothing to read, or reading was
        paused."""
        self._shedder.waited(seconds)

    def _why_not(self, pane: int) -> Why | None:
        if self.cancelled(pane):
            return "cancelled"
        if not self._shedder.drawn(pane):
            return "drawn"
        if self._skip_to is not None and pane < self._skip_to:
            return "shed"
        self._skip_to = None
        if self._latency is None:
            return None
        self._skip_to = self._shedder.decide(self._clock(), pane, 0.0, self._deadline)
        return None if self._skip_to is None else "shed"

    def cancelled(self, pane: int) -> bool:
        """True if the root has closed all windows that have the pane, and will not correct them."""
        windows = self._job.span.windows_of(pane)
        return all(map(self._windows.closed, windows)) and not any(map(self._corrected, windows))

    def _corrected(self, window: int) -> bool:
        """True if a closed window is corrected by panes that come now. With a latency or a fidelity
        the panes of closed windows are given up: the node catches up, or is spared the work."""
        job = self._job
        if not job.corrections or job.latency is not None or job.fidelity is not None:
            return False
        return not self._windows.closed(window + job.corrections)

    def _deadline(self, pane: int) -> float | None:
        """Returns the latest deadline of the windows of the pane that are not closed. None if there
        are none, or if the opening of one is not known."""
        assert self._latency is not None
        opened = [
            self._opened(window)
            for window in self._job.span.windows_of(pane)
            if not self._windows.closed(window)
        ]
        known = [time for time in opened if time is not None]
        return max(known) + self._latency if known and len(known) == len(opened) else None

    def _opened(self, window: int) -> float | None:
        """Returns when a window was opened, or when a live one ends; None if the root has not
        reported it yet."""
        end = self._job.span.bounds(window)[1]
        if self._job.span.axis == "time" and end >= self._live_from:
            return self._clock() + (end - self._wall()) / SECOND
        opened, reached = self._windows.opened(window), self._reached.get(window)
        if opened is None:
            return None
        if reached is not None:
            opened = min(opened, max(reached, opened - LAG))
        return opened
