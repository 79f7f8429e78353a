"""Carrying out as lines: into a file, or onto standard error.

A file gets each record exactly once, on disk, also over a kill or a power cut, if nobody else
writes to it and it is not moved away between the end and the next start: what a try left behind is
seen at the file's end. A line whose writing was interrupted is cut off and written again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from millstream.actions.asked import Asked
from millstream.actions.attempt import Outcome
from millstream.durable import sync

GROUP = 1000
"""Records that are written, and then recorded, at once."""


class _Line(msgspec.Struct):
    id: str = ""


class LineFile:
    """Appends one JSON record a line to a file, which is made if it is not there."""

    group = GROUP

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._file = -1

    def carry(self, asked: Sequence[Asked]) -> Outcome:
        lines = [one.json() + b"\n" for one in asked]
        try:
            if not self._is_open():
                lines = lines[self._opened([one.id for one in asked], lines) :]
            left = memoryview(b"".join(lines))
            while left:
                left = left[os.write(self._file, left) :]
            os.fsync(self._file)
        except OSError as error:
            self.close()  # what is there now is seen when it is opened again
            return Outcome("again", f"{self._path}: {error.strerror or error}")
        return Outcome("done")

    def close(self) -> None:
        if self._file >= 0:
            os.close(self._file)
        self._file = -1

    def _is_open(self) -> bool:
        """Whether our file is the one at the path: it may have been moved away, to be kept."""
        if self._file < 0:
            return False
        try:
            same = os.path.samestat(os.stat(self._path), os.fstat(self._file))
        except FileNotFoundError:
            same = False
        if not same:
            self.close()
        return same

    def _opened(self, ids: list[str], lines: list[bytes]) -> int:
        """Open the file, and see how many of the lines it has already."""
        flags = os.O_CREAT | os.O_RDWR | os.O_APPEND | os.O_CLOEXEC
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self._path, flags, 0o644)
        sync(self._path.parent)
        size = os.fstat(self._file).st_size
        ours = sum(map(len, lines))  # no line of these begins further from the end
        tail = os.pread(self._file, ours, max(0, size - ours))
        whole, newline, rest = tail.rpartition(b"\n")
        there = _number(whole.rpartition(b"\n")[2], ids) + 1 if newline else 0
        if rest:
            if there < len(lines) and lines[there].startswith(rest):
                os.ftruncate(self._file, size - len(rest))
            else:
                os.write(self._file, b"\n")  # another's line, or what a power cut left: closed
        return there


def _number(line: bytes, ids: list[str]) -> int:
    """Which of the ids the line has; -1 if none of them."""
    try:
        return ids.index(msgspec.json.decode(line, type=_Line).id)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
        return -1


class Stderr:
    """Writes one JSON record a line to standard error."""

    group = GROUP

    def carry(self, asked: Sequence[Asked]) -> Outcome:
        try:
            sys.stderr.write("".join(f"{one.json().decode()}\n" for one in asked))
            sys.stderr.flush()
        except (OSError, ValueError) as error:
            return Outcome("again", f"standard error: {error}")
        return Outcome("done")

    def close(self) -> None:
        pass
