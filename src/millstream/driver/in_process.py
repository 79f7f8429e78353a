"""The runner without Spark: runs a batch's tasks one after the other in this process.

It is for development (`millstream dev`), for tests and for the simulation. It uses the same tasks,
frames, shards and fences as on Spark, in either lane, without a JVM.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count

from millstream.driver import run as driver_run
from millstream.driver.driver import OnReport
from millstream.driver.job import BatchJob, Row
from millstream.driver.job_store import close_stores
from millstream.driver.report import RunSummary
from millstream.driver.stages import first_stage, first_tasks, layer_stage, reports_in, whole_batch
from millstream.engine.horizon import Lane
from millstream.engine.plan import Plan
from millstream.engine.progress import Report
from millstream.errors import FunctionError, RunError
from millstream.kafka.offset_ranges import cancel
from millstream.model.app import AppDefinition
from millstream.model.place import described
from millstream.settings.settings import Settings

TASKS = 2
"""The number of tasks in the shuffled lane, unless the settings give another."""


class InProcessRunner:
    """Runs batches in the calling thread. A running batch cannot be cancelled; it runs to its end.

    `seated`: separate tasks read the feedback, as on a cluster.
    """

    def __init__(self, *, seated: bool = False) -> None:
        self._attempts = count()
        self._seated = seated
        self._plan: Plan | None = None

    @property
    def parallelism(self) -> int:
        return TASKS

    @property
    def spread(self) -> bool:
        return False

    def prepare(self, plan: Plan) -> None:
        self._plan = plan

    def run(self, job: BatchJob, lane: Lane) -> list[Report]:
        try:
            return self._run(job, lane)
        except FunctionError as error:  # as from a task on Spark
            raise RunError(str(error)) from error
        except Exception:
            raise
        except BaseException as error:  # it would end only this thread, for which the run waits
            raise RunError(f"a function ended the batch with {described(error)}") from error

    def _run(self, job: BatchJob, lane: Lane) -> list[Report]:
        plan = self._plan
        assert plan is not None, "prepare comes first"
        if lane == "one-task":
            return [whole_batch(plan, job, next(self._attempts))]
        upstream = first_tasks(plan, job, seated=self._seated)
        rows: list[Row] = []
        for number in range(upstream):
            rows += first_stage(plan, job, number, next(self._attempts), seated=self._seated)
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
        cancel()  # only for a task that waits for brokers; all others end by themselves

    def close(self) -> None:
        close_stores()


def run(
    app: AppDefinition,
    settings: Settings,
    report: OnReport | None = None,
    *,
    stop: threading.Event | None = None,
    ready: Callable[[], None] | None = None,
    running: Callable[[], None] | None = None,
    say: Callable[[str], None] | None = None,
) -> RunSummary:
    """Runs an application as `driver.run` does, without Spark."""
    return driver_run.run(
        app, settings, InProcessRunner, report, stop=stop, ready=ready, running=running, say=say
    )
