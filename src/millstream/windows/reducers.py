"""How many reducers there are, and from which window on (iMR, section 4.1).

"iMR may dynamically add (or subtract) reducers during processing." A window belongs wholly to the
number that is in force at its first pane. So a new number must hold from a pane on that no message
has reached, and every message must be split by a schedule that has all changes up to its panes.

DESIGN
------
The map `Saying` takes a message at time t apart: how far it goes is told to `NAME.reducers`, which
has one key, at t + 1; the message itself goes on to `NAME.ledger`, also of one key, at t + 3. In
between, at t + 2, `NAME.reducers` tells the ledger the schedule, if that is new. A change that
comes at time s is told at s + 2. What the ledger has taken in by then came before s, so that
`NAME.reducers` had heard of it at s at the latest, and puts the change, which it hears of at s + 1,
beyond it; what comes at s or later is taken in from s + 3 on, by the new schedule. No question is
asked and nothing is held up, and the graph has no cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from millstream.errors import FunctionError
from millstream.model.event import Emit, Event, emit
from millstream.model.function import takes
from millstream.windows.checked import check
from millstream.windows.job import Job
from millstream.windows.members import Members

Schedule = list[list[int]]
"""[first pane, reducers], in order: a window that begins there or later is of so many reducers."""
BEGINNING = -(1 << 62)
"""Before every pane."""
NEVER = 1 << 62
"""After every pane."""
MOST = 1_000
HOPS = 3
"""Microseconds after which a message goes on: after all that it makes `NAME.reducers` tell."""


def order_of(pane: int) -> str:
    """A text whose order is that of panes. The messages of a batch have one time, and events of one
    time are taken in the order of their bytes: with this field, the first, that of their panes."""
    return f"{pane + NEVER:020d}"


def in_force(schedule: Schedule, pane: int) -> int:
    """The number of reducers of a window that begins at a pane.

    >>> [in_force([[BEGINNING, 1], [7, 4]], pane) for pane in (6, 7)]
    [1, 4]
    """
    return next(number for first, number in reversed(schedule) if first <= pane)


def schemes(schedule: Schedule, first: int, last: int) -> list[int]:
    """The numbers of reducers of all windows that begin between two panes, both included."""
    found = {in_force(schedule, first)}
    found.update(number for start, number in schedule if first < start <= last)
    return sorted(found)


@dataclass(frozen=True)
class Saying:
    """The map over what nodes tell: where they are, to `NAME.reducers`; all, to `NAME.ledger`.

    Neither needs to know by which way a message came: what it says of its `tree` is ignored."""

    name: str
    nodes: tuple[str, ...]
    job: Job
    __signature__ = takes("event")

    @property
    def __modules__(self) -> set[str]:
        return self.job.modules

    @cached_property
    def members(self) -> Members:
        return Members(self.nodes)

    def __call__(self, event: Event) -> Iterator[Emit]:
        said, message = f"{self.name}.said", event.value
        if isinstance(message, dict) and "reducers" in message:
            yield emit(said, key="", value={"reducers": _number(message["reducers"])})
            return
        check(self.name, self.job, self.members, message)
        yield emit(said, key="", value={"until": message["until"]})
        ordered = {"_order": order_of(message["pane"]), **message}
        yield emit(f"{self.name}.coming", key="", value=ordered, ts=event.ts + HOPS)


@dataclass
class Agreed:
    """What is known of the reducers, and how far the nodes are."""

    defined: int = 0
    """The number that the job's definition said when it was last looked at."""
    schedule: Schedule = field(default_factory=list)
    reached: int = BEGINNING
    """The furthest pane that a message has reached."""
    trees: dict[str, int] = field(default_factory=dict)
    """The pane that each tree had reached, in a store of before there was a ledger; then empty."""


@dataclass(frozen=True)
class Reducers:
    """The update `NAME.reducers`."""

    job: Job
    name: str
    __signature__ = takes("event", "slate")

    @property
    def __modules__(self) -> set[str]:
        return self.job.modules

    def __call__(self, event: Event, agreed: Agreed) -> Iterator[Emit]:
        said = event.value
        new, carried = not agreed.schedule, bool(agreed.trees)
        if new:
            agreed.schedule = [[BEGINNING, self.job.reducers]]
            agreed.defined = self.job.reducers
        if carried:
            agreed.reached = max(agreed.reached, *agreed.trees.values())
            agreed.trees = {}
        if "until" in said:
            agreed.reached = max(agreed.reached, said["until"])
        changed = False
        if agreed.defined != self.job.reducers:  # the application was started with another number
            agreed.defined = self.job.reducers
            changed = _change(agreed, self.job.reducers)
        if "reducers" in said:
            changed = _change(agreed, said["reducers"]) or changed
        if new or carried or changed:
            yield emit(key="", value={"schedule": agreed.schedule, "carried": carried})


def _change(agreed: Agreed, number: int) -> bool:
    """Put another number in force beyond what any node has reached; whether anything is new."""
    if agreed.schedule[-1][1] == number:
        return False
    # A window is opened by who reaches its first pane, so the next one is the first that is free.
    start = BEGINNING if agreed.reached == BEGINNING else agreed.reached + 1
    kept = [entry for entry in agreed.schedule if entry[0] < start]
    if kept and kept[-1][1] == number:
        agreed.schedule = kept
    else:
        agreed.schedule = [*kept, [start, number]]
    return True


def _number(given: object) -> int:
    if type(given) is not int or not 1 <= given <= MOST:
        raise FunctionError(
            f"the number of reducers must be a whole number from 1 to {MOST}; got {given!r}"
        )
    return given
