"""One reading of a log for all jobs that read it alike, also if they are at different places.

DESIGN
------
Jobs whose `logs` say the same of lines, and whose panes are along the same axis, take the lines of
one `NodeLog`, the *main* one. Each job has its own restart point, so after a start they are at
different places; and a job that is added later begins at the beginning. Such a job reads by itself
first, from its own place, and never past the main reader in any file. When it is where the main
reader is, in all files, its own reading is closed, and it takes the lines of the main one. While it
is behind it reads up to `QUICKER` pieces for each that the main one reads, so that it comes nearer;
the jobs of the main one go on meanwhile.

So each job has every line after its restart point, once: whatever the others do.
"""

from __future__ import annotations

from collections.abc import Callable

from millstream.agent.job_panes import JobPanes
from millstream.agent.node_log import LOOK, NodeLog

QUICKER = 2


class SharedReading:
    """A main reading, and those that catch up with it. One thread."""

    def __init__(self, open_reader: Callable[[JobPanes], NodeLog]) -> None:
        self._open = open_reader
        self._readers: list[NodeLog] = []
        """The main one first."""
        self._at_end = False
        """Whether the main one has nothing to read for now."""
        self._idled = -LOOK

    @property
    def jobs(self) -> list[JobPanes]:
        return [job for reader in self._readers for job in reader.jobs]

    @property
    def empty(self) -> bool:
        """Whether no file was found."""
        return all(reader.follower.empty for reader in self._readers)

    @property
    def wanted(self) -> bool:
        """Whether a job takes more lines."""
        return any(not job.over for job in self.jobs)

    def add(self, job: JobPanes) -> None:
        """Read for a job too, from its own place on."""
        self._readers.append(self._open(job))
        if not any(reader.read_bytes for reader in self._readers):  # the agent starts
            self._readers.sort(key=lambda one: -one.place)
        self._join()

    def remove(self, job: JobPanes) -> None:
        """Read no more for a job."""
        for reader in self._readers:
            if job in reader.jobs:
                reader.remove(job)
        self._close_unused()

    def look(self) -> None:
        for reader in self._readers:
            reader.look()

    def read(self) -> bool:
        """Read some of the log for all jobs; False if there is nothing to read for now."""
        if not self._readers:
            return False
        main, *behind = self._readers
        some = main.read()
        self._at_end = not some
        for reader in behind:
            for _ in range(QUICKER):
                if not reader.read(main.offsets):
                    break
                some = True
        if behind:
            self._join()
        return some

    def idle(self, now: float) -> None:
        """There is nothing to read for the main reader: panes whose time is over are ended."""
        if self._at_end and self._readers and now - self._idled >= LOOK / 2:
            self._idled = now
            for job in self._readers[0].jobs:
                job.idle(self._readers[0].seen)

    def waited(self, seconds: float) -> None:
        for job in self.jobs:
            job.waited(seconds)

    def close(self) -> None:
        for reader in self._readers:
            reader.close()

    def _join(self) -> None:
        """Those that have caught up go on together."""
        main, *behind = self._readers
        for reader in behind:
            if reader.is_level_with(main):
                for job in list(reader.jobs):
                    reader.remove(job)
                    main.add(job)
        self._close_unused()

    def _close_unused(self) -> None:
        main = self._readers[0]
        for reader in [one for one in self._readers if not one.jobs]:
            reader.close()
            self._readers.remove(reader)
        if not main.jobs:  # another one leads: the farthest
            self._readers.sort(key=lambda one: -one.place)
