"""Reads a log once for all jobs that read it alike, even if they are at different positions.

DESIGN
------
Jobs with equal `kin` (`JobPanes.kin`) take the lines of one `NodeLog`, the *main reader*. Each job
has its own restart point, so after a start they are at different positions, and a job that is added
later begins at the beginning of the log. Such a job first gets a reader of its own, which starts at
its position and never passes the main reader in any file. When it has caught up with the main
reader in all files, its own reader is closed, and it takes the lines of the main one. While it is
behind, it reads up to `QUICKER` chunks for each chunk of the main reader, so that it catches up.
The jobs of the main reader go on meanwhile.

So each job gets every line after its restart point once, independently of the others.
"""

from __future__ import annotations

from collections.abc import Callable

from millstream.agent.node_log import LOOK, NodeLog
from millstream.agent.panes.job_panes import JobPanes

QUICKER = 2


class SharedReading:
    """The main reader, and the readers that catch up with it. Used by one thread."""

    def __init__(self, open_reader: Callable[[JobPanes], NodeLog]) -> None:
        self._open = open_reader
        self._readers: list[NodeLog] = []
        """The main reader comes first."""
        self._at_end = False
        """True if the main reader has nothing to read for now."""
        self._idled = -LOOK

    @property
    def jobs(self) -> list[JobPanes]:
        return [job for reader in self._readers for job in reader.jobs]

    @property
    def empty(self) -> bool:
        """True if no file was found."""
        return all(reader.follower.empty for reader in self._readers)

    @property
    def wanted(self) -> bool:
        """True if some job takes more lines."""
        return any(not job.over for job in self.jobs)

    def add(self, job: JobPanes) -> None:
        """Add a job, which reads from its own position on."""
        self._readers.append(self._open(job))
        if not any(reader.read_bytes for reader in self._readers):  # the agent starts
            self._readers.sort(key=lambda reader: -reader.place)
        self._join()

    def remove(self, job: JobPanes) -> None:
        """Stop reading for a job."""
        for reader in self._readers:
            if job in reader.jobs:
                reader.remove(job)
        self._close_unused()

    def look(self) -> None:
        for reader in self._readers:
            reader.look()

    def read(self) -> bool:
        """Read some chunks for all jobs. False if there is nothing to read for now."""
        if not self._readers:
            return False
        main, *behind = self._readers
        has_read = main.read()
        self._at_end = not has_read
        for reader in behind:
            for _ in range(QUICKER):
                if not reader.read(main.offsets):
                    break
                has_read = True
        if behind:
            self._join()
        return has_read

    def idle(self, now: float) -> None:
        """End the panes whose time is over, if the main reader has nothing to read."""
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
        """Move jobs that have caught up to the main reader."""
        main, *behind = self._readers
        for reader in behind:
            if reader.is_level_with(main):
                for job in list(reader.jobs):
                    reader.remove(job)
                    main.add(job)
        self._close_unused()

    def _close_unused(self) -> None:
        main = self._readers[0]
        for reader in [reader for reader in self._readers if not reader.jobs]:
            reader.close()
            self._readers.remove(reader)
        if not main.jobs:  # the reader that is farthest ahead becomes the main one
            self._readers.sort(key=lambda reader: -reader.place)
