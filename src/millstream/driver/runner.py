"""The seam between the driver and whatever runs a batch's tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from millstream.driver.job import Job
from millstream.engine.horizon import Lane
from millstream.engine.plan import Plan
from millstream.engine.progress import Report


class Runner(Protocol):
    """Runs batches, one at a time, in whatever thread it is called."""

    @property
    def parallelism(self) -> int:
        """How many tasks run at once."""
        ...

    def prepare(self, plan: Plan) -> None:
        """Take the functions of all batches to come. Called once, before the first of them."""
        ...

    def run(self, job: Job, lane: Lane) -> list[Report]:
        """Run a batch and give what its tasks report; MillstreamError if one of them fails for
        good. Until the driver commits the batch, nothing of it is visible."""
        ...

    def cancel(self) -> None:
        """From another thread: let `run` fail soon."""
        ...

    def close(self) -> None:
        """Let go of what runs the tasks."""
        ...


OpenRunner = Callable[[], Runner]
"""Starts what runs the tasks; this may take seconds, and is called in a thread of its own."""
