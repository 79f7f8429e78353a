"""A small durable log: one record per line, each with its checksum.

    <crc32 of the JSON, eight hex digits> <JSON>\n

One process appends; others read. An append is on disk (fsync) when it returns, and is one line, so
a crash can tear only the last line: the writer truncates it when it opens the log, a reader stops
before it. A damaged line anywhere else is an error: what follows it cannot be trusted.

In a shared store the log is in the store's place, one piece per line (`places.piece_log`), and the
file is a copy that the writer makes when it opens the log. A line is in the place when its append
returns. Two drivers may append concurrently until one learns that it lost leadership. A driver
whose position is already taken reads the other's record first.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from millstream.durable import AppendFile, sync, with_checksum, without_checksum
from millstream.errors import StoreError
from millstream.places.piece_log import JOIN_PIECES, PieceLog
from millstream.places.place import Place, folders_in

PREFIX = "sources/"
MANY_PIECES = 2 * JOIN_PIECES
"""If there are this many pieces or more, some are joined when the log is fetched."""
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class RecordLog:
    """The log at a path. `read` returns the records appended since the last read."""

    def __init__(self, path: str, *, write: bool, pieces: PieceLog | None = None) -> None:
        """`pieces` is the log itself, if the file is only a copy of it."""
        self.path = path
        self._pieces = pieces
        self._at = 0
        """The number of bytes that this object has read or written: all complete lines."""
        self._lines = 0
        self._file: int | None = None
        self._appended: AppendFile | None = None
        """Owns `_file`, if this is the writer."""
        if write:
            try:
                self._create()
                if pieces is not None:
                    self._fetch(pieces)
            except OSError as error:
                raise self._failed("open it", error) from None

    def read(self) -> list[Any]:
        """Returns the records appended since the last read. The writer truncates a torn tail."""
        if self._file is None:
            try:
                self._file = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                return []
            except OSError as error:
                raise self._failed("open it", error) from None
        size = os.fstat(self._file).st_size
        if size < self._at:
            raise StoreError(
                f"log {self.path}: it must only grow; it has {size} bytes, and {self._at} were "
                "read before; stop any other process that writes to it, and restore it"
            )
        if size == self._at:
            return []
        with open(self._file, "rb", closefd=False) as file:
            file.seek(self._at)
            *lines, begun = file.read().split(b"\n")
        records = []
        for number, line in enumerate(lines):
            try:
                records.append(_decode(without_checksum(line)))
            except ValueError as error:
                if number == len(lines) - 1 and not begun:
                    break
                raise StoreError(
                    f"log {self.path}: line {self._lines + 1} is damaged ({error}); restore the "
                    "file from a copy, or start with a fresh store"
                ) from None
            self._at += len(line) + 1
            self._lines += 1
        if self._appended is not None and self._at < size:
            self._appended.truncate(self._at)
        return records

    def append(self, record: Any) -> bool:
        """Adds a record. It is on disk when this returns; if this raises, it was not added.

        Returns False, without adding it, if another driver has added records first. The caller must
        `read` them.
        """
        assert self._appended is not None, "opened to read, or closed"
        if not self._appended.is_ours:
            raise StoreError(
                f"log {self.path}: another process has appended to it; end the processes that are "
                "left of an earlier run, and start again"
            )
        line = with_checksum(_encode(record))
        if self._pieces is not None:
            outcome = self._pieces.append((self._at,), line)
            if not outcome.won:
                self._fetch(self._pieces)
                return False
        try:
            self._appended.append(line, synced=self._pieces is None)
        except OSError as error:
            raise self._failed("append to it", error) from None
        self._at = self._appended.end
        self._lines += 1
        return True

    def close(self) -> None:
        """Closes the file."""
        if self._appended is not None:
            self._appended.close()
        elif self._file is not None:
            os.close(self._file)
        self._file = self._appended = None

    def _create(self) -> None:
        directory = os.path.dirname(self.path) or "."
        os.makedirs(directory, exist_ok=True)
        self._appended = AppendFile.open(self.path)
        self._file = self._appended.file
        sync(directory)

    def _fetch(self, pieces: PieceLog) -> None:
        """Appends to the file the lines that so far only the place has."""
        assert self._appended is not None
        while True:
            chain = pieces.chain()
            for _, _, data in pieces.bytes_from(chain, self._appended.end):
                self._appended.append(data, synced=False)
            if self._appended.end >= chain.end:
                break
        if len(chain.pieces) >= MANY_PIECES or chain.spare:
            pieces.tidy(chain)

    def _failed(self, act: str, error: OSError) -> StoreError:
        return StoreError(
            f"log {self.path}: cannot {act}: {error.strerror or error}; "
            "make room or give the right to write there, and start again"
        )


def list_pieces(place: Place, source: str) -> PieceLog:
    """Returns the list of files of a source of a shared store."""
    return PieceLog(place, f"{PREFIX}{source}/", 1)


def fetch_lists(place: Place, folder: Path) -> None:
    """Copies the lists of all sources of a shared store into a folder."""
    for source in folders_in(place, PREFIX):
        path = folder / f"{source}.log"
        path.unlink(missing_ok=True)
        RecordLog(str(path), write=True, pieces=list_pieces(place, source)).close()
