"""The end of event time (`--final`), as pure decisions: which batches it takes, and what they do.

When all input is read and processed, event time has come to the greatest time of any event. The
*final phase* then closes one group of functions after the other (`model.closing_order`), each after
those that it reads from. To close a group takes two kinds of batches:

1. Its functions take all events that still come to them, whatever their time.
2. All event-time timers of its updates fire. A timer that a timer function sets meanwhile fires
   only up to a *limit*: the last event plus the update's reach, which is the longest time that an
   event of the update has ever set a timer ahead. So a time-out that its function moves on comes to
   its end, and a periodic timer fires once more and no more.

Since nothing more comes to a function when its timers fire, and what they emit waits until the next
group is closed, each function gets its events in order of time; the result does not depend on
batches, shards and tasks. Functions of a cycle are closed together: what they emit goes round until
nothing comes of it, and a timer that it sets past the limit does not fire.

At last the horizon is moved to the latest time that was reached. Timers that are left, up to there,
wait until event time goes on (`Beat.timers`). Wall timers do not fire in this phase: the clock of
the wall does not end.

A phase that has begun is finished before anything else is done, by a later start too, with or
without `--final`: where it is stands in `Progress.final`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from millstream.engine.progress import Report, greatest
from millstream.model.closing_order import ClosingGroup, closing_order
from millstream.model.workflow import Workflow
from millstream.stores.progress import Ended, FinalPhase, Progress

BEYOND = (1 << 63) - 1
"""After every event."""


@dataclass(frozen=True, slots=True)
class FinalStep:
    """What a batch of the final phase does."""

    phase: FinalPhase
    """The phase as it stood before the batch."""
    group: frozenset[str] = frozenset()
    """The functions that take all events that wait for them; empty: the phase is over."""
    cyclic: bool = False
    limits: dict[str, int] = field(default_factory=dict)
    """The updates whose timers fire, and how far those go that timer functions set meanwhile."""
    all_waiting: bool = False
    """Whether timers past the limit fire too, if they were set before."""

    @property
    def horizon(self) -> int:
        """Event time for whatever is not being closed; at the end of the phase, where it ended."""
        return self.phase.end if self.group else greatest_time(self.phase)

    def takes(self, function: str) -> bool:
        """Whether a function takes all its events."""
        return function in self.group


def greatest_time(phase: FinalPhase) -> int:
    """How far event time came."""
    return max(phase.end, phase.highest or phase.end, phase.fired or phase.end)


def next_step(workflow: Workflow, progress: Progress, *, asked: bool) -> FinalStep | None:
    """What the next batch of the final phase does; None: there is no such batch.

    `asked`: a final phase may begin. It does if a timer waits, unless no event has been processed
    since the last one. To be asked for only when all input is read and nothing else is due.
    """
    phase = progress.final
    if phase is None:
        end = greatest(progress.horizon, progress.highest)
        news = progress.ended is None or progress.ended.events != processed_events(
            workflow, progress
        )
        if not asked or end is None or not news or progress.least_timer is None:
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
    """The next batch for a group; None: it has nothing to do."""
    if is_awaited(progress, group.names):
        return FinalStep(phase, group.names, group.cyclic)
    timed = [
        update.name
        for update in workflow.updates
        if update.name in group.names and update.on_timer is not None
    ]
    if not timed or progress.least_timer is None:
        return None
    limits = {name: phase.limits[name] for name in timed if name in phase.limits}
    if limits:
        return FinalStep(phase, group.names, group.cyclic, limits)
    for name in timed:
        last = max(phase.end, phase.latest.get(name, phase.end))
        limits[name] = last + progress.reach.get(name, 0)
    return FinalStep(phase, group.names, group.cyclic, limits, all_waiting=True)


def is_awaited(progress: Progress, names: Iterable[str]) -> bool:
    """Whether an event is still to come to one of these functions."""
    return progress.feedback > 0 or any(progress.waiting_at.get(name, 0) for name in names)


def stepped(workflow: Workflow, step: FinalStep, after: Progress, reports: list[Report]) -> None:
    """Let the progress after a batch say where its final phase is."""
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
    """How many events the sources have brought, late ones left out."""
    return sum(progress.emitted.get(source.name, 0) for source in workflow.sources)
