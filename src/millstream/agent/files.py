"""One file of a log, known by what it is and not by its name.

A log is renamed, copied and cut off while it is read. So a file is known by its device and inode
and by its first bytes, and where it was read to by the bytes before that place: together they tell
a file that was renamed from one that was cut off, and a copy from another file.
"""

from __future__ import annotations

import os
from codecs import BOM_UTF8
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

from millstream.agent.framing import Framing

HEAD, TAIL = 256, 64
"""Bytes of a file's beginning, and of what was read last, that it is known by."""
PIECE = 256 * 1024
LONGEST = 1024 * 1024
"""A longer line is a dead letter."""


@dataclass(frozen=True, slots=True)
class Mark:
    """Where a file was read to; JSON, for the restart point."""

    id: str
    """Device and inode."""
    name: str
    head: str
    """Of the first bytes: how many, and their checksum."""
    offset: int
    tail: str
    """Of the bytes before the offset."""
    size: int
    """How long it was when last looked at."""
    done: bool
    """Whether it was read to its end and the log went on in another file."""
    written: int = 0
    """When it was written last, in nanoseconds; 0 in marks of before."""
    first: int | None = None
    """The time of its first line, if that has one."""

    def described(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole lines of a file; or, if it is `too_long`, the place of one line that is left out."""

    file: LogFile
    start: int
    data: bytes
    size: int
    too_long: bool = False


@dataclass(frozen=True, slots=True)
class Gap:
    """Part of a log that was not read and cannot be any more."""

    name: str
    offset: int
    known_bytes: int
    """How many are known to be missing; there may have been more."""
    why: str

    def __str__(self) -> str:
        least = f"{self.known_bytes:,} bytes or more" if self.known_bytes else "what came after it"
        return f"{self.name}: {self.why}; read up to byte {self.offset:,}, {least} cannot be read"


class LogFile:
    """A file that is followed; `offset` is where its first unread line begins."""

    def __init__(
        self, path: Path, offset: int = 0, packed: tuple[os.stat_result, bytes] | None = None
    ) -> None:
        """Open it; OSError if that cannot be. `packed`: it is a compressed file, which is not
        opened yet, and how it begins when it is unpacked."""
        self.path = path
        self.fd = -1 if packed else os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            stat, self.head = packed or (os.fstat(self.fd), os.pread(self.fd, HEAD, 0))
        except OSError:
            os.close(self.fd)
            raise
        self.id = id_of(stat)
        self.size, self.written = stat.st_size, stat.st_mtime_ns
        if packed:  # how long it is unpacked is not known
            self.size = max(stat.st_size, offset + 1)
        self.longest = self.size
        """How long it was, since it began."""
        self.final = False
        """Whether nothing follows: its last line is whole, with or without its end."""
        self.framing: Framing | None = None
        """Which lines are one record, if not each alone."""
        self._silent_at = -1
        """The size at which nothing was written for a while."""
        self.offset = offset
        self.tail = b"" if packed else os.pread(self.fd, min(TAIL, offset), max(0, offset - TAIL))
        self.missing = False
        """Whether no name leads to it any more."""
        self.since = 0.0
        """When it was last seen to change; the follower's clock."""
        self.order: tuple[int, int, str] = (0, 0, "")
        """Which file is read first: see `following`."""
        self.first: int | None = None
        """The time of its first line."""
        self._scanned = 0
        """How far a line that is too long was looked through for its end."""
        self._tried = -1
        """The size at which there was no whole line more."""

    @property
    def key(self) -> str:
        """What it is and how its first line begins, which must be there: the same as it grows."""
        first = self.head.partition(b"\n")[0]
        return f"{self.id}:{crc32(first):08x}"

    @property
    def is_open(self) -> bool:
        return self.fd >= 0

    @property
    def unread(self) -> bool:
        """Whether there may be a line to read."""
        return self.size > self.offset and self.size != self._tried

    @property
    def at_end(self) -> bool:
        return self.size <= self.offset

    def close(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)
            self.fd = -1

    def reopen(self) -> None:
        """Open it by its name again; OSError, also if the name leads to another file now."""
        fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        if id_of(os.fstat(fd)) != self.id:
            os.close(fd)
            raise FileNotFoundError(f"{self.path} is another file now")
        self.fd = fd

    def look(self) -> bool:
        """See how long it is; False if it was cut off: what was read is no longer there.

        OSError if that cannot be seen; FileNotFoundError if it was closed, and is gone.
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
        """It was cut off: what there is now is new."""
        self.offset = self._scanned = 0
        self.longest, self._tried = self.size, -1
        self.head, self.tail = os.pread(self.fd, HEAD, 0), b""

    def end(self) -> None:
        """Nothing follows: take the last line as it is."""
        self.final, self._tried = True, -1

    def is_silent(self) -> None:
        """Nothing was written for a while: take the last record as it is."""
        if self.framing is not None and self._tried == self.size and self._silent_at != self.size:
            self._silent_at, self._tried = self.size, -1

    def read(self) -> Chunk | None:
        """The next whole lines; None: none yet.

        FileNotFoundError if the file was cut off before or while it was read.
        """
        if not self.offset and os.pread(self.fd, len(BOM_UTF8), 0) == BOM_UTF8:
            self._move(len(BOM_UTF8), BOM_UTF8)  # it is no part of the first line
        data = os.pread(self.fd, PIECE, self.offset)
        if not self._whole(data) and len(data) == PIECE:
            data = os.pread(self.fd, LONGEST + 1, self.offset)
        if not self.look():
            raise FileNotFoundError(f"{self.path} was cut off")
        size = self._whole(data)
        if not size and len(data) > LONGEST:
            return self._past_long_line()
        if not size and self.final:
            size = len(data)
        if not size:
            self._tried = self.size
            return None
        chunk = Chunk(self, self.offset, data[:size], size)
        self._move(size, chunk.data)
        return chunk

    def peek(self) -> bytes | None:
        """The next line, if it is there whole and of a usual length."""
        try:
            with self._opened():
                line, end, _ = os.pread(self.fd, 16_384, self.offset).partition(b"\n")
        except OSError:
            return None
        return line.removeprefix(BOM_UTF8) if end else None

    def first_line(self) -> bytes | None:
        """The line that it begins with, if it is there whole."""
        line, end, _ = os.pread(self.fd, 65_536, 0).partition(b"\n")
        return line.removeprefix(BOM_UTF8) if end else None

    def put_back(self, chunk: Chunk, kept: int) -> Chunk:
        """Have read only so much of what was read last, up to the end of a line."""
        self.offset = self._scanned = chunk.start + kept
        self.tail = chunk.data[:kept][-TAIL:]
        return Chunk(self, chunk.start, chunk.data[:kept], kept)

    def again(self, start: int, end: int) -> Iterator[Chunk]:
        """What was read before between two places; FileNotFoundError if it is not there."""
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
                    raise FileNotFoundError(f"{self.path} was cut off")
                size = min(chunk.size, end - chunk.start)
                data = chunk.data if chunk.too_long else chunk.data[:size]
                yield Chunk(self, chunk.start, data, size, chunk.too_long)
        finally:
            twin.close()

    def mark(self, *, done: bool, offset: int | None = None, tail: bytes | None = None) -> Mark:
        """Where it was read to; or where `offset` is, with the bytes before it."""
        at = self.offset if offset is None else offset
        before = (self.tail if tail is None else tail)[-min(TAIL, at) :] if at else b""
        name, head = str(self.path), fingerprint(self.head)
        size = max(self.size, at)
        return Mark(
            self.id, name, head, at, fingerprint(before), size, done, self.written, self.first
        )

    def is_at(self, mark: Mark) -> bool:
        """Whether it has what a mark says was read: it is that file, or a copy of it."""
        return (
            self.fd >= 0
            and self.size >= mark.offset
            and matches(self.fd, 0, mark.head)
            and matches(self.fd, mark.offset - length_of(mark.tail), mark.tail)
        )

    def was_at(self, mark: Mark) -> bool:
        """The same, of a file that is followed and may be closed."""
        try:
            with self._opened():
                return self.is_at(mark)
        except OSError:
            return False

    @contextmanager
    def _opened(self) -> Iterator[None]:
        """Open for as long as it takes; OSError if that cannot be."""
        was_open = self.is_open
        if not was_open:
            self.reopen()
        try:
            yield
        finally:
            if not was_open:
                self.close()

    def _whole(self, data: bytes) -> int:
        """How many bytes of what follows are of whole lines or, if several are one, records."""
        end = data.rfind(b"\n") + 1
        at_end = self.offset + len(data) >= self.size
        if self.framing is None or (at_end and (self.final or self._silent_at == self.size)):
            return end
        return self.framing.whole(data) or (end if len(data) > LONGEST else 0)

    def _has_what_was_read(self) -> bool:
        """Whether it begins as it did, and what was read last is in its place."""
        head, tail = os.pread(self.fd, HEAD, 0), self.tail
        if not head.startswith(self.head):
            return False
        if tail and os.pread(self.fd, len(tail), self.offset - len(tail)) != tail:
            return False
        self.head = head
        return True

    def _look_at_closed(self) -> None:
        """Its name may lead to another file by now, and so may its number: that of a file which
        was deleted is given to a new one."""
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

    def _past_long_line(self) -> Chunk | None:
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

    def _left_out(self, size: int) -> Chunk:
        start = os.pread(self.fd, 200, self.offset)
        chunk = Chunk(self, self.offset, start, size, too_long=True)
        self._move(size, os.pread(self.fd, TAIL, self.offset + size - TAIL))
        return chunk

    def _move(self, size: int, read: bytes) -> None:
        self.tail = (self.tail + read[-TAIL:])[-TAIL:]
        self.offset += size
        self._scanned, self._tried = self.offset, -1


def gap_of(file: LogFile, why: str) -> Gap:
    """What is missing of a file that cannot be read any more."""
    return Gap(str(file.path), file.offset, max(0, file.longest - file.offset), why)


def have_same_bytes(file: LogFile, other: LogFile) -> bool:
    """Whether two files that are open have the same bytes, as far as the other was read."""
    to = min(file.size, other.offset)
    if not to or not other.is_open:
        return False
    spots = ((0, min(HEAD, to)), (max(0, to - TAIL), to))
    return all(
        os.pread(file.fd, end - start, start) == os.pread(other.fd, end - start, start)
        for start, end in spots
    )


def id_of(stat: os.stat_result) -> str:
    return f"{stat.st_dev}:{stat.st_ino}"


def fingerprint(data: bytes) -> str:
    """How many bytes, and their checksum."""
    return f"{len(data)}:{crc32(data):08x}"


def length_of(mark: str) -> int:
    return int(mark.partition(":")[0])


def matches(fd: int, at: int, mark: str) -> bool:
    """Whether the bytes there are those of a fingerprint."""
    return fingerprint(os.pread(fd, length_of(mark), at)) == mark
