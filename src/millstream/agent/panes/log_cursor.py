"""How far a job has come in the log: before which line of which slice."""

from __future__ import annotations

from collections.abc import Iterator

from millstream.agent.log.line_slices import Slice, Slicer, size_of
from millstream.agent.log.log_files import LineChunk, Mark
from millstream.agent.log.log_follower import LogFollower
from millstream.agent.panes.record_stamps import RecordStamps
from millstream.agent.panes.rounds import Region


class LogCursor:
    """The place of a job in the log. Used by one thread."""

    def __init__(self, slicer: Slicer, stamps: RecordStamps) -> None:
        self._slicer, self._stamps = slicer, stamps
        self.follower: LogFollower | None = None
        """Follows the files of the log; set by the reading."""
        self._at: tuple[LineChunk, Slice] | None = None
        """The slice that is being processed, and its chunk."""
        self._sized = (0, 0)
        """A number of first lines of that slice, and their bytes."""

    def enter(self, chunk: LineChunk, lines: Slice) -> None:
        """Notes the slice that is processed from now on."""
        self._at, self._sized = (chunk, lines), (0, 0)

    def leave(self) -> None:
        """Notes that all of the slices that were entered is processed."""
        self._at = None

    def position(self, index: int) -> list[Mark]:
        """Returns the position in the log before a line of the current slice."""
        assert self.follower is not None
        if self._at is None:
            return self.follower.position()
        chunk, part = self._at
        known, size = self._sized
        self._sized = (index, size + size_of(part.lines[known:index]))
        return self.follower.position(chunk, part.offset + self._sized[1])

    def again(self, region: Region) -> Iterator[tuple[LineChunk, int, Slice | None]]:
        """Reads the lines of a region again. A slice of None stands for a line that is too long."""
        assert self.follower is not None
        for chunk in self.follower.again(region.start.position, region.end):
            if chunk.too_long:
                yield chunk, 0, None
                continue
            for part in self._slicer.slices(chunk):
                for stamp, lines in self._stamps.runs(chunk, part):
                    yield chunk, stamp, lines
