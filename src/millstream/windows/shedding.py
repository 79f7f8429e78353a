"""Which panes a node gives up when time is short (iMR, sections 3.4 and 4.2).

A node watches how long its panes take and gives up those that would come too late, so that what it
works on is used. It estimates the work of a pane as a moving average that leans to the recent
(`ALPHA`), for the first time in a pane after `FIRST` of it, and looks at it every `EVERY` seconds.

- `order`, as in the paper: a pane that is expected to end after its deadline is cancelled, and so
  are those after it up to the next one that can be in time.
- `drawn`: each block has a threshold, and panes of a rank under it are made (see `drawing`). It is
  planned when the block begins, from how long panes took before, and only lowered in the block.
  What is left is a simple random sample, as far as the threshold does not depend on what the drawn
  panes hold: a plan that is kept does not; one that is lowered in the middle of a block does a
  little, since panes with many records take long. How many records each pane has is known to who
  estimates from the sample (see `sampling`), and takes most of that out again.

Pure: time is an argument, in seconds of one clock, the deadlines' too. Whoever asks after every
piece of work that takes no longer than `headroom` never ends a pane after its deadline.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import ceil, sqrt

from millstream.windows.drawing import block_of, rank
from millstream.windows.fidelity import rounds
from millstream.windows.job import Job

ALPHA = 0.8
"""How much of an estimate is the newest observation."""
STEADY = 0.2
"""The same for the plan of a block, which is lowered by every pane that happens to be long and not
raised again by a short one: it needs an estimate that wavers less."""
FIRST = 0.3
"""The part of a pane that is made before its first estimate."""
EVERY = 2.0
"""Seconds between two looks at it."""
NEAR = 1.4
"""How far apart the two estimates may be before the load is taken to have changed."""
MARGIN = 0.5
"""How much the work of a pane differs from the estimate, as a part of it: the time that a plan
leaves is this times the square root of the panes in it."""
LEAST = 0.01
"""The part of a pane that an observation needs: less is kept for the next one."""

Deadline = Callable[[int], float | None]
"""The latest deadline of the open windows that have a pane; None: there is none, or none yet."""


@dataclass
class Shedder:
    """What a node makes of its panes, and what it gives up."""

    job: Job
    node: str
    headroom: float = 0.5
    """Seconds that a pane must be ready before its deadline: for sending, and for the work between
    two questions."""
    made: float | None = None
    """Seconds of work that a pane is expected to take; None: not yet known."""
    steady: float | None = None
    """The same, over more panes: for plans."""
    skipped: float = 0.0
    """The same of a pane that is only read over."""
    thresholds: dict[int, int] = field(default_factory=dict)
    """By block, for the last blocks: panes of a rank under it are made."""
    _pane: int | None = None
    _began: float = 0.0
    _idle: float = 0.0
    _seen: tuple[float, float] = (0.0, 0.0)
    """The work and the part of the pane at the last observation."""
    _looked: float | None = None
    _part: float = 0.0
    """How much of the pane was made when it was last asked about."""

    def drawn(self, pane: int) -> bool:
        """Whether a pane is to be made; if not, it is given up before it begins."""
        return self._rank(pane) < self.threshold(pane)

    def threshold(self, pane: int) -> int:
        """The ranks under this one are made in the pane's block."""
        return self.thresholds.get(block_of(pane, self._panes), self._asked())

    def begin(self, pane: int, now: float) -> None:
        """A pane begins to be made, or to be read over."""
        self._pane, self._began, self._idle = pane, now, 0.0
        self._seen, self._looked, self._part = (0.0, 0.0), None, 0.0

    def waited(self, seconds: float) -> None:
        """The node had nothing to do for so long: that is no work."""
        self._idle += seconds

    def decide(self, now: float, pane: int, part_done: float, deadline: Deadline) -> int | None:
        """Whether to go on with the pane of which so much is made: None. Else it is to be given up,
        with all that follow up to the pane that is returned.

        To be asked when a pane begins and after every piece of work; it looks at the estimate only
        when it is time.
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
        """A pane was made, or read over. One that was given up in the middle tells nothing."""
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
        """The threshold that the job asks for."""
        return drawn_panes(self.job.drawn_part or 1.0, self._panes)

    def _is_time(self, now: float, part_done: float) -> bool:
        """When a pane begins and then every `EVERY` seconds, but not before `FIRST` of it."""
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
        """The work of a pane for a plan: steady, unless the load has changed."""
        made = self.made or 0.0
        return min(max(self.steady or made, made / NEAR), made * NEAR)

    def _next(self, now: float, pane: int, deadline: Deadline) -> int:
        """The next pane that can be in time, if the ones before it are read over."""
        at, work = now, self.made or 0.0
        last = pane + 2 * self._panes
        for later in range(pane + 1, last):
            due = deadline(later)
            if self.drawn(later) and (due is None or at + work + self.headroom <= due):
                return later
            at += self.skipped
        return last

    def _lower(self, pane: int, threshold: int) -> None:
        if self.job.shed != "drawn":
            return
        block = block_of(pane, self._panes)
        self.thresholds[block] = min(threshold, self.threshold(pane))
        for old in [one for one in self.thresholds if one < block - 2]:
            del self.thresholds[old]

    def _planned(self, now: float, pane: int, part_done: float, deadline: Deadline) -> int:
        """The greatest threshold with which all that is drawn of the block can be in time."""
        work = self._expected()
        rest = range(pane, (block_of(pane, self._panes) + 1) * self._panes)
        panes = [(self._rank(one), deadline(one)) for one in rest]

        def too_many(threshold: int) -> bool:
            at, count = now - (part_done * work if panes[0][0] < threshold else 0.0), 0
            for of, due in panes:
                if of >= threshold:
                    at += self.skipped
                    continue
                at, count = at + work, count + 1
                ready = at + self.headroom + MARGIN * work * sqrt(count)
                if due is not None and ready > due:
                    return True
            return False

        # More panes never take less time: the first threshold that is too great is found by halves.
        asked = self.threshold(pane)
        return bisect_left(range(1, asked + 1), True, key=too_many)


def drawn_panes(part: float, panes: int) -> int:
    """How many panes of a block are drawn for a part of them.

    >>> drawn_panes(0.5, 20), drawn_panes(0.35, 20), drawn_panes(0.01, 20)
    (10, 7, 1)
    """
    return min(panes, ceil(part * panes - 1e-9))  # 0.35 * 20 is a little over 7


def is_drawn(job: Job, node: str, pane: int) -> bool:
    """Whether a pane of a node is drawn, if the job's area is of drawn ones."""
    part, panes = job.drawn_part, job.span.panes
    return part is not None and rank(job.seed, node, pane, panes) < drawn_panes(part, panes)


def drawn_in(job: Job, nodes: Sequence[str], panes: range) -> int:
    """How many of these panes the nodes draw together. (A window that does not begin with a block
    has parts of two, of which a little more or less may be drawn than the job says.)"""
    if job.drawn_part is None:
        return 0
    if panes.start % job.span.panes == 0:
        return len(nodes) * drawn_panes(job.drawn_part, job.span.panes)
    return sum(is_drawn(job, node, pane) for node in nodes for pane in panes)


def round_of(job: Job, node: str, pane: int) -> int:
    """The round of `Error` in which a node makes a pane: 0 is the first."""
    of = rank(job.seed, node, pane, job.span.panes)
    return next(number for number, end in enumerate(rounds(job.span.panes)) if of < end)
