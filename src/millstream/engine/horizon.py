"""Decides, as pure functions, how far event time has come, what is due, and which lane to use.

*Arrival order*: event time is the highest time seen in the previous batches; only timers use it.

*Event-time order*: the horizon is the least, over the sources that are not idle, of the highest
time seen in the previous batches minus the source's allowed lateness. A source is idle when it has
nothing for this batch and has brought nothing for its `idle` time, counted while the application
runs. When all are idle the horizon advances with the idle time. It never goes back.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from millstream.engine.progress import greatest, least
from millstream.model.workflow import Workflow
from millstream.stores.progress import Progress, SourceProgress

Lane = Literal["one-task", "shuffled"]
WAITING_BYTES = 100
"""The assumed size of a waiting event, to compare it with new input."""
MUCH_WORK = 500_000
"""Microseconds of the functions' time that are worth a shuffle, which costs about half of that."""


def horizon_of(
    workflow: Workflow,
    progress: Progress,
    clock: int,
    started: int | None,
    final: bool,
    fresh: Collection[str] = (),
) -> int | None:
    """Returns how far event time has come for the batch after `progress`, at `clock`.

    `started` is the clock at the start of this run: idle time before it does not count. None: idle
    time never counts, because the run takes what is there and does not wait; a source without any
    record is then left out. `fresh` are the sources with records in this batch: they are not idle,
    however long the last batch took.
    """
    if workflow.order == "arrival" or final:
        return greatest(progress.horizon, progress.highest)
    reached = _from_sources(workflow, progress.sources, clock, started, fresh)
    return greatest(progress.horizon, reached)


def _from_sources(
    workflow: Workflow,
    known: Mapping[str, SourceProgress],
    clock: int,
    started: int | None,
    fresh: Collection[str],
) -> int | None:
    active: list[int | None] = []
    idle: list[int | None] = []
    for source in workflow.sources:
        seen = known.get(source.name, SourceProgress())
        reached = None if seen.highest is None else seen.highest - source.lateness
        if source.name in fresh:
            active.append(reached)
        elif started is None:
            if reached is not None:
                active.append(reached)
        elif (quiet := clock - max(seen.clock, started)) <= source.idle:
            active.append(reached)
        else:
            idle.append(None if reached is None else reached + quiet - source.idle)
    if active:
        return None if None in active else least(*active)
    return greatest(*idle)


def further(
    workflow: Workflow,
    sources: Mapping[str, SourceProgress],
    clock: int,
    started: int | None,
    seen: Mapping[str, int],
) -> int | None:
    """Returns the horizon of a batch without records that would follow at once on this one.

    `seen` has the greatest time of each source in this batch. A batch continues to that horizon: so
    its events need not be stored until the following batch, which may not even be needed.
    """
    known = dict(sources)
    for name, highest in seen.items():
        before = sources.get(name, SourceProgress())
        known[name] = SourceProgress(greatest(before.highest, highest), clock)
    return _from_sources(workflow, known, clock, started, ())


def step_from(workflow: Workflow, passed: int | None, earliest: int | None, target: int) -> int:
    """Returns the next horizon on the way to `target` when delayed feedback limits each step.

    The step is counted from the earliest pending event or timer, since nothing happens before it.
    """
    step = workflow.step
    if step is None or workflow.order == "arrival" or earliest is None:
        return target
    start = earliest - 1 if passed is None else max(passed, earliest - 1)
    return min(target, start + step)


def held_back(progress: Progress, target: int | None) -> int | None:
    """Limits the horizon to what a throttled update can take."""
    if target is None or progress.pending.hold is None:
        return target
    return min(target, progress.pending.hold)


def earliest_of(progress: Progress) -> int | None:
    """Returns the time of the earliest pending event or timer, as far as known."""
    pending = progress.pending
    return least(pending.least_waiting, pending.least_timer, pending.least_feedback)


def is_due(
    workflow: Workflow, progress: Progress, clock: int, started: int | None, final: bool
) -> bool:
    """True if a batch without new records would have something to do."""
    pending = progress.pending
    if pending.feedback or pending.held:
        return True
    if pending.least_wall is not None and pending.least_wall <= clock:
        return True
    horizon = horizon_of(workflow, progress, clock, started, final)
    if horizon is None:
        return False
    ended = progress.ended is not None and horizon <= progress.ended.at
    earliest = least(pending.least_waiting, None if ended else pending.least_timer)
    return earliest is not None and earliest <= horizon


def pressure_of(workflow: Workflow, progress: Progress, clock: int, started: int | None) -> float:
    """Returns how much to slow the sources while throttled events wait.

    It is 0 unless a batch without new records would let some of these events through. That may not
    be so after a start: a source that was idle when they became due no longer counts as idle. Then
    only its records, or the end of its idle time, let the events through, and a stopped source
    would wait for itself.
    """
    if not is_due(workflow, progress, clock, started, final=False):
        return 0.0
    return progress.pending.pressure


def lane_of(
    workflow: Workflow,
    forced: str,
    new_bytes: int,
    waiting: int,
    small_bytes: int,
    pace: float | None = None,
    *,
    spread: bool = False,
) -> Lane:
    """Chooses one task for a small batch, and the shuffled lane for one that is large or slow.

    `pace` is the functions' cost of a byte, in microseconds. Delayed feedback advances in small
    steps, and only a single task can loop over them within one batch. `spread`: the shards are on
    several hosts, and a small batch is shuffled too, so that they can stay there.
    """
    if forced != "auto":
        return "one-task" if forced == "one-task" else "shuffled"
    if workflow.step is not None and workflow.order == "event-time":
        return "one-task"
    size = new_bytes + waiting * WAITING_BYTES
    if spread or size * (pace or 0.0) > MUCH_WORK:
        return "shuffled"
    return "one-task" if size <= small_bytes else "shuffled"
