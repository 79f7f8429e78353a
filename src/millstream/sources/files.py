"""The log of the files found in a watched directory, which keeps positions small.

DESIGN
------
Files are numbered in the order of their discovery, and the number never changes: the log is
durable, and is written before any position mentions the file. A **position** is
`[files wholly taken, units taken of the next file]` (units: see `formats`), so it is two numbers
however many files there are, and a batch may end within a large file. The running total of bytes
is kept for each file, so the cost of `take`, `splits` and `bytes_between` depends on the batch, not
on the length of the log.

One process (the driver) writes: `refresh`. Others read: `reload`. The log holds whole paths, and
keeps them for ever: a file is taken once, even if it is deleted or moved away later.
"""

from __future__ import annotations

import os
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from millstream.counted_nouns import counted
from millstream.errors import StoreError
from millstream.places.piece_log import PieceLog
from millstream.sources.directory_watch import NewFile, Watched
from millstream.sources.formats import Format, InputSplit, unreadable
from millstream.sources.record_log import RecordLog

Position = list[int]
"""How far a source has been read, as plain JSON: as many numbers as its kind of source needs. For
files `[files wholly taken, units taken of the next file]`, beginning at `NOWHERE`."""
NOWHERE = [0, 0]
"""The position before all files."""
WATCHED_FILES = 256
"""The number of newest files that are watched for growth after they were taken."""
_VERSION = 1


class Refreshed(NamedTuple):
    """The result of a look at the directory."""

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
        pieces: PieceLog | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._format = format
        self._monotonic = monotonic
        self._log = RecordLog(path, write=write, pieces=pieces)
        self._paths: list[str] = []
        self._units = array("q")
        self._starts = array("q", [0])
        """The bytes before each file; the last item is the bytes of all files."""
        self._known: set[str] = set()
        self._watched: Watched | None = None
        self._grown: set[str] = set()
        self._headed = False
        self.reload()
        header = {"log": "files", "version": _VERSION, "format": format.name}
        while write and not self._headed:
            self._headed = self._log.append(header)
            if not self._headed:
                self.reload()

    def reload(self) -> int:
        """Reads what the writer has appended; returns the number of new files."""
        before = len(self._paths)
        for record in self._log.read():
            if self._headed:
                self._add(record)
            else:
                self._check_header(record)
        return len(self._paths) - before

    def refresh(self, directory: str) -> Refreshed:
        """Adds the new files of the directory to the log, durably.

        Raises InputError if there is no such directory, and StoreError if the log cannot be
        written; nothing is taken then.
        """
        if self._watched is None or self._watched.directory != os.path.abspath(directory):
            self._watched = Watched(directory, self._monotonic)
        new_files, warnings = self._watched.look(self._known)
        warnings += self._growing()
        records = [record for file in new_files if (record := self._record(file))]
        before = len(self._paths)
        while records:
            if self._log.append(records):
                self._add(records)
                break
            self.reload()  # another driver has added some
            records = [record for record in records if record[0] not in self._known]
        return Refreshed(len(self._paths) - before, warnings)

    @property
    def directories(self) -> list[str]:
        """The directories that the last look visited."""
        return [] if self._watched is None else self._watched.directories

    @property
    def end(self) -> Position:
        """The position after all files."""
        return [len(self._paths), 0]

    def take(self, position: Sequence[int], max_bytes: int | None = None) -> Position:
        """Returns a position at most `max_bytes` after another, but at least one unit after it if
        there is one."""
        budget = self._bytes_at(position)
        if max_bytes is None or budget + max_bytes >= self._starts[-1]:
            return self.end
        budget += max(0, max_bytes)
        file = bisect_right(self._starts, budget) - 1
        size, units = self._starts[file + 1] - self._starts[file], self._units[file]
        # The greatest number of units whose bytes, rounded down, are within the budget.
        taken = ((budget - self._starts[file] + 1) * units - 1) // size
        if [file, taken] <= list(position):
            file, taken = position[0], position[1] + 1
        return [file + 1, 0] if taken >= self._units[file] else [file, taken]

    def splits(
        self, start: Sequence[int], end: Sequence[int], target_bytes: int
    ) -> list[InputSplit]:
        """Returns the splits between two positions, of about `target_bytes` or one file each."""
        self._bytes_at(end)
        splits: list[InputSplit] = []
        for file in range(start[0], end[0] + 1):
            low = start[1] if file == start[0] else 0
            high = end[1] if file == end[0] else self._units[file]
            if low < high:
                size = self._starts[file + 1] - self._starts[file]
                path, units = self._paths[file], self._units[file]
                splits += self._format.splits(path, size, units, low, high, target_bytes)
        return splits

    def bytes_between(self, start: Sequence[int], end: Sequence[int]) -> int:
        """Returns the bytes between two positions; a row group counts as its file's average."""
        return self._bytes_at(end) - self._bytes_at(start)

    def close(self) -> None:
        self._log.close()

    def _bytes_at(self, position: Sequence[int]) -> int:
        file, taken = position
        if file >= len(self._paths):
            if [file, taken] == self.end:
                return self._starts[-1]
            raise StoreError(
                f"log {self._log.path}: the position {list(position)} must be within its "
                f"{counted(len(self._paths), 'file')}: the log was cut or replaced; restore it "
                "from a copy of the store, or begin a new one with --store"
            )
        size = self._starts[file + 1] - self._starts[file]
        return self._starts[file] + size * taken // self._units[file]

    def _record(self, file: NewFile) -> list[Any] | None:
        try:
            return [file.path, file.size, file.mtime_ns, self._format.units(file.path, file.size)]
        except FileNotFoundError:
            return None  # already deleted: it was never taken, so nothing is lost
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
                f"and its address now says {self._format.name}; its positions are not valid there: "
                "give the source its old address, or another name"
            )
        self._headed = True

    def _growing(self) -> list[str]:
        """Returns warnings about files that have changed since they were taken, each once."""
        warnings = []
        for file in range(max(0, len(self._paths) - WATCHED_FILES), len(self._paths)):
            path, size = self._paths[file], self._starts[file + 1] - self._starts[file]
            try:
                now = os.stat(path).st_size
            except OSError:
                continue  # if it was not read yet, reading it will raise the error
            if now != size and path not in self._grown:
                self._grown.add(path)
                warnings.append(
                    f"file {path}: it had {size} bytes when it was taken and has {now} now; what "
                    "was added is not read; write files elsewhere, then rename them into the "
                    "directory"
                )
        return warnings
