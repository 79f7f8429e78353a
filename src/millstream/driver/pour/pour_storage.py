"""Durable storage for pouring, in addition to the source's log: in the store's folder.

`PourStorage` is the interface; `place_pour_storage` implements it in the place of a shared store.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import BinaryIO, Protocol

from millstream.durable import AppendFile, read_record, sync, write_record, write_synced
from millstream.errors import StoreError
from millstream.log.blocks import Tag
from millstream.log.place_writer import EventLogWriter
from millstream.log.poured_record import LAST, POURED
from millstream.log.reader import LogReader
from millstream.log.retention import Retention
from millstream.log.writer import LogWriter

SUFFIX = ".lines"
"""The suffix of files with lines of a batch."""


class PourStorage(Protocol):
    """The log of a source, a record of what was poured, and files with lines of a large batch.

    The process that opens it owns it: another that still writes gets an error.
    """

    @property
    def writer(self) -> EventLogWriter:
        """The writer of the log."""

    @property
    def log(self) -> str:
        """The log's address, for messages."""

    @property
    def record(self) -> str:
        """The record's address, for messages."""

    @property
    def place(self) -> str:
        """The address of the place in which tasks put files with lines; empty for a folder."""

    @property
    def target(self) -> str:
        """The prefix of these files' names."""

    def read(self) -> bytes | None:
        """Returns the record; None if there is none yet."""

    def write(self, data: bytes) -> None:
        """Replaces the record; durable on return."""

    def tags_since(self, position: Sequence[int]) -> Iterator[Tag]:
        """Yields the tags in the log after a position."""

    def keep(self, name: str, lines: bytes) -> str:
        """Writes a file with lines; returns its full name."""

    def secure(self) -> None:
        """Makes the files that tasks have written durable."""

    def open(self, name: str) -> BinaryIO:
        """Opens a file by its full name; raises FileNotFoundError if there is none."""

    def clear(self) -> None:
        """Removes the files."""

    def close(self) -> None: ...


class FolderPourStorage:
    """Pour storage in a local folder: the record `poured/SOURCE/last.json` and files beside it."""

    def __init__(self, store: Path, source: str, log: Path, retention: Retention) -> None:
        """Raises LogLocked if another process writes to the log."""
        self._folder = (store / POURED / source).absolute()
        self._path = self._folder / LAST
        self._make_folder()
        self._writer = LogWriter(log, retention=retention, tags=False)

    @property
    def writer(self) -> EventLogWriter:
        return self._writer

    @property
    def log(self) -> str:
        return str(self._writer.path)

    @property
    def record(self) -> str:
        return str(self._path)

    @property
    def place(self) -> str:
        return ""

    @property
    def target(self) -> str:
        return f"{self._folder}{os.sep}"

    def read(self) -> bytes | None:
        return read_record(self._path)

    def write(self, data: bytes) -> None:
        write_record(self._path, data)

    def tags_since(self, position: Sequence[int]) -> Iterator[Tag]:
        with closing(LogReader(self._writer.path)) as reader:
            begin = max(list(position), reader.start)[0]
            for block in reader.blocks(begin, reader.end[0]):
                yield from block.tags

    def keep(self, name: str, lines: bytes) -> str:
        write_synced(self._folder / name, lines)
        return str(self._folder / name)

    def secure(self) -> None:
        sync(self._folder)

    def open(self, name: str) -> BinaryIO:
        # Only by its base name: a store may be moved, and earlier versions recorded only that.
        return (self._folder / os.path.basename(name)).open("rb")

    def clear(self) -> None:
        for path in self._folder.glob(f"*{SUFFIX}"):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        self._writer.close()

    def _make_folder(self) -> None:
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            sync(self._folder.parent)
            sync(self._folder.parent.parent)
        except OSError as error:
            raise StoreError(
                f"{self._folder}: cannot be made: {error.strerror or error}; give the right to "
                "write there"
            ) from None


class LinesWriter(Protocol):
    """Writes many lines, for a task."""

    def write(self, lines: Sequence[bytes]) -> None: ...

    def finished(self) -> list[tuple[str, int]]:
        """Returns the files with their sizes, all durable."""

    def close(self) -> None: ...


class FileLines:
    """Writes lines to one file, which is created with the first of them."""

    def __init__(self, stem: str) -> None:
        self._path = f"{stem}{SUFFIX}"
        self._file: AppendFile | None = None

    def write(self, lines: Sequence[bytes]) -> None:
        if self._file is None:
            self._file = AppendFile.open(self._path)
            self._file.truncate(0, synced=False)
        self._file.append(b"".join(lines), synced=False)

    def finished(self) -> list[tuple[str, int]]:
        if self._file is None:
            return []
        self._file.sync()
        return [(self._path, self._file.end)]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
