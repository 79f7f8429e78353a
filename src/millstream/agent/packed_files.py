"""Compressed files of a log: rotations that were compressed, read or not (`app.log.2.gz`).

A file is read from a copy that is unpacked, on the disk and without a name. It is unpacked whole
before any line of it is used, and its checksum tested, so one that is still being written is not
read until it is whole.

While an agent runs, rotated files that it has read are compressed. These must not be read again,
and what was written while no agent ran must be. So a compressed file is compared with all that is
known of the files that were read, which includes the last of those that are gone:

- It begins as one of them, and has the bytes before the place where that was read to: it is that
  file, and is read from there. If it was written last when that was, it has no more.
- It begins as none. At a first start it is read whole, like any file. Later it is new if it was
  written after all that was known at the start and, if lines have times, does not begin before the
  newest file that was known.
- It was written before: it was read long ago, and is left alone.
- It was written after, but begins before. Then the two do not agree: perhaps it was compressed anew
  by something that does not keep the time of a file. It is left alone, and a gap is told.

What cannot be told apart: a file without times in its lines that was read long ago (so that its
mark is no longer kept) and got a new time is taken for new.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import re
import zlib
from codecs import BOM_UTF8
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Literal, cast

from millstream.agent.files import HEAD, Gap, LogFile, Mark, fingerprint, id_of, length_of

OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
PIECE = 1024 * 1024
AGAIN = 2.0
"""Seconds after which a file that was not whole is looked at again."""
REMEMBERED = 32
"""Files that were read and are gone whose marks are kept."""
BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)

FirstTime = Callable[[bytes], int | None]
Verdict = Literal["read", "known", "old", "doubtful"]


class TornFile(OSError):
    """A compressed file is not whole, or is none."""


class UnpackedFile(LogFile):
    """A compressed file that is read from an unpacked copy of it."""

    def __init__(self, path: Path, offset: int, scratch: Path | None) -> None:
        """OSError if it cannot be opened; TornFile if not even its beginning can be read."""
        self._scratch = scratch
        stat = os.stat(path)
        super().__init__(path, offset, packed=(stat, bytes_at(path, 0, HEAD)))
        self.tail = bytes_at(path, max(0, offset - 64), min(64, offset)) if offset else b""
        self.end()

    def reopen(self) -> None:
        """Unpack it. TornFile if it is not whole, OSError if there is no room."""
        stat = os.stat(self.path)
        if id_of(stat) != self.id:
            raise FileNotFoundError(f"{self.path} is another file now")
        with TemporaryFile(dir=self._scratch, prefix="unpacked-") as copy:
            try:
                with _opened(self.path) as stream:
                    while piece := stream.read(PIECE):
                        copy.write(piece)
                copy.flush()
            except BROKEN as error:
                raise TornFile(f"{self.path} is not whole: {error}") from error
            self.fd = os.dup(copy.fileno())
        self.size = self.longest = os.fstat(self.fd).st_size

    def look(self) -> bool:
        """It does not change: another one is another file."""
        if self.fd < 0 and not self.at_end and not self.path.exists():
            raise FileNotFoundError(f"{self.path} is gone")
        return True

    def peek(self) -> bytes | None:
        return super().peek() if self.is_open else self._line_at(self.offset)

    def first_line(self) -> bytes | None:
        return self._line_at(0)

    def is_at(self, mark: Mark) -> bool:
        return has_read(self.path, mark)

    def was_at(self, mark: Mark) -> bool:
        return has_read(self.path, mark)

    def _line_at(self, offset: int) -> bytes | None:
        try:
            line, end, _ = bytes_at(self.path, offset, 16_384).partition(b"\n")
        except OSError:
            return None
        return line.removeprefix(BOM_UTF8) if end else None


class PackedFiles:
    """What is known of the compressed files of a log. One thread."""

    def __init__(
        self, first_time: FirstTime, position: Iterable[Mark], scratch: Path | None, *, once: bool
    ) -> None:
        """`position`: the marks of a run before; none at a first start. `scratch`: where files are
        unpacked. `once`: a file that is not whole will never be."""
        marks = [*position]
        self._first_time, self._scratch, self._once = first_time, scratch, once
        self._gone = deque[Mark](maxlen=REMEMBERED)
        self._settled: dict[str, int] = {}
        """Files that need not be looked at again, and when they were written."""
        self._torn: dict[str, tuple[int, int, float]] = {}
        """Files that were not whole: their size and time then, and when that was."""
        self._awaited: set[str] = set()
        """Those that are to be read when they are."""
        self._first_start = not marks
        self._know(marks)

    def started(self, marks: Iterable[Mark]) -> None:
        """The first look is over: what comes from now on may have been read."""
        if self._first_start:
            self._know(marks)
        self._first_start = False

    @property
    def marks(self) -> list[Mark]:
        """Of files that were read and are gone or compressed."""
        return list(self._gone)

    def settle(self, mark: Mark) -> None:
        """A file was read; if it is gone, it may come back compressed."""
        if length_of(mark.head):
            self._gone.append(mark)
        self._settled[mark.id] = mark.written

    def needs_look(self, one: str, path: Path, now: float) -> bool:
        """Whether it is not yet known what a file is, and it is time to see."""
        try:
            stat = os.stat(path)
        except OSError:
            return False
        if one in self._torn:
            size, written, tried = self._torn[one]
            changed = (size, written) != (stat.st_size, stat.st_mtime_ns)
            return changed and now - tried >= AGAIN
        return self._settled.get(one) != stat.st_mtime_ns

    def meet(
        self,
        one: str,
        path: Path,
        marks: Iterable[Mark],
        followed: Mapping[str, LogFile],
        now: float,
    ) -> UnpackedFile | Gap | None:
        """A file that needs a look: to be read from where it was read to, or lost, or neither.
        OSError if it cannot be opened."""
        stat = os.stat(path)
        try:
            verdict, mark = self.judge(path, marks, followed)
            self._torn.pop(one, None)
            if verdict == "read" or (mark is None and one in self._awaited):
                return UnpackedFile(path, 0, self._scratch)
            if mark is not None and mark.id not in followed and mark.written != stat.st_mtime_ns:
                return UnpackedFile(path, mark.offset, self._scratch)
        except TornFile:
            return self.tear(one, path, now, to_read=self._first_start)
        self._settled[one] = stat.st_mtime_ns
        if verdict != "doubtful":
            return None
        self.settle(UnpackedFile(path, 0, self._scratch).mark(done=True))
        why = "it is compressed, and it cannot be told whether it was read"
        return Gap(str(path), 0, 0, why)

    def tear(self, one: str, path: Path, now: float, *, to_read: bool = True) -> Gap | None:
        """A file is not whole: it is looked at again when it has changed."""
        with suppress(OSError):
            stat = os.stat(path)
            self._torn[one] = (stat.st_size, stat.st_mtime_ns, now)
        if to_read:
            self._awaited.add(one)
        return Gap(str(path), 0, 0, "it is compressed, and not whole") if self._once else None

    def copy_of(
        self, mark: Mark, packed: Mapping[str, Path], followed: Collection[str]
    ) -> UnpackedFile | None:
        """The compressed file that has what a mark says was read, to be read from there on."""
        for one, path in packed.items():
            if one not in followed and has_read(path, mark):
                with suppress(OSError):
                    return UnpackedFile(path, mark.offset, self._scratch)
        return None

    def judge(
        self, path: Path, known: Iterable[Mark], followed: Mapping[str, LogFile]
    ) -> tuple[Verdict, Mark | None]:
        """What to do with a file, and the mark of the one that it is, if it is known.

        TornFile if that cannot be said yet.
        """
        written, head = os.stat(path).st_mtime_ns, bytes_at(path, 0, HEAD)
        alike = [mark for mark in known if _begins(head, mark)]
        for mark in alike:
            if mark.written == written and mark.offset >= mark.size:
                return "known", mark
        for mark in alike:
            file = followed.get(mark.id)
            if has_read(path, mark) if file is None or not file.is_open else is_copy(path, file):
                return "known", mark
        if self._first_start:
            return "read", None
        if written <= self._floor or not self._floor:
            return "old", None
        first = self._first_time(bytes_at(path, 0, 65_536).partition(b"\n")[0])
        if first is not None and self._newest is not None and first < self._newest:
            return "doubtful", None
        return "read", None

    def _know(self, marks: Iterable[Mark]) -> None:
        marks = [*marks]
        self._floor = max((mark.written for mark in marks), default=0)
        firsts = [mark.first for mark in marks if mark.first is not None]
        self._newest = max(firsts, default=None)


def bytes_at(path: Path, start: int, size: int) -> bytes:
    """Some unpacked bytes; TornFile if they cannot be had."""
    try:
        with _opened(path) as stream:
            stream.seek(start)
            return stream.read(size)
    except BROKEN as error:
        raise TornFile(f"{path} is not whole: {error}") from error


def has_read(path: Path, mark: Mark) -> bool:
    """Whether a file has what a mark says was read."""
    size = length_of(mark.tail)
    try:
        if not _begins(bytes_at(path, 0, HEAD), mark):
            return False
        return fingerprint(bytes_at(path, mark.offset - size, size)) == mark.tail
    except OSError:
        return False


def is_copy(path: Path, file: LogFile) -> bool:
    """Whether all that there is of a compressed file is in another one, which is open: it is made
    of that, or is being made."""
    at = 0
    try:
        with _opened(path) as stream:
            while piece := stream.read(PIECE):
                if os.pread(file.fd, len(piece), at) != piece:
                    return False
                at += len(piece)
    except BROKEN:
        pass  # when it is whole its time is another, and it is looked at again
    return True


def rotation_number(name: str) -> int:
    """Which rotation a file is, by its name.

    >>> rotation_number("app.log.12.gz"), rotation_number("app.log.3"), rotation_number("app.log")
    (12, 3, 0)
    """
    number = re.search(r"\.(\d{1,4})$", name.removesuffix(_ending(name)))
    return int(number[1]) if number else 0


def _begins(head: bytes, mark: Mark) -> bool:
    size = length_of(mark.head)
    return size > 0 and fingerprint(head[:size]) == mark.head


def _ending(name: str) -> str:
    return next((ending for ending in OPENERS if name.endswith(ending)), "")


def _opened(path: Path) -> IO[bytes]:
    if not os.stat(path).st_size:  # not even a file of no bytes is compressed to nothing
        raise TornFile(f"{path} is not whole: it has nothing in it")
    return cast(IO[bytes], OPENERS[_ending(path.name)](path, "rb"))
