"""Reads a node's log once, and passes its lines to all jobs that read it alike (iMR, 4.1).

Files are listed, opened, read and split into lines once, however many jobs take the lines.
"""

from __future__ import annotations

from codecs import BOM_UTF8
from collections.abc import Mapping, Sequence
from io import BytesIO
from math import gcd

from millstream.agent.log.array_files import check_lines
from millstream.agent.log.line_slices import Slicer
from millstream.agent.log.log_files import LogGap
from millstream.agent.log.log_follower import LogFollower
from millstream.agent.log_notices import FileNotes
from millstream.agent.panes.job_panes import JobPanes
from millstream.agent.surroundings import Surroundings

LOOK = 0.25
"""Seconds between two looks at the files, when there is nothing to read."""


class NodeLog:
    """Reads a log for its jobs. Used by one thread."""

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
        self._logs = job.placed.logs
        self._unit = job.pane_size
        """Files are read in turns of this length on the axis: it divides all jobs' panes."""
        self.seen = around.wall()
        """The wall time just before the last look at the files. All lines written before it are
        known, even if the loop has been held up since."""
        self.read_bytes = 0
        self.follower = LogFollower(
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
        job.cursor.follower = self.follower
        notes.of_files(self.follower)

    @property
    def offsets(self) -> dict[str, int]:
        """The offset of each file, by its id."""
        return self.follower.offsets

    @property
    def place(self) -> int:
        """The sum of its offsets, to compare its progress with that of others."""
        return sum(self.offsets.values())

    def add(self, job: JobPanes) -> None:
        """Add a job that is at the same position."""
        self.jobs.append(job)
        job.cursor.follower = self.follower
        if job.stamps is not None:
            self.follower.stamps.append(job.stamps)
        self._divide()

    def remove(self, job: JobPanes) -> None:
        """Stop reading for a job."""
        self.jobs.remove(job)
        if job.stamps is not None:
            self.follower.stamps.remove(job.stamps)
        self._divide()

    def is_level_with(self, other: NodeLog) -> bool:
        """True if both readers are at the same position. Ignores deleted files that only the other
        still has open, and files that only this one has and has read completely."""
        mine, theirs = self.follower.offsets, other.follower.offsets
        gone = other.follower.missing  # files that only the other one still has open
        return all(
            file_id in gone if file_id not in mine else mine[file_id] == offset
            for file_id, offset in theirs.items()
        ) and all(file_id in theirs or self.follower.is_read(file_id) for file_id in mine)

    def look(self) -> None:
        """Look at the files, if that is due. Called only between two chunks."""
        now = self._around.clock()
        if now - self._looked >= LOOK and not self._once:
            self._looked, self.seen = now, self._around.wall()
            self.follower.look()
            self._notes.of_files(self.follower)

    def read(self, most: Mapping[str, int] | None = None) -> bool:
        """Read the next lines and pass them to the jobs. False if there is nothing to read for now.
        Raises CommandError if a file has no lines that can be read.

        A file in `most` is read no farther than the offset given there.
        """
        self.look()
        chunk = self.follower.read(most)
        if chunk is None:
            return False
        if chunk.start <= len(BOM_UTF8):
            data = BytesIO(chunk.data)
            check_lines(self._logs, chunk.file.path, data.read, growing=not self._once)
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

    def _gap(self, gap: LogGap) -> None:
        self._around.say(f"gap in the log: {gap}")
        for job in self.jobs:
            job.missing(gap)
