"""How many reducers there are, and from which window on (iMR, section 4.1).

"iMR may dynamically add (or subtract) reducers during processing." A window belongs wholly to the
number that is in force at its first pane. So the trees must agree from which pane on a new number
holds, and none of them may have sent anything of a window from there on before it knows.

DESIGN
------
The map `Saying` takes a message at time t apart: that a tree has reached a pane goes to
`NAME.reducers`, one key for all trees, at t + 1; the message itself goes on to `NAME.taking` at
t + 3. In between, at t + 2, `NAME.reducers` tells a tree that it did not know the schedule, and all
trees a new one. A change that comes at time s is told at s + 2. Whatever a tree has taken in before
that came before s, so that `NAME.reducers` had heard of it: the change is put beyond it. No
question is asked and nothing is held up, and the graph has no cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from millstream.errors import FunctionError
from millstream.model.event import Emit, Event, emit
from millstream.model.function import takes
from millstream.windows.checked import check
from millstream.windows.job import Job

Schedule = list[list[int]]
"""[first pane, reducers], in order: a window that begins there or later is of so many reducers."""
BEGINNING = -(1 << 62)
"""Before every pane."""
MOST = 1_000
HOPS = 3
"""Microseconds after which a message goes on: after all that it makes `NAME.reducers` tell."""


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
    """The map over what nodes tell: where they are, to `NAME.reducers`; all, to `NAME.taking`."""

    name: str
    nodes: tuple[str, ...]
    job: Job
    __signature__ = takes("event")

    @property
    def __modules__(self) -> set[str]:
        return self.job.modules

    def __call__(self, event: Event) -> Iterator[Emit]:
        said, message = f"{self.name}.said", event.value
        if isinstance(message, dict) and "reducers" in message:
            yield emit(said, key="", value={"reducers": _number(message["reducers"])})
            return
        check(self.name, self.job, self.nodes, message)
        yield emit(said, key="", value={"tree": event.key, "until": message["until"]})
        yield emit(f"{self.name}.coming", ts=event.ts + HOPS)


@dataclass
class Agreed:
    """What the trees have agreed on."""

    defined: int = 0
    """The number that the job's definition said when it was last looked at."""
    schedule: Schedule = field(default_factory=list)
    trees: dict[str, int] = field(default_factory=dict)
    """The pane that each tree has reached."""


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
        if not agreed.schedule:
            agreed.schedule = [[BEGINNING, self.job.reducers]]
            agreed.defined = self.job.reducers
        new = "tree" in said and said["tree"] not in agreed.trees
        if "tree" in said:
            tree, until = said["tree"], said["until"]
            agreed.trees[tree] = max(until, agreed.trees.get(tree, until))
        changed = False
        if agreed.defined != self.job.reducers:  # the application was started with another number
            agreed.defined = self.job.reducers
            changed = _change(agreed, self.job.reducers)
        if "reducers" in said:
            changed = _change(agreed, said["reducers"]) or changed
        for tree in agreed.trees if changed else [said["tree"]] if new else []:
            yield emit(key=tree, value={"schedule": agreed.schedule})


def _change(agreed: Agreed, number: int) -> bool:
    """Put another number in force beyond what any tree has reached; whether anything is new."""
    if agreed.schedule[-1][1] == number:
        return False
    # A window is opened by who reaches its first pane, so the next one is the first that is free.
    start = max(agreed.trees.values()) + 1 if agreed.trees else BEGINNING
    kept = [one for one in agreed.schedule if one[0] < start]
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
