"""Reads a log: any number of readers, in any process, with or without a writer.

A reader reads up to the position in `end`, never further: everything before it is on disk and does
not change. If `end` is missing or damaged, the reader scans the blocks themselves. It also does so
when it is opened while there is no writer, since a power cut may have left an older `end`. Block
boundaries are read from headers alone, which have their own checksum; `blocks` checks the content
too.

The writer may remove old segments at any time, up to the position that all readers have committed.
A reader that asks for removed records gets a LogError that names them. An iteration still reaches
the end of its current segment, since an open file stays readable.

A reader belongs to one thread at a time.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from millstream.durable import sync
from millstream.errors import LogError
from millstream.log.blocks import HEADER_BYTES, BadBlock, Header, Tag, decode_header, walk
from millstream.log.marks import Marks
from millstream.log.readers import commit, knows
from millstream.log.segments import Segment, damaged, list_segments, read_end, unreadable, unwritten

NOWHERE = [0, 0]
"""The position where every log begins."""


class Block(NamedTuple):
    """One append, or several together: its records and its position."""

    offset: int
    next_offset: int
    first: int
    count: int  # type: ignore[assignment]  # hides tuple.count
    stamp: int
    lines: list[bytes]
    tags: list[Tag]


class Removed(LogError):
    """Retention has removed the requested records; the log begins at the reader's `start`."""


class LogReader:
    """A reader of the log at a path. A log that does not exist yet is empty."""

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.end: list[int] = list(NOWHERE)
        """The end of the log at the last reload."""
        self._segments: list[Segment] = []
        self._marks: dict[int, Marks] = {}
        self._file = -1
        self._open = Segment(0, 0, "")
        """The segment open in `_file`, if any is."""
        self._until = 0
        """The offset of the end of that file when it was last checked."""
        self.reload()
        with unwritten(self.path) as alone:
            if alone:
                self.end = max(self.end, self._look(self.end))

    def reload(self) -> None:
        """Update `end` to what was appended since."""
        end = read_end(self.path)
        if end is None or end < self.end:
            end = self._look(max(end or NOWHERE, self.end))
            if end < self.end:
                raise self._replaced(self.end)
        self.end = end

    @property
    def start(self) -> list[int]:
        """The first position that retention has kept."""
        if not self._segments or not os.path.exists(self._segments[0].path):
            self._list()
        return [*self._segments[0][:2]] if self._segments else list(NOWHERE)

    def take(self, position: Sequence[int], max_bytes: int | None = None) -> list[int]:
        """The end of a batch from a position on: whole blocks, at least one if there is any."""
        header = self._header_at(position)
        goal = self.end[0] if max_bytes is None else position[0] + max(0, max_bytes)
        if header is None or goal >= self.end[0]:
            return list(self.end)
        low, _ = self._around(goal)
        if low[0] > position[0]:
            return low
        return [position[0] + header.size, header.first + header.count]

    def ranges(
        self, start: Sequence[int], end: Sequence[int], target_bytes: int
    ) -> list[tuple[int, int]]:
        """Divides the bytes between two positions into ranges of whole blocks.

        Each range has `target_bytes` or more, except perhaps the last.
        """
        self._header_at(start)
        self._header_at(end)
        ranges, at = [], start[0]
        while at < end[0]:
            goal = at + max(1, target_bytes)
            stop = end[0] if goal >= end[0] else self._around(goal)[1][0]
            ranges.append((at, stop))
            at = stop
        return ranges

    def bytes_between(self, start: Sequence[int], end: Sequence[int]) -> int:
        """The number of bytes between two positions."""
        return end[0] - start[0]

    def stamp_at(self, position: Sequence[int]) -> int | None:
        """The time at which the block at a position was appended; None at the end."""
        header = self._header_at(position)
        return None if header is None else header.stamp

    def find(self, record: int) -> list[int]:
        """The position of the block that holds a record.

        Returns the end if the record does not exist yet, the start if it was removed.
        """
        self._list()
        if record >= self.end[1]:
            return list(self.end)
        if record < self.start[1]:
            return self.start
        segment = self._segments[bisect_right(self._segments, record, key=lambda s: s.first) - 1]
        try:
            for at, header in self._hop(self._marks_of(segment).below_record(record)):
                if header.first + header.count > record:
                    return [at, header.first]
        except Removed:
            return self.find(record)
        return list(self.end)

    def blocks(self, start_offset: int, stop_offset: int) -> Iterator[Block]:
        """The blocks between two offsets at block boundaries, their content checked."""
        self._reach(stop_offset)
        at, number = start_offset, -1
        while at < stop_offset:
            segment = self._segment_of(at, None if number < 0 else number)
            file = os.dup(self._file)  # other calls may close `_file` during the iteration
            try:
                stop = min(stop_offset, segment.offset + os.fstat(file).st_size)
                for block in walk(file, segment.offset, at, stop, number):
                    at, header = block.next_offset, block.header
                    number = header.first + header.count
                    yield Block(
                        block.offset,
                        at,
                        header.first,
                        header.count,
                        header.stamp,
                        block.lines(),
                        block.tags(),
                    )
            except BadBlock as error:
                raise damaged(segment, error.offset - segment.offset, error.why) from None
            except OSError as error:
                raise unreadable(self.path, error) from None
            finally:
                os.close(file)

    def commit(self, name: str, position: Sequence[int]) -> None:
        """Record that the reader of this name needs nothing before the position any more."""
        commit(self.path, name, position)

    def knows(self, name: str) -> bool:
        """True if the reader of this name has ever committed."""
        return knows(self.path, name)

    def close(self) -> None:
        """Close the open file."""
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _header_at(self, position: Sequence[int]) -> Header | None:
        """The header of the block at a position, None at the end; LogError if none begins there."""
        offset, records = position
        self._reach(offset)
        if offset == self.end[0]:
            header, first = None, self.end[1]
        else:
            header = self._header(offset, records)
            first = header.first
            self._marks_of(self._segment_of(offset)).add(offset, first)
        if first != records:
            raise self._replaced(position)
        return header

    def _around(self, offset: int) -> tuple[list[int], list[int]]:
        """The last block boundary at or before an offset, and the first at or after it."""
        for at, header in self._hop(self._marks_of(self._segment_of(offset)).below_offset(offset)):
            if at + header.size > offset:
                low = [at, header.first]
                return low, low if at == offset else [at + header.size, header.first + header.count]
        return list(self.end), list(self.end)

    def _hop(self, boundary: tuple[int, int]) -> Iterator[tuple[int, Header]]:
        """Offsets and headers of the blocks from a boundary on, up to the end."""
        at, _ = boundary
        while at < self.end[0]:
            header = self._header(at)
            self._marks_of(self._open).add(at, header.first)
            yield at, header
            at += header.size

    def _header(self, offset: int, record: int | None = None) -> Header:
        segment = self._segment_of(offset, record)
        place = offset - segment.offset
        try:
            return decode_header(os.pread(self._file, HEADER_BYTES, place))
        except ValueError as error:
            raise damaged(segment, place, f"{error}, or this is no block's offset") from None
        except OSError as error:
            raise unreadable(self.path, error) from None

    def _segment_of(self, offset: int, record: int | None = None) -> Segment:
        """Opens the segment that has the byte at an offset, in `_file`."""
        if self._file >= 0 and self._open.offset <= offset:
            if offset >= self._until:
                self._until = self._open.offset + os.fstat(self._file).st_size
            if offset < self._until:
                return self._open
        for again in (False, True):
            if again or not self._segments or offset < self._segments[0].offset:
                self._list()
            if not self._segments:
                raise self._replaced([offset])
            if offset < self._segments[0].offset:
                raise self._removed(offset, record)
            segment = self._segments[bisect_right(self._segments, offset, key=_offset) - 1]
            if self._reopen(segment) and offset < self._until:
                return segment
        raise damaged(segment, offset - segment.offset, "the file is gone, or ends before that")

    def _reopen(self, segment: Segment) -> bool:
        """Open a segment; False if its file is gone."""
        self.close()
        try:
            self._file = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise unreadable(self.path, error) from None
        self._open = segment
        self._until = segment.offset + os.fstat(self._file).st_size
        return True

    def _list(self) -> None:
        self._segments = list_segments(self.path)
        listed = {segment.offset for segment in self._segments}
        self._marks = {at: marks for at, marks in self._marks.items() if at in listed}

    def _marks_of(self, segment: Segment) -> Marks:
        marks = self._marks.get(segment.offset)
        if marks is None:
            marks = self._marks[segment.offset] = Marks(segment.offset, segment.first)
        return marks

    def _reach(self, offset: int) -> None:
        """Check that the log reaches an offset; reloads if needed."""
        if offset > self.end[0]:
            self.reload()
        if offset > self.end[0]:
            # After a power cut `end` may be older than what is on disk and was read before.
            self.end = max(self.end, self._look(self.end))
        if offset > self.end[0]:
            raise self._replaced([offset])

    def _look(self, known: list[int]) -> list[int]:
        """Scans the blocks from `known` on for the end of the log, whatever the file `end` says."""
        self._list()
        if not self._segments:
            return list(NOWHERE)
        last = self._segments[-1]
        if not self._reopen(last):
            return self._look(known)
        position = [last.offset, last.first]
        if position < known and known[0] <= self._until:
            position = known
        seen = position
        try:
            for block in walk(self._file, last.offset, position[0], self._until, position[1]):
                position = [block.next_offset, block.header.first + block.header.count]
        except BadBlock:
            pass  # an append that is in progress, or was interrupted
        if position != seen:
            try:
                sync(last.path)  # a position that we return must be on disk; it may not be yet
            except OSError:
                pass  # a read-only medium
        return list(position)

    def _replaced(self, position: Sequence[int]) -> LogError:
        return LogError(
            f"log {self.path}: it ends at {self.end} and has no position {[*position]}; was the "
            "log replaced? Restore it, or begin with a fresh store"
        )

    def _removed(self, offset: int, record: int | None) -> Removed:
        start = self.start
        records = "records" if record is None else f"records {record} to {start[1] - 1}"
        return Removed(
            f"log {self.path}: {records} from offset {offset} to {start[0]} were removed by "
            f"retention; begin at {start}, or keep more: what a reader has yet to commit is not "
            "removed"
        )


def _offset(segment: Segment) -> int:
    return segment.offset
