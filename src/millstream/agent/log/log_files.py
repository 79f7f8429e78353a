"""One file of a log, identified by its inode and content, not by its name.

A log is renamed, copied and truncated while it is read. So a file is identified by its device and
inode and by its first bytes. The offset that it was read to is verified by the bytes before it.
Together they tell a renamed file from a truncated one, and a copy from another file.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from zlib import crc32

import msgspec

from millstream.agent.log.multiline_records import Framing

HEAD, TAIL = 256, 64
"""A file is identified by this many of its first bytes, and of the bytes that were read last."""
PIECE = 256 * 1024
LONGEST = 1024 * 1024
"""A line of more bytes is a dead letter."""


class Mark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The offset up to which a file was read; stored as JSON in the restart point."""

    id: str
    """Device and inode."""
    name: str
    head: str
    """The fingerprint of its first bytes: their number and their checksum."""
    offset: int
    tail: str
    """The fingerprint of the bytes before the offset."""
    size: int
    """The file's size when it was last looked at."""
    done: bool
    """True if it was read to its end and the log went on in another file."""
    written: int = 0
    """When it was last written, in nanoseconds; 0 in marks of older versions."""
    first: int | None = None
    """The time of its first line, if the line has one."""


@dataclass(frozen=True, slots=True)
class LineChunk:
    """Whole lines of a file. If `too_long`: one line that is skipped; `data` is its beginning."""

    file: LogFile
    start: int
    data: bytes
    size: int
    too_long: bool = False


@dataclass(frozen=True, slots=True)
class LogGap:
    """Part of a log that was not read and cannot be read any more."""

    name: str
    offset: int
    known_bytes: int
    """Bytes that are known to be missing; there may have been more."""
    why: str

    def __str__(self) -> str:
        least = f"{self.known_bytes:,} bytes or more" if self.known_bytes else "what came after it"
        return f"{self.name}: {self.why}; read up to byte {self.offset:,}, {least} cannot be read"


class LogFile:
    """A file that is followed. `offset` is where its first unread line begins."""

    def __init__(
        self, path: Path, offset: int = 0, packed: tuple[os.stat_result, bytes] | None = None
    ) -> None:
        """Open the file; raises OSError if that fails. `packed` is given for a compressed file,
        which is not opened yet: its stat, and the first bytes of its unpacked content."""
        self.path = path
        self.fd = -1 if packed else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            stat, self.head = packed or (os.fstat(self.fd), os.pread(self.fd, HEAD, 0))
            first = max(0, offset - TAIL)
            self.tail = b"" if packed else os.pread(self.fd, min(TAIL, offset), first)
        except OSError:
            os.close(self.fd)
            raise
        self.id = id_of(stat)
        self.size, self.written = stat.st_size, stat.st_mtime_ns
        if packed:  # the unpacked size is not known
            self.size = max(stat.st_size, offset + 1)
        self.longest = self.size
        """The size when it was last seen intact; a later look may find it truncated."""
        self.final = False
        """True if nothing follows: its last line is whole, with or without a line end."""
        self.framing: Framing | None = None
        """Tells which lines form a record; None if each line is one."""
        self._silent_at = -1
        """The size at which nothing was written for a while."""
        self.offset = offset
        self.missing = False
        """True if no name leads to it any more."""
        self.since = 0.0
        """When it was last seen to change, by the follower's clock."""
        self.order: tuple[int, int, str] = (0, 0, "")
        """Files are read in this order: see `log_follower`."""
        self.first: int | None = None
        """The time of its first line."""
        self._scanned = 0
        """The offset up to which the end of a line that is too long was searched for."""
        self._tried = -1
        """The size at which a read found no further whole line."""

    @property
    def key(self) -> str:
        """Its id and the checksum of the beginning of its first line: stays the same as it grows.

        The first line must be there.
        """
        first_line = self.head.partition(b"\n")[0]
        return f"{self.id}:{crc32(first_line):08x}"

    @property
    def is_open(self) -> bool:
        return self.fd >= 0

    @property
    def unread(self) -> bool:
        """True if there may be a line to read."""
        return self.size > self.offset and self.size != self._tried

    @property
    def at_end(self) -> bool:
        return self.size <= self.offset

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def reopen(self) -> None:
        """Open it by its name again. Raises OSError, also if the name leads to another file now."""
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        if id_of(os.fstat(fd)) != self.id:
            os.close(fd)
            raise FileNotFoundError(f"{self.path} is another file now")
        self.fd = fd

    def look(self) -> bool:
        """Update its size. False if it was truncated: the bytes that were read are not there.

        Raises OSError if the file cannot be examined, FileNotFoundError if it was closed and is
        gone.
        """
        if self.fd < 0:
            self._look_at_closed()
            return True
        stat = os.fstat(self.fd)
        self.size, self.written = stat.st_size, stat.st_mtime_ns
        if self.size < self.offset or not self._has_what_was_read():
            return False
        self.longest = self.size
        return True

    def begin_again(self) -> None:
        """Start at offset 0 after a truncation: all that is in the file is new."""
        self.offset = self._scanned = 0
        self.longest, self._tried = self.size, -1
        self.head, self.tail = os.pread(self.fd, HEAD, 0), b""

    def end(self) -> None:
        """Nothing follows: the last line counts as whole."""
        self.final, self._tried = True, -1

    def is_silent(self) -> None:
        """Nothing was written for a while: the last record counts as whole."""
        if self.framing is not None and self._tried == self.size and self._silent_at != self.size:
            self._silent_at, self._tried = self.size, -1

    def read(self) -> LineChunk | None:
        """Returns the next whole lines; None if there are none yet.

        Raises FileNotFoundError if the file was truncated before or while it was read.
        """
        if not self.offset and os.pread(self.fd, len(BOM_UTF8), 0) == BOM_UTF8:
            self._move(len(BOM_UTF8), BOM_UTF8)  # the mark is not part of the first line
        data = os.pread(self.fd, PIECE, self.offset)
        if not self._whole(data) and len(data) == PIECE:
            data = os.pread(self.fd, LONGEST + 1, self.offset)
        if not self.look():
            raise FileNotFoundError(f"{self.path} was truncated")
        size = self._whole(data)
        if not size and len(data) > LONGEST:
            return self._past_long_line()
        if not size and self.final:
            size = len(data)
        if not size:
            self._tried = self.size
            return None
        chunk = LineChunk(self, self.offset, data[:size], size)
        self._move(size, chunk.data)
        return chunk

    def peek(self) -> bytes | None:
        """Returns the next line, if it is complete and not longer than 16 KiB."""
        try:
            with self._opened():
                line, end, _ = os.pread(self.fd, 16_384, self.offset).partition(b"\n")
        except OSError:
            return None
        return line.removeprefix(BOM_UTF8) if end else None

    def first_line(self) -> bytes | None:
        """Returns the first line of the file, if it is complete and not longer than 64 KiB."""
        line, end, _ = os.pread(self.fd, 65_536, 0).partition(b"\n")
        return line.removeprefix(BOM_UTF8) if end else None

    def put_back(self, chunk: LineChunk, kept: int) -> LineChunk:
        """Unread the last chunk except its first `kept` bytes, which end with a line."""
        self.offset = self._scanned = chunk.start + kept
        self.tail = chunk.data[:kept][-TAIL:]
        return LineChunk(self, chunk.start, chunk.data[:kept], kept)

    def again(self, start: int, end: int) -> Iterator[LineChunk]:
        """Reads a byte range again. Raises FileNotFoundError if it is not there any more."""
        twin = copy(self)
        if self.fd >= 0:
            twin.fd = os.dup(self.fd)
        else:
            twin.reopen()
        try:
            twin.offset, twin._scanned, twin.tail = start, start, b""
            twin.end()
            while twin.offset < end:
                chunk = twin.read()
                if chunk is None:
                    raise FileNotFoundError(f"{self.path} was truncated")
                size = min(chunk.size, end - chunk.start)
                data = chunk.data if chunk.too_long else chunk.data[:size]
                yield LineChunk(self, chunk.start, data, size, chunk.too_long)
        finally:
            twin.close()

    def mark(self, *, done: bool, offset: int | None = None, tail: bytes | None = None) -> Mark:
        """Returns a mark at its offset; or at `offset`, with `tail` as the bytes before that."""
        at = self.offset if offset is None else offset
        before = (self.tail if tail is None else tail)[-min(TAIL, at) :] if at else b""
        name, head = str(self.path), fingerprint(self.head)
        size = max(self.size, at)
        return Mark(
            self.id, name, head, at, fingerprint(before), size, done, self.written, self.first
        )

    def is_at(self, mark: Mark) -> bool:
        """True if it has the bytes that a mark says were read: it is that file, or a copy."""
        return (
            self.fd >= 0
            and self.size >= mark.offset
            and matches(self.fd, 0, mark.head)
            and matches(self.fd, mark.offset - length_of(mark.tail), mark.tail)
        )

    def was_at(self, mark: Mark) -> bool:
        """Like `is_at`, for a file that is followed and may be closed."""
        try:
            with self._opened():
                return self.is_at(mark)
        except OSError:
            return False

    @contextmanager
    def _opened(self) -> Iterator[None]:
        """Keep the file open inside a `with` block. Raises OSError if it cannot be opened."""
        was_open = self.is_open
        if not was_open:
            self.reopen()
        try:
            yield
        finally:
            if not was_open:
                self.close()

    def _whole(self, data: bytes) -> int:
        """Returns how many bytes of `data` are whole lines; with framing, whole records."""
        end = data.rfind(b"\n") + 1
        at_end = self.offset + len(data) >= self.size
        if self.framing is None or (at_end and (self.final or self._silent_at == self.size)):
            return end
        return self.framing.whole(data) or (end if len(data) > LONGEST else 0)

    def _has_what_was_read(self) -> bool:
        """True if it begins as it did, and the bytes read last are still before its offset."""
        head, tail = os.pread(self.fd, HEAD, 0), self.tail
        if not head.startswith(self.head):
            return False
        if tail and os.pread(self.fd, len(tail), self.offset - len(tail)) != tail:
            return False
        self.head = head
        return True

    def _look_at_closed(self) -> None:
        # The name may lead to another file by now. So may the inode number: the system gives that
        # of a deleted file to a new one.
        stat = os.stat(self.path)
        gone = FileNotFoundError(f"{self.path} is another file now")
        if id_of(stat) != self.id:
            raise gone
        if (stat.st_size, stat.st_mtime_ns) != (self.size, self.written):
            with self._opened():
                if stat.st_size < self.offset or not self._has_what_was_read():
                    raise gone
        self.size, self.written = stat.st_size, stat.st_mtime_ns
        self.longest = self.size

    def _past_long_line(self) -> LineChunk | None:
        at = max(self._scanned, self.offset)
        while piece := os.pread(self.fd, PIECE, at):
            end = piece.find(b"\n")
            if end >= 0:
                return self._left_out(at + end + 1 - self.offset)
            at += len(piece)
            self._scanned = at
        if self.final:
            return self._left_out(at - self.offset)
        self._tried = self.size
        return None

    def _left_out(self, size: int) -> LineChunk:
        start = os.pread(self.fd, 200, self.offset)
        chunk = LineChunk(self, self.offset, start, size, too_long=True)
        self._move(size, os.pread(self.fd, TAIL, self.offset + size - TAIL))
        return chunk

    def _move(self, size: int, read: bytes) -> None:
        self.tail = (self.tail + read[-TAIL:])[-TAIL:]
        self.offset += size
        self._scanned, self._tried = self.offset, -1


def gap_after(mark: Mark, why: str) -> LogGap:
    """Returns the gap from a mark to the end of the file as it was then."""
    return LogGap(mark.name, mark.offset, mark.size - mark.offset, why)


def gap_of(file: LogFile, why: str) -> LogGap:
    """Returns the gap left by a file that cannot be read any more."""
    return LogGap(str(file.path), file.offset, max(0, file.longest - file.offset), why)


def have_same_bytes(file: LogFile, other: LogFile) -> bool:
    """True if two open files have the same bytes, as far as `other` was read.

    Compares the first bytes and the last bytes of that range only.
    """
    length = min(file.size, other.offset)
    if not length or not other.is_open:
        return False
    spots = ((0, min(HEAD, length)), (max(0, length - TAIL), length))
    return all(
        os.pread(file.fd, end - start, start) == os.pread(other.fd, end - start, start)
        for start, end in spots
    )


def id_of(stat: os.stat_result) -> str:
    return f"{stat.st_dev}:{stat.st_ino}"


def fingerprint(data: bytes) -> str:
    """Returns the number of bytes and their checksum."""
    return f"{len(data)}:{crc32(data):08x}"


def length_of(mark: str) -> int:
    return int(mark.partition(":")[0])


def matches(fd: int, at: int, mark: str) -> bool:
    """True if the bytes at an offset have a fingerprint."""
    return fingerprint(os.pread(fd, length_of(mark), at)) == mark
