"""A small durable log: one record a line, each with its checksum.

    <crc32 of the JSON, eight hex digits> <JSON>\n

One process appends; others read. An append is on disk (fsync) when it returns, and is one line, so
only the last line can be torn by a crash: the writer cuts it off when it opens the log, a reader
stops before it. A damaged line anywhere else is an error: what follows it cannot be trusted.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec

from millstream.durable import sync, with_checksum, without_checksum
from millstream.errors import StoreError

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


class RecordLog:
    """The log at a path. `read` gives what has been appended since the last read."""

    def __init__(self, path: str, *, write: bool) -> None:
        self.path = path
        self._write = write
        self._at = 0
        """How many bytes have been read, or written by us: all whole lines."""
        self._lines = 0
        self._file: int | None = None
        if write:
            try:
                self._create()
            except OSError as error:
                raise self._failed("open it", error) from None

    def read(self) -> list[Any]:
        """The records appended since the last read. The writer cuts off a torn tail."""
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
                "read before; stop whatever else writes to it, and restore it"
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
        if self._write and self._at < size:
            self._cut()
        return records

    def append(self, record: Any) -> None:
        """Add a record. It is on disk when this returns; if it raises, it was not added."""
        assert self._write, "opened to read"
        assert self._file is not None, "closed"
        if os.fstat(self._file).st_size != self._at:
            raise StoreError(
                f"log {self.path}: another process has appended to it; end what is left of an "
                "earlier run, and start again"
            )
        try:
            left = memoryview(with_checksum(_encode(record)))
            at = self._at
            while left:
                written = os.pwrite(self._file, left, at)
                left, at = left[written:], at + written
            os.fsync(self._file)
        except OSError as error:
            self._cut()
            raise self._failed("append to it", error) from None
        self._at = at
        self._lines += 1

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _create(self) -> None:
        directory = os.path.dirname(self.path) or "."
        os.makedirs(directory, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        sync(directory)

    def _cut(self) -> None:
        assert self._file is not None
        os.ftruncate(self._file, self._at)

    def _failed(self, act: str, error: OSError) -> StoreError:
        return StoreError(
            f"log {self.path}: cannot {act}: {error.strerror or error}; "
            "make room or give the right to write there, and start again"
        )
