"""The loop of an agent: reads its log, and passes the lines to its jobs, which make panes of them.

Lines are processed in short slices. Between two slices the loop checks whether it must stop,
whether a window was closed, and whether time or memory is short. Jobs are started and stopped only
between two chunks of the log.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

from millstream.agent.agent_job import AgentJob
from millstream.agent.job_orders import JobOrders
from millstream.agent.job_status import JobStatus
from millstream.agent.limits import Limits
from millstream.agent.log_notices import FileNotes
from millstream.agent.node_log import LOOK, NodeLog
from millstream.agent.options import AgentOptions
from millstream.agent.panes.job_panes import JobPanes
from millstream.agent.shared_reader import SharedReading
from millstream.agent.surroundings import Surroundings
from millstream.errors import CommandError, MillstreamError
from millstream.windows.placed import PlacedJob

TOLD = 1.0
"""Seconds between two writes of the jobs' status."""


class Loop:
    """Reads a log for jobs. `open_job` opens one. With `orders`, it also runs without any job."""

    def __init__(
        self,
        options: AgentOptions,
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
        self.ended: dict[str, JobStatus] = {}
        """The last status of each job that has ended."""
        self.failures: list[MillstreamError] = []
        """The errors that have ended jobs."""
        self._failing: dict[str, MillstreamError] = {}

    def start(self, placed: PlacedJob) -> None:
        """Start a job beside those that run."""
        job = self._open_job(placed)
        self.jobs[placed.name] = job
        job.start()
        reading = self._readings.setdefault(job.panes.kin, SharedReading(self._reader))
        reading.add(job.panes)
        job.panes.begin()
        self._await_files(reading)

    def stop(self, name: str) -> None:
        """Stop a job, if it runs."""
        job = self.jobs.pop(name, None)
        if job is not None:
            self._part(job)
            job.panes.put()
            self.ended[name] = job.close()

    def run(self) -> None:
        """Run until stopped, until all jobs are over or, with `once`, until the log is read."""
        self._limits.made_room()  # the application alone may take more than the memory limit
        at_end = False
        while not self._around.stop.is_set() and (self._wanted or self._orders is not None):
            self._around.tick()
            self._obey()
            # New files are opened while reading waits, so that they can be read even if deleted.
            self._limits.room_in_outbox(self._look)
            has_read = [self._read(reading) for reading in self._readings.values()]
            if self._options.once and not any(has_read):
                at_end = True
                break
            if not self._options.once:
                self._idle(wait=not any(has_read))
        for job in self.jobs.values():
            if at_end:
                job.panes.end_of_log()
            job.panes.finish(at_end=at_end)

    def tick(self) -> None:
        """Check the threads of the jobs. Raises the error of a single job. If there are or may be
        several jobs, only the failed one is ended, when orders are carried out next."""
        for name, job in self.jobs.items():
            try:
                job.check()
            except MillstreamError as error:
                self._fail(name, error)

    def _read(self, reading: SharedReading) -> bool:
        """Read some chunks. False if there is nothing to read for now."""
        try:
            return reading.wanted and reading.read()
        except CommandError as error:
            for name in [name for name, job in self.jobs.items() if job.panes in reading.jobs]:
                self._fail(name, error)
            return True

    def _fail(self, name: str, error: MillstreamError) -> None:
        """Have a job ended. A single job's error ends the agent."""
        if self._orders is None and len(self.jobs) == 1:
            raise error
        self._failing[name] = error

    def tell(self) -> None:
        """Write the status of all jobs."""
        for job in self.jobs.values():
            job.panes.tell()

    def drained(self, seconds: float) -> bool:
        """Wait for the root to take all panes, for each job at most `seconds`. True if it has."""
        return all(job.outbox.wait_empty(seconds) for job in self.jobs.values())

    def close(self) -> None:
        """End all jobs; their last status is in `ended`."""
        for reading in self._readings.values():
            reading.close()
        for name, job in self.jobs.items():
            self.ended[name] = job.close()

    @property
    def _wanted(self) -> bool:
        return any(not job.panes.over for job in self.jobs.values())

    def _obey(self) -> None:
        """Start and stop jobs as ordered. Called only between two chunks."""
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
                f"--log {patterns}: no file matches, and --once does not wait for one"
            )
        self._around.say(f"no file matches {patterns} yet; waiting for one")

    def _idle(self, *, wait: bool) -> None:
        """End the panes whose time is over, if there is nothing to read. Then wait, with `wait`."""
        for reading in self._readings.values():
            reading.idle(self._around.clock())
        if wait:
            began = self._around.clock()
            self._around.stop.wait(LOOK)
            for reading in self._readings.values():
                reading.waited(self._around.clock() - began)


class Ticks:
    """Calls `check` at each tick, and `tell` once a second (`TOLD`)."""

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
