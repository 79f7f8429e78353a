"""One reading of a node's log: its files as they come, their lines in slices, for all jobs that
read them alike (iMR, 4.1).

Files are listed, opened, read and split into lines once, however many jobs take the lines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import gcd

from millstream.agent.files import Gap
from millstream.agent.following import Follower
from millstream.agent.job_panes import JobPanes
from millstream.agent.slicing import Slicer
from millstream.agent.surroundings import Surroundings
from millstream.agent.telling import FileNotes

LOOK = 0.25
"""Seconds between two looks at the files, when there is nothing to read."""


class NodeLog:
    """Reads a log for its jobs. One thread."""

    def __init__(
        self,
        patterns: Sequence[str],
        job: JobPanes,
        around: Surroundings,
        notes: FileNotes,
        *,
        once: bool,
    ) -> None:
        self.jobs = [job]
        self._once, self._around, self._notes = once, around, notes
        self._slicer = Slicer(around.clock)
        self._looked = around.clock() - LOOK
        self._unit = job.pane_size
        """The length on the axis up to which files are read in turn: it divides all jobs' panes."""
        self.seen = around.wall()
        """What time it was, at the latest, when the files were looked at: what was written by then
        is known, however long the loop was held up since."""
        self.read_bytes = 0
        self.follower = Follower(
            patterns,
            clock=around.clock,
            gap=self._gap,
            first_time=job.first_time,
            pane_of=self._pane_of,
            position=job.position,
            once=once,
            stamps=job.stamps,
            scratch=job.folder,
            framing=job.framing,
        )
        job.follower = self.follower
        notes.of_files(self.follower)

    @property
    def offsets(self) -> dict[str, int]:
        """How far each file was read."""
        return self.follower.offsets

    @property
    def place(self) -> int:
        """How far it has come, to be compared with others."""
        return sum(self.offsets.values())

    def add(self, job: JobPanes) -> None:
        """Read for a job that is at the same place."""
        self.jobs.append(job)
        job.follower = self.follower
        if job.stamps is not None:
            self.follower.stamps.append(job.stamps)
        self._divide()

    def remove(self, job: JobPanes) -> None:
        """Read no more for a job."""
        self.jobs.remove(job)
        if job.stamps is not None:
            self.follower.stamps.remove(job.stamps)
        self._divide()

    def is_level_with(self, other: NodeLog) -> bool:
        """Whether it is at the same place in all files that there are."""
        mine, theirs = self.follower.offsets, other.follower.offsets
        gone = other.follower.missing  # what only the other one still has open
        return all(
            one in gone if one not in mine else mine[one] == offset
            for one, offset in theirs.items()
        ) and all(one in theirs or self.follower.is_read(one) for one in mine)

    def look(self) -> None:
        """See what became of the files, if that is due; never in the middle of a chunk."""
        now = self._around.clock()
        if now - self._looked >= LOOK and not self._once:
            self._looked, self.seen = now, self._around.wall()
            self.follower.look()
            self._notes.of_files(self.follower)

    def read(self, most: Mapping[str, int] | None = None) -> bool:
        """Read on and give it to the jobs, but no file farther than `most` says; False if there is
        nothing to read for now."""
        self.look()
        chunk = self.follower.read(most)
        if chunk is None:
            return False
        self.read_bytes += chunk.size
        if chunk.too_long:
            for job in self.jobs:
                job.leave_out(chunk)
            return True
        for part in self._slicer.slices(chunk):
            for job in self.jobs:
                job.take(chunk, part)
            if self._around.stop.is_set() or all(job.over for job in self.jobs):
                break
        return True

    def close(self) -> None:
        self.follower.close()

    def _pane_of(self, line: bytes) -> int | None:
        position = self.jobs[0].place_of(line)
        return None if position is None else position // self._unit

    def _divide(self) -> None:
        unit = gcd(*(job.pane_size for job in self.jobs))
        if unit and unit != self._unit:
            self._unit = unit
            self.follower.order.clear()

    def _gap(self, gap: Gap) -> None:
        self._around.say(f"gap in the log: {gap}")
        for job in self.jobs:
            job.missing(gap)
