"""A beat: what a batch is told before it runs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from millstream.engine.horizon import Lane, earliest_of, horizon_of, step_from
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
) -> Beat:
    """The beat of the batch that follows `progress`.

    `fresh` are the sources that bring records in it. In the shuffled lane the horizon takes one
    step a batch; one task loops over its steps.
    """
    target = horizon_of(workflow, progress, clock, started, final, fresh)
    earliest = earliest_of(progress)
    horizon = target
    if target is not None and lane == "shuffled":
        horizon = step_from(workflow, progress.horizon, earliest, target)
    late = target if workflow.order == "event-time" else None
    return Beat(epoch, batch, clock, horizon, progress.horizon, late, earliest)
