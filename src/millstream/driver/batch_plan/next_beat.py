"""Computes the beat of the next batch from the progress of the last one."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from millstream.driver.batch_plan.pace import TARGET_SECONDS, shares_of
from millstream.engine.beat import Beat
from millstream.engine.cells.sweep import sweep_until
from millstream.engine.final_phase import FinalStep
from millstream.engine.horizon import Lane, earliest_of, held_back, horizon_of, step_from
from millstream.model.workflow import Workflow
from millstream.stores.progress import Progress, SourceProgress


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
    step: FinalStep | None = None,
) -> Beat:
    """Returns the beat of the batch that follows `progress`.

    `fresh` are the sources with records in this batch. In the shuffled lane the horizon advances
    one step per batch; in the one-task lane the task loops over the steps. `step` is the batch's
    step of a final phase, if it is part of one.
    """
    if step is not None:
        shares = shares_of(workflow, progress.timing.costs, target_seconds)
        beat = Beat(epoch, batch, clock, step.horizon, progress.horizon, shares=shares)
        return replace(beat, final=step)
    target = horizon_of(workflow, progress, clock, started, final, fresh)
    earliest = earliest_of(progress)
    horizon = held_back(progress, target)
    if horizon is not None and lane == "shuffled":
        horizon = step_from(workflow, progress.horizon, earliest, horizon)
    late = target if workflow.order == "event-time" else None
    shares = shares_of(workflow, progress.timing.costs, target_seconds)
    sweep = sweep_until(workflow, progress, horizon, earliest)
    # The batch continues up to the horizon of its own records, unless a limit holds the horizon
    # back, or each round of a cycle has to be one batch. Only a single task can go several rounds.
    goes_on = workflow.order == "event-time" and not final
    rounds = lane == "one-task" and workflow.step is not None
    goes_on = goes_on and (not workflow.feedback or rounds)
    limited = any(update.limit is not None for update in workflow.updates)
    sources = {
        name: SourceProgress(source.highest, source.clock)
        for name, source in progress.sources.items()
    }
    return Beat(
        epoch,
        batch,
        clock,
        horizon,
        progress.horizon,
        late,
        earliest,
        shares,
        sweep,
        sources if goes_on and not limited else None,
        started,
        None if progress.ended is None else progress.ended.at,
    )
