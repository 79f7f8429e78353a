"""A beat: what a batch is told before it runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from millstream.engine.horizon import Lane, earliest_of, held_back, horizon_of, step_from
from millstream.engine.pace import TARGET_SECONDS, shares_of
from millstream.engine.sweep import sweep_until
from millstream.model.workflow import Workflow
from millstream.stores.progress import Progress


@dataclass(frozen=True, slots=True)
class Beat:
    """Who commits, the time of day, and how far event time has come."""

    epoch: int
    batch: int
    clock: int
    """The wall time of the batch, from its offset."""
    horizon: int | None
    """Event time so far: timers up to it fire; in event-time order, events up to it are fed."""
    passed: int | None
    """The horizon of the batch before."""
    late: int | None = None
    """Events of a source up to this are late; None: none are."""
    earliest: int | None = None
    """The earliest event or timer that was known to come, before this batch."""
    shares: dict[str, int] = field(default_factory=dict)
    """How many events of one key each update takes in this batch, in arrival order."""
    sweep: int | None = None
    """Every event after this batch is later: what has expired by then may be swept."""


def next_beat(
    workflow: Workflow,
    progress: Progress,
    *,
    epoch: int,
    batch: int,
    clock: int,
    started: int | None,
    final: bool,
    lane: Lane,
    fresh: Collection[str] = (),
    target_seconds: float = TARGET_SECONDS,
) -> Beat:
    """The beat of the batch that follows `progress`.

    `fresh` are the sources that bring records in it. In the shuffled lane the horizon takes one
    step a batch; one task loops over its steps.
    """
    target = horizon_of(workflow, progress, clock, started, final, fresh)
    earliest = earliest_of(progress)
    horizon = held_back(progress, target)
    if horizon is not None and lane == "shuffled":
        horizon = step_from(workflow, progress.horizon, earliest, horizon)
    late = target if workflow.order == "event-time" else None
    shares = shares_of(workflow, progress.costs, target_seconds)
    sweep = sweep_until(workflow, progress, horizon, earliest)
    return Beat(epoch, batch, clock, horizon, progress.horizon, late, earliest, shares, sweep)
