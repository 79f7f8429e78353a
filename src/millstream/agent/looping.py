"""The loop of an agent: its log is read, and its jobs make panes of the lines.

What was read is taken in slices, short enough that between two of them the loop can look up: is it
to stop, was a window closed, is time or memory short. Between two pieces of the log jobs are
started and stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from millstream.agent.agent_job import AgentJob
from millstream.agent.job_orders import JobOrders
from millstream.agent.job_panes import JobPanes
from millstream.agent.limits import Limits
from millstream.agent.node_log import LOOK, NodeLog
from millstream.agent.options import Options
from millstream.agent.shared_reading import SharedReading
from millstream.agent.surroundings import Surroundings
from millstream.agent.telling import FileNotes
from millstream.errors import CommandError, MillstreamError
from millstream.windows.placed import PlacedJob

TOLD = 1.0
"""Seconds between two times that the jobs say how they are."""


class Loop:
    """Reads a log for jobs. `open_job` makes one ready; with `orders` it goes on without any."""

    def __init__(
        self,
        options: Options,
        limits: Limits,
        around: Surroundings,
        open_job: Callable[[PlacedJob], AgentJob],
        orders: JobOrders | None = None,
    ) -> None:
        self._options, self._limits, self._around = options, limits, around
        self._open_job, self._orders = open_job, orders
        self._notes = FileNotes(around.say)
        self._readings: dict[Hashable, SharedReading] = {}
        self.jobs: dict[str, AgentJob] = {}
        self.ended: dict[str, dict[str, Any]] = {}
        """Jobs that run no more, and how they were."""
        self.failures: list[MillstreamError] = []
        """Why jobs were ended that could not go on."""
        self._failing: dict[str, MillstreamError] = {}

    def start(self, placed: PlacedJob) -> None:
        """Run a job too."""
        job = self._open_job(placed)
        self.jobs[placed.name] = job
        job.start()
        reading = self._readings.setdefault(job.panes.kin, SharedReading(self._reader))
        reading.add(job.panes)
        job.panes.begin()
        self._await_files(reading)

    def stop(self, name: str) -> None:
        """Run a job no more."""
        job = self.jobs.pop(name, None)
        if job is not None:
            self._part(job)
            job.panes.put()
            self.ended[name] = job.close()

    def run(self) -> None:
        """Until it is stopped, all jobs are over or, with `once`, the log is read."""
        self._limits.made_room()  # an application may take more than the limit by itself
        at_end = False
        while not self._around.stop.is_set() and (self._wanted or self._orders is not None):
            self._around.tick()
            self._obey()
            # Files that come meanwhile are held open, and can be read though they are deleted.
            self._limits.room_in_outbox(self._look)
            some = [reading.read() for reading in self._readings.values() if reading.wanted]
            if self._options.once and not any(some):
                at_end = True
                break
            if not self._options.once:
                self._idle(wait=not any(some))
        for job in self.jobs.values():
            if at_end:
                job.panes.end_of_log()
            job.panes.finish(at_end=at_end)

    def tick(self) -> None:
        """See that all is well beside the loop. If there are several jobs, or may be, one that
        cannot go on is ended with the next orders."""
        for name, job in self.jobs.items():
            try:
                job.check()
            except MillstreamError as error:
                if self._orders is None and len(self.jobs) == 1:
                    raise
                self._failing[name] = error

    def tell(self) -> None:
        """Say how the jobs are."""
        for job in self.jobs.values():
            job.panes.tell()

    def drained(self, seconds: float) -> bool:
        """Wait until the root has all that was made; whether it has."""
        return all(job.outbox.wait_empty(seconds) for job in self.jobs.values())

    def close(self) -> None:
        """End all; how they were is in `ended`."""
        for reading in self._readings.values():
            reading.close()
        for name, job in self.jobs.items():
            self.ended[name] = job.close()

    @property
    def _wanted(self) -> bool:
        return any(not job.panes.over for job in self.jobs.values())

    def _obey(self) -> None:
        """Start and stop jobs; never in the middle of a chunk."""
        for name, error in self._failing.items():
            self._around.say(f"job {name!r} ends: {error}")
            self.failures.append(error)
            self.stop(name)
        self._failing = {}
        for order in [] if self._orders is None else self._orders.taken():
            if isinstance(order, str):
                self.stop(order)
                continue
            try:
                self.start(order)
            except MillstreamError as error:
                self._around.say(f"job {order.name!r} is not started: {error}")

    def _reader(self, job: JobPanes) -> NodeLog:
        once, patterns = self._options.once, self._options.patterns
        return NodeLog(patterns, job, self._around, self._notes, once=once)

    def _part(self, job: AgentJob) -> None:
        reading = self._readings.get(job.panes.kin)
        if reading is not None:
            reading.remove(job.panes)
            if not reading.jobs:
                del self._readings[job.panes.kin]

    def _look(self) -> None:
        for reading in self._readings.values():
            reading.look()

    def _await_files(self, reading: SharedReading) -> None:
        if not reading.empty:
            return
        patterns = " ".join(self._options.patterns)
        if self._options.once:
            raise CommandError(
                f"--log {patterns}: no file matches, and with --once none is awaited"
            )
        self._around.say(f"no file matches {patterns} yet; waiting for one")

    def _idle(self, *, wait: bool) -> None:
        """Where all is read for now, panes whose time is over are ended; and it waits."""
        for reading in self._readings.values():
            reading.idle(self._around.clock())
        if wait:
            began = self._around.clock()
            self._around.stop.wait(LOOK)
            for reading in self._readings.values():
                reading.waited(self._around.clock() - began)


class Ticks:
    """Looks up now and then: is all well beside the loop; and says how it is, every second."""

    def __init__(
        self, check: Callable[[], None], tell: Callable[[], None], clock: Callable[[], float]
    ) -> None:
        self._check, self._tell, self._clock = check, tell, clock
        self._told = clock() - TOLD

    def __call__(self) -> None:
        self._check()
        if self._clock() - self._told >= TOLD:
            self._told = self._clock()
            self._tell()
