"""The runner without Spark: a batch's tasks run one after the other in this process.

It is for development (`millstream dev`), for tests and for the simulation: the same tasks, frames,
shards and fences as on Spark, in either lane, and no JVM.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count

from millstream.driver import run as driver_run
from millstream.driver.driver import OnReport
from millstream.driver.job import Job, Row
from millstream.driver.report import RunSummary
from millstream.driver.stages import (
    close_stores,
    first_stage,
    layer_stage,
    reports_in,
    whole_batch,
)
from millstream.engine.horizon import Lane
from millstream.engine.plan import Plan
from millstream.engine.progress import Report
from millstream.errors import FunctionError, RunError
from millstream.model.app import App
from millstream.settings import Settings

TASKS = 2
"""Tasks of the shuffled lane, unless the settings say otherwise."""


class InProcessRunner:
    """Runs batches in the thread that calls it. A batch cannot be cancelled: it is waited for."""

    def __init__(self) -> None:
        self._attempts = count()
        self._plan: Plan | None = None

    @property
    def parallelism(self) -> int:
        return TASKS

    def prepare(self, plan: Plan) -> None:
        self._plan = plan

    def run(self, job: Job, lane: Lane) -> list[Report]:
        try:
            return self._run(job, lane)
        except FunctionError as error:  # as from a task on Spark
            raise RunError(str(error)) from error

    def _run(self, job: Job, lane: Lane) -> list[Report]:
        plan = self._plan
        assert plan is not None, "prepare comes first"
        if lane == "one-task":
            return [whole_batch(plan, job, next(self._attempts))]
        groups = len(job.splits)
        rows: list[Row] = []
        for number in range(groups):
            rows += first_stage(plan, job, number, next(self._attempts))
        upstream = groups
        for layer in range(len(plan.layers)):
            inboxes: list[list[Row]] = [[] for _ in range(job.tasks)]
            for row in rows:
                inboxes[row[0]].append(row)
            rows = []
            for task, inbox in enumerate(inboxes):
                attempt = next(self._attempts)
                rows += layer_stage(plan, job, layer, upstream, task, attempt, inbox)
            upstream = job.tasks
        return reports_in(rows)

    def cancel(self) -> None:
        pass

    def close(self) -> None:
        close_stores()


def run(
    app: App,
    settings: Settings,
    report: OnReport | None = None,
    *,
    stop: threading.Event | None = None,
    ready: Callable[[], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> RunSummary:
    """`driver.run` without Spark."""
    return driver_run.run(app, settings, InProcessRunner, report, stop=stop, ready=ready, say=say)
