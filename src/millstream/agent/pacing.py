"""Which panes an agent makes: none that is not wanted any more, none that would be too late.

The root says which windows it has opened and closed; a pane all of whose windows are closed is
*cancelled* (iMR, 3.3). When time is short, or only a sample is asked for, `windows.shedding`
decides (3.4, 4.2). A window's deadline is its latency after it was opened. Of a window that ends
while the agent runs it is its latency after that end, whoever opens it and when: a node that falls
behind its log would else open windows later and later, and never be late.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from millstream.model.duration import SECOND, microseconds
from millstream.windows.job import Job
from millstream.windows.message import Why
from millstream.windows.shedding import Shedder

LAG = 2.0
"""Seconds that it takes, at most, to learn of a window that was opened."""
REMEMBERED = 1_000


class Windows(Protocol):
    """What is known of the root's windows: see `told.Told`."""

    def closed(self, window: int) -> bool: ...

    def opened(self, window: int) -> float | None: ...


class Pacing:
    """Decides for each pane, when it begins and while it is made. One thread."""

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
        """Windows that end later are awaited while this runs; others lie in a log of the past."""
        self._reached: dict[int, float] = {}
        """When this node came to a window."""
        self._pane: int | None = None
        self._given_up = False

    def choose(self, pane: int, *, later: bool = False) -> Why | None:
        """Why a pane that begins now is not to be made, or only `later`; None: it is."""
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
        """Why the pane that is being made, so much of it by now, is to be given up."""
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
        """There was nothing to read, or it was paused, for so long."""
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
        """Whether the root has closed all windows that have a pane."""
        return all(map(self._windows.closed, self._job.span.windows_of(pane)))

    def _deadline(self, pane: int) -> float | None:
        """The latest of the open windows that have the pane."""
        assert self._latency is not None
        opened = [
            self._opened(window)
            for window in self._job.span.windows_of(pane)
            if not self._windows.closed(window)
        ]
        known = [one for one in opened if one is not None]
        return max(known) + self._latency if known and len(known) == len(opened) else None

    def _opened(self, window: int) -> float | None:
        """When a window was opened, or ends; None: the root has not said so yet."""
        end = self._job.span.bounds(window)[1]
        if self._job.span.axis == "time" and end >= self._live_from:
            return self._clock() + (end - self._wall()) / SECOND
        opened, reached = self._windows.opened(window), self._reached.get(window)
        if opened is None:
            return None
        if reached is not None:
            opened = min(opened, max(reached, opened - LAG))
        return opened
