"""Decides which panes a node gives up when time is short (iMR, sections 3.4 and 4.2).

A node measures how long its panes take, and gives up those that would come too late, so that it
works only on panes that will be used. It estimates the work of a pane as a moving average that
favours recent panes (`ALPHA`). Within a pane the first estimate comes after `FIRST` of it, then one
every `EVERY` seconds.

- `order`, as in the paper: a pane that is expected to end after its deadline is cancelled, and so
  are those after it, up to the next one that can be in time.
- `drawn`: each block has a threshold, and panes with a rank under it are made (see `pane_rank`). It
  is planned when the block begins, from the time that earlier panes took, and only lowered within
  the block. The panes made are a simple random sample, as long as the threshold does not depend on
  the contents of the drawn panes. If the plan is kept, it does not. If the plan is lowered in the
  middle of a block, it does slightly, since panes with many records take long. The estimate from
  the sample uses the number of records in each pane (see `stratified_sample`), which removes most
  of that effect.

Pure: time is an argument, in seconds of the same clock as the deadlines. If `decide` is called
after every piece of work, and none takes longer than `headroom`, no pane ends after its deadline.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt
from typing import TYPE_CHECKING

from millstream.windows.fidelity import rounds
from millstream.windows.panes.pane_rank import block_of, rank

if TYPE_CHECKING:
    from millstream.windows.job import Job

ALPHA = 0.8
"""The weight of the newest observation in an estimate."""
STEADY = 0.2
"""The same weight for the plan of a block. The plan is lowered by every pane that happens to be
long, and not raised again by a short one, so it needs an estimate that varies less."""
FIRST = 0.3
"""The part of a pane that is made before its first estimate."""
EVERY = 2.0
"""Seconds between two checks of the estimate."""
NEAR = 1.4
"""If the ratio of the two estimates is at least this, the load counts as changed."""
MARGIN = 0.5
"""The deviation of a pane's work from the estimate, as a share of it. The slack of a plan is this
share of a pane's work, times the square root of the number of panes in the plan."""
LEAST = 0.01
"""The least part of a pane for an observation. A smaller part counts with the next observation."""

Deadline = Callable[[int], float | None]
"""Returns the latest deadline of the open windows that have a pane. None: there is no deadline, or
it is not known yet."""


@dataclass
class Shedder:
    """Decides which panes a node makes, and which it gives up."""

    job: Job
    node: str
    headroom: float = 0.5
    """Seconds before its deadline at which a pane must be ready: for sending it, and for the work
    between two calls of `decide`."""
    made: float | None = None
    """The expected seconds of work for a pane. None: not yet known."""
    steady: float | None = None
    """The same averaged over more panes, for plans."""
    skipped: float = 0.0
    """The expected seconds for a pane that is only read over."""
    thresholds: dict[int, int] = field(default_factory=dict)
    """The thresholds of the last blocks: panes with a rank under it are made."""
    _pane: int | None = None
    _began: float = 0.0
    _idle: float = 0.0
    _seen: tuple[float, float] = (0.0, 0.0)
    """The work and the part of the pane at the last observation."""
    _looked: float | None = None
    _part: float = 0.0
    """The part of the pane that was made at the last call of `decide`."""

    def drawn(self, pane: int) -> bool:
        """True if a pane must be made. Otherwise it is given up before it begins."""
        return self._rank(pane) < self.threshold(pane)

    def threshold(self, pane: int) -> int:
        """Returns the threshold of the pane's block: lower ranks are made."""
        return self.thresholds.get(block_of(pane, self._panes), self._asked())

    def begin(self, pane: int, now: float) -> None:
        """Records that a pane begins to be made, or to be read over."""
        self._pane, self._began, self._idle = pane, now, 0.0
        self._seen, self._looked, self._part = (0.0, 0.0), None, 0.0

    def waited(self, seconds: float) -> None:
        """Records that the node was idle for this long. Idle time is not work."""
        self._idle += seconds

    def decide(self, now: float, pane: int, part_done: float, deadline: Deadline) -> int | None:
        """Returns None to continue with the pane, of which `part_done` is made. Otherwise returns
        the next pane to make: this pane, and all between the two, must be given up.

        Call it when a pane begins and after every piece of work. It checks the estimate only when
        that is due.
        """
        if pane != self._pane:
            self.begin(pane, now)
        self._part = part_done
        self._observe(now, part_done)
        due = deadline(pane)
        if self.job.shed == "never" or due is None:
            return None
        if now + self.headroom >= due:
            self._lower(pane, self._rank(pane))
            return self._next(now, pane, deadline)
        if self.made is None or not self._is_time(now, part_done):
            return None
        if self.job.shed == "drawn":
            self._lower(pane, self._planned(now, pane, part_done, deadline))
            return None if self.drawn(pane) else self._next(now, pane, deadline)
        in_time = now + (1 - part_done) * self.made + self.headroom <= due
        return None if in_time else self._next(now, pane, deadline)

    def ended(self, pane: int, now: float, *, made: bool = True) -> None:
        """Records that a pane was made, or read over. A pane given up in the middle is not used."""
        if pane != self._pane or (self._part > 0 and not made):
            return
        self._pane = None
        work = now - self._began - self._idle
        if not made:
            self.skipped = ALPHA * work + (1 - ALPHA) * self.skipped
            return
        before = work if self.steady is None else self.steady
        self.steady = STEADY * work + (1 - STEADY) * before
        done, part = self._seen
        if part == 0.0 or 1 - part >= FIRST:
            self._learn((work - done) / (1 - part))

    @property
    def _panes(self) -> int:
        return self.job.span.panes

    def _rank(self, pane: int) -> int:
        return rank(self.job.seed, self.node, pane, self._panes)

    def _asked(self) -> int:
        """Returns the threshold that the job's fidelity requires."""
        return drawn_panes(self.job.drawn_part or 1.0, self._panes)

    def _is_time(self, now: float, part_done: float) -> bool:
        """True when a pane begins, and then every `EVERY` seconds, but not before `FIRST` of it."""
        if self._looked is not None and (part_done < FIRST or now - self._looked < EVERY):
            return False
        self._looked = now
        return True

    def _observe(self, now: float, part_done: float) -> None:
        work, (before, part) = now - self._began - self._idle, self._seen
        first = part == 0.0 and part_done >= FIRST
        again = part > 0.0 and work - before >= EVERY and part_done - part >= LEAST
        if first or again:
            self._learn((work - before) / (part_done - part))
            self._seen = (work, part_done)

    def _learn(self, seconds: float) -> None:
        self.made = seconds if self.made is None else ALPHA * seconds + (1 - ALPHA) * self.made

    def _expected(self) -> float:
        """Returns the work of a pane for a plan: the steady estimate, unless the load has
        changed."""
        made = self.made or 0.0
        return min(max(self.steady or made, made / NEAR), made * NEAR)

    def _next(self, now: float, pane: int, deadline: Deadline) -> int:
        """Returns the next pane that can be in time, if the panes before it are only read over."""
        time, work = now, self.made or 0.0
        last = pane + 2 * self._panes
        for later in range(pane + 1, last):
            due = deadline(later)
            if self.drawn(later) and (due is None or time + work + self.headroom <= due):
                return later
            time += self.skipped
        return last

    def _lower(self, pane: int, threshold: int) -> None:
        if self.job.shed != "drawn":
            return
        block = block_of(pane, self._panes)
        self.thresholds[block] = min(threshold, self.threshold(pane))
        for old in [number for number in self.thresholds if number < block - 2]:
            del self.thresholds[old]

    def _planned(self, now: float, pane: int, part_done: float, deadline: Deadline) -> int:
        """Returns the greatest threshold with which all drawn panes of the block can be in time."""
        work = self._expected()
        rest = range(pane, (block_of(pane, self._panes) + 1) * self._panes)
        panes = [(self._rank(later), deadline(later)) for later in rest]

        def too_many(threshold: int) -> bool:
            time, count = now - (part_done * work if panes[0][0] < threshold else 0.0), 0
            for pane_rank, due in panes:
                if pane_rank >= threshold:
                    time += self.skipped
                    continue
                time, count = time + work, count + 1
                ready = time + self.headroom + MARGIN * work * sqrt(count)
                if due is not None and ready > due:
                    return True
            return False

        # More panes never take less time, so a binary search finds the first threshold that is too
        # great.
        current = self.threshold(pane)
        return bisect_left(range(1, current + 1), True, key=too_many)


def drawn_panes(part: float, panes: int) -> int:
    """Returns how many panes of a block are drawn, if the job requires `part` of them.

    >>> drawn_panes(0.5, 20), drawn_panes(0.35, 20), drawn_panes(0.01, 20)
    (10, 7, 1)
    """
    return min(panes, ceil(part * panes - 1e-9))  # 0.35 * 20 is a little over 7


def is_drawn(job: Job, node: str, pane: int) -> bool:
    """True if the job's fidelity is an area of drawn panes, and this pane of the node is drawn."""
    part, panes = job.drawn_part, job.span.panes
    return part is not None and rank(job.seed, node, pane, panes) < drawn_panes(part, panes)


def drawn_in(job: Job, nodes: Sequence[str], panes: range) -> int:
    """Counts the drawn panes of all nodes among these panes. (A window that does not begin with a
    block has parts of two blocks. Slightly more or fewer of its panes may be drawn than the job
    requires.)"""
    if job.drawn_part is None:
        return 0
    if panes.start % job.span.panes == 0:
        return len(nodes) * drawn_panes(job.drawn_part, job.span.panes)
    return sum(is_drawn(job, node, pane) for node in nodes for pane in panes)


def round_of(job: Job, node: str, pane: int) -> int:
    """Returns the round of `Error` in which a node makes a pane, from 0."""
    pane_rank = rank(job.seed, node, pane, job.span.panes)
    return next(number for number, end in enumerate(rounds(job.span.panes)) if pane_rank < end)
