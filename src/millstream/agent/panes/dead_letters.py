"""Lines that cannot be read or mapped, kept beside the agent's state: `dead-letters.jsonl`.

The file is bounded: once it is full, further dead letters are only counted. An agent that restarts
reads some lines again. Their dead letters are truncated from the file first, so that none is in it
twice.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from millstream.durable import AppendFile
from millstream.errors import MillstreamError
from millstream.model.place import message_of

MOST_BYTES = 16 * 1024 * 1024
SHOWN = 1_000
"""At most this many bytes of a line are kept."""


class DeadLine(msgspec.Struct):
    """A line that could not be read or mapped, and the beginning of its text."""

    file: str
    offset: int
    error: str
    line: str


class UnreadGap(msgspec.Struct):
    """A part of the log that could not be read."""

    gap: str


class DeadLetters:
    """The file of dead letters. Used by one thread."""

    def __init__(self, path: Path, at: list[int], most_bytes: int = MOST_BYTES) -> None:
        """`at` is the value of `state` at the restart point."""
        self._most = most_bytes
        self.first: str | None = None
        """A description of the first dead letter since the start; None once it was reported."""
        self._any = False
        size, self.kept, self.cut = at
        self._file = AppendFile.open(path)
        self._file.truncate(min(size, self._file.end), synced=False)

    @property
    def state(self) -> list[int]:
        """The size of the file in bytes, the letters in it, the letters that did not fit."""
        return [self._file.end, self.kept, self.cut]

    def add(self, file: str, offset: int, line: bytes, error: str) -> None:
        """Write a line to the file, if there is room."""
        if not self._any:
            self._any, self.first = True, f"{file}, byte {offset:,}: {error[:SHOWN]}"
        text = line[:SHOWN].decode(errors="replace")
        self._write(DeadLine(file, offset, error[:SHOWN], text))

    def gap(self, words: str) -> None:
        """Write a description of a part of the log that could not be read."""
        self._write(UnreadGap(words))

    def close(self) -> None:
        self._file.close()

    def _write(self, letter: DeadLine | UnreadGap) -> None:
        data = msgspec.json.encode(letter) + b"\n"
        try:
            if self._file.end + len(data) > self._most:
                raise OSError("it is full")
            self._file.append(data, synced=False)
        except OSError:  # the pane's manifest counts the line all the same
            self.cut += 1
            return
        self.kept += 1


def words_of(error: BaseException) -> str:
    """Returns the text of an error for a dead letter."""
    return str(error) if isinstance(error, MillstreamError) else message_of(error)
