"""The loop of an agent: its log is read, and its jobs make panes of the lines.

What was read is taken in slices, short enough that between two of them the loop can look up: is it
to stop, was a window closed, is time or memory short.
"""

from __future__ import annotations

from collections.abc import Callable

from millstream.agent.job_panes import JobPanes
from millstream.agent.limits import Limits
from millstream.agent.log_reader import LOOK, LogReader
from millstream.agent.options import Options
from millstream.agent.surroundings import Surroundings
from millstream.agent.telling import FileNotes
from millstream.errors import CommandError

TOLD = 1.0
"""Seconds between two times that the jobs say how they are."""


class Loop:
    """Reads a log for a job. `check` raises what must end it."""

    def __init__(
        self, job: JobPanes, options: Options, limits: Limits, around: Surroundings
    ) -> None:
        self._job, self._options, self._limits, self._around = job, options, limits, around
        notes = FileNotes(around.say)
        self._reader = LogReader(options.patterns, job, around, notes, once=options.once)

    def run(self) -> None:
        """Until it is stopped, the job's extent is over or, with `once`, the log is read."""
        self._limits.made_room()  # an application may take more than the limit by itself
        self._job.begin()
        self._await_files()
        at_end = False
        while not self._around.stop.is_set() and not self._job.over:
            self._around.tick()
            # Files that come meanwhile are held open, and can be read though they are deleted.
            self._limits.room_in_outbox(self._reader.look)
            if self._reader.read():
                continue
            if self._options.once:
                self._job.end_of_log()
                at_end = True
                break
            self._idle()
        self._job.finish(at_end=at_end)

    def close(self) -> None:
        self._reader.close()
        self._job.close()

    def _await_files(self) -> None:
        if not self._reader.follower.empty:
            return
        patterns = " ".join(self._options.patterns)
        if self._options.once:
            raise CommandError(
                f"--log {patterns}: no file matches, and with --once none is awaited"
            )
        self._around.say(f"no file matches {patterns} yet; waiting for one")

    def _idle(self) -> None:
        """All is read for now: panes whose time is over are ended, and it waits."""
        self._job.idle(self._reader.seen)
        began = self._around.clock()
        self._around.stop.wait(LOOK)
        self._job.waited(self._around.clock() - began)


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
