"""Ends event time (`--final`): decides which batches that takes, and what they do. Pure.

When all input is read and processed, event time has reached the greatest time of any event. The
*final phase* then closes one group of functions after the other (`model.closing_order`), each after
those that it reads from. Closing a group takes two kinds of batches:

1. Its functions take all events that still come to them, whatever their time.
2. All event-time timers of its updates fire. A timer that a timer function sets meanwhile fires
   only up to a *limit*: the last event plus the update's reach, which is the longest time that an
   event of the update has ever set a timer ahead. So a time-out that its function postpones does
   come to its end, and a periodic timer fires exactly once more. Timers for the end (`END`) fire
   after the other timers of their key, at the time of the last event or of the last of those
   timers, whichever is later.

When a function's timers fire, no more events come to it; and what they emit waits until the next
group is closed. So each function gets its events in order of time, and the result does not depend
on batches, shards and tasks. Functions of a cycle are closed together: what they emit circulates
until no more events come of it, and a timer that is set past the limit on the way does not fire.

At the end the horizon is moved to the latest time that was reached. Timers that are left, up to
that time, wait until event time advances (`Beat.timers`). Wall timers do not fire in this phase:
wall time does not end.

A phase that has begun is finished before anything else is done, even by a later start, with or
without `--final`: `Progress.final` records how far it is.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from millstream.engine.progress import Report, greatest
from millstream.model.closing_order import ClosingGroup, closing_order
from millstream.model.workflow import Workflow
from millstream.stores.progress import Ended, FinalPhase, Progress

BEYOND = (1 << 63) - 1
"""A time after every event."""


@dataclass(frozen=True, slots=True)
class FinalStep:
    """One batch of the final phase."""

    phase: FinalPhase
    """The phase as it stood before the batch."""
    group: frozenset[str] = frozenset()
    """The functions that take all events that wait for them; empty: the phase ends."""
    cyclic: bool = False
    limits: dict[str, int] = field(default_factory=dict)
    """The updates whose timers fire, each with the limit for timers that are set meanwhile."""
    all_waiting: bool = False
    """True if timers past the limit fire too, provided that they were set before."""

    @property
    def horizon(self) -> int:
        """Event time for functions that are not being closed; in the last batch, the end time."""
        return self.phase.end if self.group else greatest_time(self.phase)

    def last_event(self, update: str) -> int:
        """Returns the time of the last event, of the input or of the update."""
        return max(self.phase.end, self.phase.latest.get(update, self.phase.end))

    def takes(self, function: str) -> bool:
        """True if the function takes all its events."""
        return function in self.group


def greatest_time(phase: FinalPhase) -> int:
    """Returns how far event time has come."""
    return max(phase.end, phase.highest or phase.end, phase.fired or phase.end)


def next_step(workflow: Workflow, progress: Progress) -> FinalStep | None:
    """Returns the next batch of the final phase; None if there is none.

    A final phase begins if a timer waits, unless no event has been processed since the last phase.
    Call this only when all input is read, nothing else is due, and a final phase was asked for.
    """
    phase = progress.final
    if phase is None:
        end = greatest(progress.horizon, progress.highest)
        news = progress.ended is None or progress.ended.events != processed_events(
            workflow, progress
        )
        if end is None or not news or progress.pending.least_timer is None:
            return None
        phase = FinalPhase(end, progress.highest)
    for group in closing_order(workflow):
        if not group.names <= {*phase.closed}:
            step = _step(workflow, progress, phase, group)
            if step is not None:
                return step
    return FinalStep(phase)


def _step(
    workflow: Workflow, progress: Progress, phase: FinalPhase, group: ClosingGroup
) -> FinalStep | None:
    """Returns the next batch for a group; None if it has nothing to do."""
    if is_awaited(progress, group.names):
        return FinalStep(phase, group.names, group.cyclic)
    timed = [
        update.name
        for update in workflow.updates
        if update.name in group.names and update.on_timer is not None
    ]
    if not timed or progress.pending.least_timer is None:
        return None
    limits = {name: phase.limits[name] for name in timed if name in phase.limits}
    if limits:
        return FinalStep(phase, group.names, group.cyclic, limits)
    step = FinalStep(phase, group.names, group.cyclic, limits, all_waiting=True)
    for name in timed:
        limits[name] = step.last_event(name) + progress.counts(name).reach
    return step


def is_awaited(progress: Progress, names: Iterable[str]) -> bool:
    """True if an event is still to come to one of these functions."""
    return progress.pending.feedback > 0 or any(progress.counts(name).waiting for name in names)


def stepped(workflow: Workflow, step: FinalStep, after: Progress, reports: list[Report]) -> None:
    """Records in the progress after a batch how far its final phase is."""
    phase = step.phase
    if not step.group:
        after.final = None
        after.ended = Ended(step.horizon, processed_events(workflow, after))
        return
    latest = dict(phase.latest)
    for report in reports:
        for name, ts in report.latest.items():
            latest[name] = max(ts, latest.get(name, ts))
    fired = step.limits and not (step.cyclic and is_awaited(after, step.group))
    closed = [*phase.closed, *sorted(step.group)] if fired else phase.closed
    after.final = FinalPhase(
        phase.end,
        greatest(phase.highest, after.highest),
        greatest(phase.fired, *(report.fired for report in reports)),
        closed,
        latest,
        {} if fired else step.limits or phase.limits,
    )


def processed_events(workflow: Workflow, progress: Progress) -> int:
    """Returns how many events the sources have brought, without late ones."""
    return sum(progress.emitted.get(source.name, 0) for source in workflow.sources)
