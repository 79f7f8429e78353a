"""The number of reducers, and the window from which it holds (iMR, section 4.1).

"iMR may dynamically add (or subtract) reducers during processing." A window belongs entirely to the
number in force at its first pane. So a new number must begin at a pane that no message has reached,
and every message must be split by a schedule that has all changes up to its panes.

DESIGN
------
The map `Saying` splits a message. It tells `NAME.reducers`, which has one key, how far the message
goes, and sends the message itself on to `NAME.ledger`, which also has one key. `NAME.reducers`
sends the ledger the schedule, if that is new. The stream of the messages, `NAME.coming`, is
declared to come after `NAME.schedule`. So the ledger takes in a message after every change of the
schedule that came with it or before it. A change takes effect beyond all that messages before it
have reached: `NAME.reducers` has been told of these. No requests are sent, and the graph has no
cycle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from millstream.errors import FunctionError
from millstream.model.event import Emit, Event, emit
from millstream.model.function import takes
from millstream.windows.members import Members
from millstream.windows.panes.checked import checked

if TYPE_CHECKING:
    from millstream.windows.job import Job

Schedule = list[list[int]]
"""[first pane, reducers], in order: the number of reducers of windows that begin there or later."""
BEGINNING = -(1 << 62)
"""Before every pane."""
NEVER = 1 << 62
"""After every pane."""
MOST = 1_000


def order_of(pane: int) -> str:
    """Returns text that sorts as panes, or windows, do. The messages of a batch have the same time,
    and events of the same time are taken in the order of their bytes. With this as the first field,
    that is the order of their panes."""
    return f"{pane + NEVER:020d}"


def in_force(schedule: Schedule, pane: int) -> int:
    """Returns the number of reducers of a window that begins at a pane.

    >>> [in_force([[BEGINNING, 1], [7, 4]], pane) for pane in (6, 7)]
    [1, 4]
    """
    return next(number for first, number in reversed(schedule) if first <= pane)


def schemes(schedule: Schedule, first: int, last: int) -> list[int]:
    """Returns the numbers of reducers of all windows that begin between two panes, both
    included."""
    numbers = {in_force(schedule, first)}
    numbers.update(number for start, number in schedule if first < start <= last)
    return sorted(numbers)


@dataclass(frozen=True)
class Saying:
    """The map over the nodes' messages. Sends their positions to `NAME.reducers`, and the messages
    to `NAME.ledger`.

    It ignores the way that a message took (its `tree`).
    """

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
        reports, sent = f"{self.name}.said", event.value
        if isinstance(sent, dict) and "reducers" in sent:
            yield emit(reports, key="", value=PaneReport(reducers=_number(sent["reducers"])))
            return
        message = checked(self.name, self.job, self.members, sent)
        yield emit(reports, key="", value=PaneReport(until=message.until))
        ordered = replace(message, order=order_of(message.pane))
        yield emit(f"{self.name}.coming", key="", value=ordered)


class PaneReport(msgspec.Struct, frozen=True, omit_defaults=True):
    """A message to `NAME.reducers`: how far a pane message goes, or a new number of reducers."""

    until: int | None = None
    reducers: int | None = None


class NewSchedule(msgspec.Struct, frozen=True):
    """The message of `NAME.reducers` to the ledger."""

    schedule: Schedule
    carried: bool
    """See `pane_ledger.LedgerMeta`."""


@dataclass
class Agreed:
    """The schedule of the reducers, and how far the nodes are."""

    defined: int = 0
    """The number in the job's definition when it was last read."""
    schedule: Schedule = field(default_factory=list)
    reached: int = BEGINNING
    """The furthest pane that a message has reached."""
    trees: dict[str, int] = field(default_factory=dict)
    """The pane that each tree had reached, in a store from before there was a ledger. Otherwise
    empty."""


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
        report = msgspec.convert(event.value, PaneReport)
        new, carried = not agreed.schedule, bool(agreed.trees)
        if new:
            agreed.schedule = [[BEGINNING, self.job.reducers]]
            agreed.defined = self.job.reducers
        if carried:
            agreed.reached = max(agreed.reached, *agreed.trees.values())
            agreed.trees = {}
        if report.until is not None:
            agreed.reached = max(agreed.reached, report.until)
        changed = False
        if agreed.defined != self.job.reducers:  # the application was started with another number
            agreed.defined = self.job.reducers
            changed = _change(agreed, self.job.reducers)
        if report.reducers is not None:
            changed = _change(agreed, report.reducers) or changed
        if new or carried or changed:
            yield emit(key="", value=NewSchedule(agreed.schedule, carried))


def _change(agreed: Agreed, number: int) -> bool:
    """Puts another number in force, beyond what any node has reached. True if the schedule
    changed."""
    if agreed.schedule[-1][1] == number:
        return False
    # Reaching a window's first pane opens it, so the first free pane is the one after `reached`.
    start = BEGINNING if agreed.reached == BEGINNING else agreed.reached + 1
    kept = [entry for entry in agreed.schedule if entry[0] < start]
    if kept and kept[-1][1] == number:
        agreed.schedule = kept
    else:
        agreed.schedule = [*kept, [start, number]]
    return True


def _number(value: object) -> int:
    if type(value) is not int or not 1 <= value <= MOST:
        raise FunctionError(
            f"the number of reducers must be a whole number from 1 to {MOST}; got {value!r}"
        )
    return value
