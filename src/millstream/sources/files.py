"""The log of the files that a watched directory has brought: what makes positions small.

DESIGN
------
Files are numbered in the order of their discovery, and the number never changes: the log is
durable, and is written before any position mentions the file. A **position** is
`[files wholly taken, units taken of the next file]` (units: see `formats`), so it is two
numbers however many files there are, and a batch may end within a large file. With the bytes before
each file summed up, `take`, `splits` and `bytes_between` cost as much as their batch, not as the
log.

One process (the driver) writes: `refresh`. Others read: `reload`. The log holds whole
paths, and for ever: a file is taken once, even if it is deleted or moved away later.
"""

from __future__ import annotations

import os
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from millstream.errors import StoreError
from millstream.sources.formats import Format, Split, unreadable
from millstream.sources.listing import Found, Watched
from millstream.sources.record_log import RecordLog

Position = list[int]
"""`[files wholly taken, units taken of the next file]`, from `NOWHERE` on: plain JSON."""
NOWHERE = [0, 0]
"""The position before all files."""
WATCHED_FILES = 256
"""So many of the newest files are watched for growing after they were taken."""
_VERSION = 1


class Refreshed(NamedTuple):
    """What a look at the directory brought."""

    new: int
    warnings: list[str]


class FileLog:
    """The files of a directory, numbered. Open it with `write=True` in one process only."""

    def __init__(
        self,
        path: str,
        format: Format,
        *,
        write: bool = False,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._format = format
        self._monotonic = monotonic
        self._log = RecordLog(path, write=write)
        self._paths: list[str] = []
        self._units = array("q")
        self._starts = array("q", [0])
        """The bytes before each file, and at last the bytes of all."""
        self._known: set[str] = set()
        self._watched: Watched | None = None
        self._grown: set[str] = set()
        self._headed = False
        self.reload()
        if write and not self._headed:
            self._log.append({"log": "files", "version": _VERSION, "format": format.name})
            self._headed = True

    def reload(self) -> int:
        """See what the writer has appended; how many files are new."""
        before = len(self._paths)
        for record in self._log.read():
            if self._headed:
                self._add(record)
            else:
                self._check_header(record)
        return len(self._paths) - before

    def refresh(self, directory: str) -> Refreshed:
        """Take the new files of the directory into the log, durably.

        Raises InputError if there is no such directory, and StoreError if the log cannot be
        written; nothing is taken then.
        """
        if self._watched is None or self._watched.directory != os.path.abspath(directory):
            self._watched = Watched(directory, self._monotonic)
        found, warnings = self._watched.look(self._known)
        warnings += self._growing()
        records = [record for file in found if (record := self._record(file))]
        if records:
            self._log.append(records)
            self._add(records)
        return Refreshed(len(records), warnings)

    @property
    def directories(self) -> list[str]:
        """The directories that the last look has visited."""
        return [] if self._watched is None else self._watched.directories

    @property
    def end(self) -> Position:
        """The position after all files."""
        return [len(self._paths), 0]

    def take(self, position: Sequence[int], max_bytes: int | None = None) -> Position:
        """As far from a position as `max_bytes` reach, but at least one unit if there is any."""
        budget = self._bytes_at(position)
        if max_bytes is None or budget + max_bytes >= self._starts[-1]:
            return self.end
        budget += max(0, max_bytes)
        file = bisect_right(self._starts, budget) - 1
        size, units = self._starts[file + 1] - self._starts[file], self._units[file]
        # The most units whose bytes, rounded down, are within the budget.
        taken = ((budget - self._starts[file] + 1) * units - 1) // size
        if [file, taken] <= list(position):
            file, taken = position[0], position[1] + 1
        return [file + 1, 0] if taken >= self._units[file] else [file, taken]

    def splits(self, start: Sequence[int], end: Sequence[int], target_bytes: int) -> list[Split]:
        """What lies between two positions, in pieces of about `target_bytes` or one file."""
        self._bytes_at(end)
        splits: list[Split] = []
        for file in range(start[0], end[0] + 1):
            low = start[1] if file == start[0] else 0
            high = end[1] if file == end[0] else self._units[file]
            if low < high:
                size = self._starts[file + 1] - self._starts[file]
                path, units = self._paths[file], self._units[file]
                splits += self._format.splits(path, size, units, low, high, target_bytes)
        return splits

    def bytes_between(self, start: Sequence[int], end: Sequence[int]) -> int:
        """How many bytes lie between two positions; a row group counts as its file's average."""
        return self._bytes_at(end) - self._bytes_at(start)

    def close(self) -> None:
        """Let go of the log."""
        self._log.close()

    def _bytes_at(self, position: Sequence[int]) -> int:
        file, taken = position
        if file >= len(self._paths):
            if [file, taken] == self.end:
                return self._starts[-1]
            raise StoreError(
                f"log {self._log.path}: the position {list(position)} must be within its "
                f"{len(self._paths)} files: the log was cut or replaced; restore it from a copy of "
                "the store, or begin a new one with --store"
            )
        size = self._starts[file + 1] - self._starts[file]
        return self._starts[file] + size * taken // self._units[file]

    def _record(self, file: Found) -> list[Any] | None:
        try:
            return [file.path, file.size, file.mtime_ns, self._format.units(file.path, file.size)]
        except FileNotFoundError:
            return None  # gone again: it was never taken, so nothing is lost
        except OSError as error:
            raise unreadable(file.path, error) from None

    def _add(self, records: list[Any]) -> None:
        for path, size, _mtime_ns, units in records:
            self._paths.append(path)
            self._known.add(path)
            self._units.append(units)
            self._starts.append(self._starts[-1] + size)

    def _check_header(self, record: Any) -> None:
        if not isinstance(record, dict) or record.get("version") != _VERSION:
            raise StoreError(
                f"log {self._log.path}: must begin with version {_VERSION}; got "
                f"{str(record)[:80]!r}; it was written by another version of Millstream"
            )
        if record["format"] != self._format.name:
            raise StoreError(
                f"log {self._log.path}: this source has read {record['format']} files until now, "
                f"and its address says {self._format.name}; its positions mean nothing there: give "
                "the source the address it had, or another name"
            )
        self._headed = True

    def _growing(self) -> list[str]:
        """Warnings about files that have changed since they were taken, each given once."""
        warnings = []
        for file in range(max(0, len(self._paths) - WATCHED_FILES), len(self._paths)):
            path, size = self._paths[file], self._starts[file + 1] - self._starts[file]
            try:
                now = os.stat(path).st_size
            except OSError:
                continue  # whoever reads it will say so, if it was not read yet
            if now != size and path not in self._grown:
                self._grown.add(path)
                warnings.append(
                    f"file {path}: it had {size} bytes when it was taken and has {now} now; what "
                    "was added is not read; move files in whole: write elsewhere, then rename"
                )
        return warnings
