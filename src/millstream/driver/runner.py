"""The interface between the driver and whatever runs a batch's tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from millstream.driver.job import BatchJob
from millstream.engine.horizon import Lane
from millstream.engine.plan import Plan
from millstream.engine.progress import Report


class Runner(Protocol):
    """Runs batches, one at a time, in the thread that calls `run`."""

    @property
    def parallelism(self) -> int:
        """The number of tasks that run at once."""
        ...

    @property
    def spread(self) -> bool:
        """True if tasks run on several hosts, each with copies of some shards.

        Then a single task for a whole batch would need all copies on one host.
        """
        ...

    def prepare(self, plan: Plan) -> None:
        """Takes the functions for all batches. Called once, before the first batch."""
        ...

    def run(self, job: BatchJob, lane: Lane) -> list[Report]:
        """Runs a batch and returns its tasks' reports.

        Raises MillstreamError if a task fails permanently. Nothing of the batch is visible until
        the driver commits it.
        """
        ...

    def cancel(self) -> None:
        """Makes `run`, in another thread, fail soon."""
        ...

    def close(self) -> None:
        """Releases what runs the tasks."""
        ...


OpenRunner = Callable[[], Runner]
"""Starts a runner. This may take seconds, and is called in a background thread."""
