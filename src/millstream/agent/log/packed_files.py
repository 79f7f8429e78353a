"""Reads compressed files of a log: rotated files such as `app.log.2.gz`.

A file is read from an unpacked copy on disk, which has no name. It is unpacked completely, and its
checksum verified, before any line of it is used. So a file that is still being written is not read
until it is complete.

While an agent runs, rotated files that it has read are compressed. They must not be read again, but
files that were written while no agent ran must be read. So a compressed file is compared with the
marks of all files that were read, which include the last ones that are gone:

- It begins like one of them, and has the same bytes before the offset that was read: it is that
  file, and is read from that offset. If both have the same time of last write, it has no more.
- It begins like none of them. At a first start it is read whole, like any file. Later it is new if
  it was written after all files known at the start and, if lines have times, does not begin before
  the newest of those files.
- It was written before them: it was read long ago, and is skipped.
- It was written after those files, but its first line is older than theirs. That is contradictory:
  perhaps it was compressed again by a tool that does not keep the time of a file. It is skipped,
  and a gap is reported.

One case cannot be recognised: if lines have no times, a file whose mark is no longer kept, because
it was read too long ago, counts as new when it gets a new time of last write.
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

from millstream.agent.log.log_files import (
    HEAD,
    LogFile,
    LogGap,
    Mark,
    fingerprint,
    id_of,
    length_of,
)

OPENERS: dict[str, Callable[..., Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}
PIECE = 1024 * 1024
AGAIN = 2.0
"""Seconds after which an incomplete file is looked at again."""
STUCK = 60.0
"""Seconds after which a file that stays as incomplete as it was is reported."""
REMEMBERED = 32
"""The number of files whose marks are kept after they were read and are gone."""
BROKEN = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)

FirstTime = Callable[[bytes], int | None]
Verdict = Literal["read", "known", "old", "doubtful"]


class TornFile(OSError):
    """A file is an incomplete compressed file, or is not compressed at all."""


class UnpackedFile(LogFile):
    """A compressed file that is read from an unpacked copy of it."""

    def __init__(self, path: Path, offset: int, scratch: Path | None) -> None:
        """Raises OSError if it cannot be opened, TornFile if not even its beginning can be read."""
        self._scratch = scratch
        stat = os.stat(path)
        super().__init__(path, offset, packed=(stat, bytes_at(path, 0, HEAD)))
        self.tail = bytes_at(path, max(0, offset - 64), min(64, offset)) if offset else b""
        self.end()

    def reopen(self) -> None:
        """Unpack it. Raises TornFile if it is incomplete, OSError if there is no room."""
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
        """Checks only that an unread file still exists: a compressed file does not change."""
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
    """Decides which compressed files of a log are read, and from where. Used by one thread."""

    def __init__(
        self, first_time: FirstTime, position: Iterable[Mark], scratch: Path | None, *, once: bool
    ) -> None:
        """`position`: the marks of an earlier run; none at a first start. `scratch`: the folder to
        unpack files in. `once`: an incomplete file will never be complete."""
        marks = [*position]
        self._first_time, self._scratch, self._once = first_time, scratch, once
        self._gone = deque[Mark](maxlen=REMEMBERED)
        self._settled: dict[str, int] = {}
        """Files that need not be looked at again, and when they were last written."""
        self._torn: dict[str, tuple[int, int, float]] = {}
        """Incomplete files: their size and time of last write, and when they were looked at."""
        self._awaited: set[str] = set()
        """Incomplete files that must be read once they are complete."""
        self._first_start = not marks
        self._know(marks)

    def started(self, marks: Iterable[Mark]) -> None:
        """The first look is over: compressed files that appear now may have been read before."""
        if self._first_start:
            self._know(marks)
        self._first_start = False

    @property
    def marks(self) -> list[Mark]:
        """The marks of files that were read and are gone or compressed."""
        return list(self._gone)

    def stuck(self, packed: Mapping[str, Path], now: float) -> set[str]:
        """Returns the names of incomplete files that do not grow any more."""
        torn = ((packed.get(file_id), tried) for file_id, (_, _, tried) in self._torn.items())
        return {str(path) for path, tried in torn if path is not None and now - tried >= STUCK}

    def settle(self, mark: Mark) -> None:
        """Remember a file that was read: if it is gone, it may come back compressed."""
        if length_of(mark.head):
            self._gone.append(mark)
        self._settled[mark.id] = mark.written

    def needs_look(self, file_id: str, path: Path, now: float) -> bool:
        """True if a file has changed or was not judged yet, and it is time to look at it."""
        try:
            stat = os.stat(path)
        except OSError:
            return False
        if file_id in self._torn:
            size, written, tried = self._torn[file_id]
            changed = (size, written) != (stat.st_size, stat.st_mtime_ns)
            return changed and now - tried >= AGAIN
        return self._settled.get(file_id) != stat.st_mtime_ns

    def meet(
        self,
        file_id: str,
        path: Path,
        marks: Iterable[Mark],
        followed: Mapping[str, LogFile],
        now: float,
    ) -> UnpackedFile | LogGap | None:
        """Looks at a file. Returns it, at the offset to read from; or a gap; or None if there is
        nothing to read from it now. Raises OSError if it cannot be opened."""
        stat = os.stat(path)
        try:
            verdict, mark = self.judge(path, marks, followed)
            self._torn.pop(file_id, None)
            if verdict == "read" or (mark is None and file_id in self._awaited):
                return UnpackedFile(path, 0, self._scratch)
            if mark is not None and mark.id not in followed and mark.written != stat.st_mtime_ns:
                return UnpackedFile(path, mark.offset, self._scratch)
        except TornFile:
            return self.tear(file_id, path, now, to_read=self._first_start)
        self._settled[file_id] = stat.st_mtime_ns
        if verdict != "doubtful":
            return None
        self.settle(UnpackedFile(path, 0, self._scratch).mark(done=True))
        why = "it is compressed, and it cannot be told whether it was read"
        return LogGap(str(path), 0, 0, why)

    def tear(self, file_id: str, path: Path, now: float, *, to_read: bool = True) -> LogGap | None:
        """Remember an incomplete file, to look at it again when it has changed."""
        with suppress(OSError):
            stat = os.stat(path)
            self._torn[file_id] = (stat.st_size, stat.st_mtime_ns, now)
        if to_read:
            self._awaited.add(file_id)
        return LogGap(str(path), 0, 0, "it is compressed, and not whole") if self._once else None

    def copy_of(
        self, mark: Mark, packed: Mapping[str, Path], followed: Collection[str]
    ) -> UnpackedFile | None:
        """Returns the compressed file with the bytes before a mark, to be read from the mark on."""
        for file_id, path in packed.items():
            if file_id not in followed and has_read(path, mark):
                with suppress(OSError):
                    return UnpackedFile(path, mark.offset, self._scratch)
        return None

    def judge(
        self, path: Path, known: Iterable[Mark], followed: Mapping[str, LogFile]
    ) -> tuple[Verdict, Mark | None]:
        """Returns what to do with a file, and its mark if it is a known file.

        Raises TornFile if that cannot be decided yet.
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
    """Returns a range of the unpacked bytes. Raises TornFile if they cannot be unpacked."""
    try:
        with _opened(path) as stream:
            stream.seek(start)
            return stream.read(size)
    except BROKEN as error:
        raise TornFile(f"{path} is not whole: {error}") from error


def has_read(path: Path, mark: Mark) -> bool:
    """True if a compressed file has the bytes before a mark."""
    size = length_of(mark.tail)
    try:
        if not _begins(bytes_at(path, 0, HEAD), mark):
            return False
        return fingerprint(bytes_at(path, mark.offset - size, size)) == mark.tail
    except OSError:
        return False


def is_copy(path: Path, file: LogFile) -> bool:
    """True if all bytes of a compressed file are in `file`, which is open: it is a compressed copy
    of that file, complete or not."""
    offset = 0
    try:
        with _opened(path) as stream:
            while piece := stream.read(PIECE):
                if os.pread(file.fd, len(piece), offset) != piece:
                    return False
                offset += len(piece)
    except BROKEN:
        pass  # once it is complete, its time of last write differs, and it is looked at again
    return True


def rotation_number(name: str) -> int:
    """Returns the number of a file's rotation, by its name.

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
    if not os.stat(path).st_size:  # even an empty file has some bytes when it is compressed
        raise TornFile(f"{path} is not whole: it has nothing in it")
    return cast(IO[bytes], OPENERS[_ending(path.name)](path, "rb"))
