"""Stamps records without a time with when the agent first saw them; a stamp never changes.

A journal records when each byte range of each file was first seen. An entry is on disk before any
of its records is used. So an agent that restarts gives them the same times, and they fall into the
same panes. One entry covers everything that a file had when it was looked at: a backlog costs one
entry, and a growing log one for each look.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

from millstream.agent.log.log_files import Mark
from millstream.durable import AppendFile, with_checksum, without_checksum, write_whole

Ranges = tuple["array[int]", "array[int]"]
"""The ends of a file's ranges, in order, and their times. Each range begins where the last one
ended. In a pane of a day there may be hundreds of thousands."""
MOST = 2_000
"""With this many entries or more, those that are no longer needed are removed from the journal."""


class FirstSeenTimes:
    """The journal of stamps, by the `key` of a file. Used by one thread. Raises OSError if the disk
    is full."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[str, Ranges] = {}
        self._latest = 0
        self._count = 0
        self._unwritten = b""
        """Entries that the disk had no room for; they are written before any others."""
        self._journal = AppendFile.open(path)
        self._load()

    def stamp(self, file: str, start: int, size: int, seen: int, now: int) -> int:
        """Stamps `size` bytes from `start` on, and returns the time of those at `start`.

        `seen` is the file's size: all bytes without a time up to there get `now`. Times never go
        back, even if the clock does.
        """
        ends = self._files[file][0] if file in self._files else ()
        if not ends or ends[-1] < start + size:
            self._add(file, max(seen, start + size), max(now, self._latest))
        self._write()
        return self._range(file, start)[1]

    def until(self, file: str, start: int) -> int:
        """Returns the offset up to which the time is the same as at `start`."""
        return self._range(file, start)[0]

    def begin_again(self, file: str) -> None:
        """Forget a file that was truncated or is gone: its future content is new."""
        if file in self._files:
            self._add(file, 0, self._latest)
            self._write_if_there_is_room()

    def also(self, file: str, copy: str) -> None:
        """Give a copy that is read in place of a file the same stamps."""
        for end, ts in zip(*self._files.get(file, ()), strict=True):
            self._add(copy, end, ts)
        self._write_if_there_is_room()

    def keep_only(self, ids: Collection[str]) -> None:
        """Forget all files but these: they are gone, and a new file may get the inode of one."""
        for file in [key for key in self._files if key.rpartition(":")[0] not in ids]:
            self.begin_again(file)

    def forget(self, position: Iterable[Mark]) -> None:
        """Remove the stamps before a restart point, once there are many (`MOST`)."""
        if self._count < MOST:
            return
        offsets = {mark.id: mark.offset for mark in position}
        kept: dict[str, Ranges] = {}
        for file, (ends, times) in self._files.items():
            read = bisect_right(ends, offsets.get(file.rpartition(":")[0], ends[-1]))
            if read < len(ends):
                kept[file] = ends[read:], times[read:]
        lines = [
            _line(file, end, ts)
            for file, ranges in kept.items()
            for end, ts in zip(*ranges, strict=True)
        ]
        write_whole(self._path, b"".join(lines))
        fresh = AppendFile.open(self._path)
        self.close()
        self._journal = fresh
        self._files, self._count, self._unwritten = kept, len(lines), b""

    def close(self) -> None:
        self._journal.close()

    def _range(self, file: str, start: int) -> tuple[int, int]:
        ends, times = self._files[file]
        at = bisect_right(ends, start)
        return ends[at], times[at]

    def _add(self, file: str, end: int, ts: int) -> None:
        self._unwritten += _line(file, end, ts)
        self._take(file, end, ts)

    def _write(self) -> None:
        if self._unwritten:
            self._journal.append(self._unwritten)
            self._unwritten = b""

    def _write_if_there_is_room(self) -> None:
        with suppress(OSError):  # entries about files can wait until the next record is stamped
            self._write()

    def _take(self, file: str, end: int, ts: int) -> None:
        self._count += 1
        self._latest = max(self._latest, ts)
        if end == 0:
            self._files.pop(file, None)
        else:
            ends, times = self._files.setdefault(file, (array("q"), array("q")))
            ends.append(end)
            times.append(ts)

    def _load(self) -> None:
        """Load the journal. No record has used a torn last entry, so it is cut off."""
        size = 0
        with self._path.open("rb") as lines:
            for line in lines:
                try:
                    self._take(*msgspec.json.decode(without_checksum(line[:-1])))
                except (ValueError, msgspec.DecodeError):
                    break
                size += len(line)
        if size < self._journal.end:
            self._journal.truncate(size)


def _line(file: str, end: int, ts: int) -> bytes:
    return with_checksum(msgspec.json.encode([file, end, ts]))
