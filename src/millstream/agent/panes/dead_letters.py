"""Lines that cannot be read or mapped, kept beside the agent's state: `dead-letters.jsonl`.

The file is bounded: once it is full, further dead letters are only counted. An agent that restarts
reads some lines again. Their dead letters are truncated from the file first, so that none is in it
twice.
"""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from millstream.errors import MillstreamError

MOST_BYTES = 16 * 1024 * 1024
SHOWN = 1_000
"""At most so many bytes of a line are kept."""


class DeadLetters:
    """The file of dead letters. Used by one thread."""

    def __init__(self, path: Path, at: list[int], most_bytes: int = MOST_BYTES) -> None:
        """`at` is the value of `state` at the restart point."""
        self._most = most_bytes
        self.first: str | None = None
        """A description of the first dead letter since the start; None once it was reported."""
        self._any = False
        self._bytes, self.kept, self.cut = at
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._bytes = min(self._bytes, os.fstat(self._handle).st_size)
        os.ftruncate(self._handle, self._bytes)

    @property
    def state(self) -> list[int]:
        """The size of the file in bytes, the letters in it, the letters that did not fit."""
        return [self._bytes, self.kept, self.cut]

    def add(self, file: str, offset: int, line: bytes, error: str) -> None:
        """Write a line to the file, if there is room."""
        if not self._any:
            self._any, self.first = True, f"{file}, byte {offset:,}: {error[:SHOWN]}"
        self._write(
            {
                "file": file,
                "offset": offset,
                "error": error[:SHOWN],
                "line": line[:SHOWN].decode(errors="replace"),
            }
        )

    def gap(self, words: str) -> None:
        """Write a description of a part of the log that could not be read."""
        self._write({"gap": words})

    def close(self) -> None:
        os.close(self._handle)

    def _write(self, letter: dict[str, object]) -> None:
        data = msgspec.json.encode(letter) + b"\n"
        try:
            if self._bytes + len(data) > self._most:
                raise OSError("it is full")
            if os.pwrite(self._handle, data, self._bytes) != len(data):
                raise OSError("the disk is full")
        except OSError:  # the pane's manifest counts the line all the same
            self.cut += 1
            return
        self._bytes += len(data)
        self.kept += 1


def words_of(error: Exception) -> str:
    """Returns the text of an error for a dead letter."""
    return str(error) if isinstance(error, MillstreamError) else f"{type(error).__name__}: {error}"
