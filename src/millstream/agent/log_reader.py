"""One reading of a node's log: its files as they come, their lines in slices, for all jobs that
read them alike (iMR, 4.1).

Files are listed, opened, read and split into lines once, however many jobs take the lines.
"""

from __future__ import annotations

from collections.abc import Sequence

from millstream.agent.files import Gap
from millstream.agent.following import Follower
from millstream.agent.job_panes import JobPanes
from millstream.agent.slicing import Slicer
from millstream.agent.surroundings import Surroundings
from millstream.agent.telling import FileNotes

LOOK = 0.25
"""Seconds between two looks at the files, when there is nothing to read."""


class LogReader:
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
        self.seen = around.wall()
        """What time it was, at the latest, when the files were looked at: what was written by then
        is known, however long the loop was held up since."""
        self.follower = Follower(
            patterns,
            clock=around.clock,
            gap=self._gap,
            first_time=job.first_time,
            pane_of=job.pane_of,
            position=job.position,
            once=once,
            stamps=job.stamps,
            scratch=job.folder,
            framing=job.framing,
        )
        job.follower = self.follower
        notes.of_files(self.follower)

    def look(self) -> None:
        """See what became of the files, if that is due; never in the middle of a chunk."""
        now = self._around.clock()
        if now - self._looked >= LOOK and not self._once:
            self._looked, self.seen = now, self._around.wall()
            self.follower.look()
            self._notes.of_files(self.follower)

    def read(self) -> bool:
        """Read on and give it to the jobs; False if there is nothing to read for now."""
        self.look()
        chunk = self.follower.read()
        if chunk is None:
            return False
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

    def _gap(self, gap: Gap) -> None:
        self._around.say(f"gap in the log: {gap}")
        for job in self.jobs:
            job.missing(gap)
