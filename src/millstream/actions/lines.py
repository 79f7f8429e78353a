"""Carries out events by writing lines to a file or to standard error.

A file gets each record exactly once, on disk, even across a kill or a power cut. This requires that
nobody else writes to the file, and that it is not moved away between the end of a run and the next
start: the carrier reads the end of the file to find what an earlier try wrote. A partly written
line is cut off and written again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from millstream.actions.action_events import ActionEvent
from millstream.actions.attempt import AttemptOutcome
from millstream.durable import AppendFile, sync

GROUP = 1000
"""The number of records that are written, and then recorded, at once."""


class _Line(msgspec.Struct):
    id: str = ""


class LineFile:
    """Appends one line of JSON for each record to a file, which is created if missing."""

    group = GROUP

    def __init__(self, path: Path) -> None:
        self._path = path.absolute()
        self._file: AppendFile | None = None

    def carry(self, asked: Sequence[ActionEvent]) -> AttemptOutcome:
        lines = [event.json() + b"\n" for event in asked]
        try:
            file = self._still_open()
            if file is None:
                file, written = self._opened([event.id for event in asked], lines)
                lines = lines[written:]
            file.append(b"".join(lines))
        except OSError as error:
            self.close()  # reopening the file finds what was written
            return AttemptOutcome("again", f"{self._path}: {error.strerror or error}")
        return AttemptOutcome("done")

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None

    def _still_open(self) -> AppendFile | None:
        """Returns the open file if it is still the one at the path. It may have been moved away to
        be kept, or somebody else may have written to it."""
        if self._file is None:
            return None
        try:
            same = os.path.samestat(os.stat(self._path), os.fstat(self._file.file))
        except FileNotFoundError:
            same = False
        if not same or not self._file.is_ours:
            self.close()
        return self._file

    def _opened(self, ids: list[str], lines: list[bytes]) -> tuple[AppendFile, int]:
        """Opens the file. Returns it, and how many of the lines it already has."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._file = file = AppendFile.open(self._path)
        sync(self._path.parent)
        ours = sum(map(len, lines))  # none of these lines can begin further from the end
        tail = os.pread(file.file, ours, max(0, file.end - ours))
        whole, newline, rest = tail.rpartition(b"\n")
        written = _number(whole.rpartition(b"\n")[2], ids) + 1 if newline else 0
        if rest:
            if written < len(lines) and lines[written].startswith(rest):
                file.truncate(file.end - len(rest))
            else:
                file.append(b"\n")  # end a foreign line, or what a power cut left
        return file, written


def _number(line: bytes, ids: list[str]) -> int:
    """Returns the index of the line's id in `ids`; -1 if it is not there."""
    try:
        return ids.index(msgspec.json.decode(line, type=_Line).id)
    except (msgspec.MsgspecError, UnicodeDecodeError, ValueError):
        return -1


class Stderr:
    """Writes one line of JSON for each record to standard error."""

    group = GROUP

    def carry(self, asked: Sequence[ActionEvent]) -> AttemptOutcome:
        try:
            sys.stderr.write("".join(f"{event.json().decode()}\n" for event in asked))
            sys.stderr.flush()
        except (OSError, ValueError) as error:
            return AttemptOutcome("again", f"standard error: {error}")
        return AttemptOutcome("done")

    def close(self) -> None:
        pass
