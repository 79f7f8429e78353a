"""Times of records that bring none: when the agent first saw them, and the same ever after.

A journal says which bytes of which file were first seen when. An entry is on disk before any of its
records is used, so that an agent that is started again gives them the same times, and they fall
into the same panes. One entry covers all that a file had when it was looked at: a backlog costs
one, and a log that grows one for each look.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from errno import ENOSPC
from pathlib import Path
from typing import Any

import msgspec

from millstream.durable import with_checksum, without_checksum, write_whole

MOST = 2_000
"""Entries from which on those that are no longer needed are taken out of the file."""


class Stamps:
    """The journal of first sight, by the `key` of a file. One thread; OSError: the disk is full."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._files: dict[str, list[tuple[int, int]]] = {}
        """By file: where a range ends and its time, in order; it begins where the last ended."""
        self._latest = 0
        self._count = 0
        self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._size = self._load()

    def stamp(self, file: str, start: int, size: int, seen: int, now: int) -> int:
        """The time of what begins at `start`, after `size` bytes from there have been stamped.

        `seen` is how long the file is: all that has no time yet gets `now`. Times never go back,
        whatever the clock does.
        """
        ends = self._files.get(file) or [(0, 0)]
        if ends[-1][0] < start + size:
            self._add(file, max(seen, start + size), max(now, self._latest))
        return self._range(file, start)[1]

    def until(self, file: str, start: int) -> int:
        """Up to where the time is the same."""
        return self._range(file, start)[0]

    def begin_again(self, file: str) -> None:
        """The file was cut off, or is gone: what it will have is new."""
        if self._files.get(file):
            self._add(file, 0, self._latest)

    def also(self, file: str, copy: str) -> None:
        """A copy of a file goes on in its place."""
        for end, ts in self._files.get(file, []):
            self._add(copy, end, ts)

    def forget(self, position: list[dict[str, Any]]) -> None:
        """Let go of what lies before a restart point, now and then."""
        if self._count < MOST:
            return
        offsets = {mark["id"]: mark["offset"] for mark in position}
        kept = {
            file: [one for one in ends if one[0] > offsets[file.rpartition(":")[0]]]
            for file, ends in self._files.items()
            if file.rpartition(":")[0] in offsets
        }
        lines = [_line(file, end, ts) for file, ends in kept.items() for end, ts in ends]
        write_whole(self._path, b"".join(lines))
        self.close()
        self._handle = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        self._files, self._count = kept, len(lines)
        self._size = sum(map(len, lines))

    def close(self) -> None:
        os.close(self._handle)

    def _range(self, file: str, start: int) -> tuple[int, int]:
        ends = self._files[file]
        return ends[bisect_right(ends, start, key=lambda one: one[0])]

    def _add(self, file: str, end: int, ts: int) -> None:
        line = _line(file, end, ts)
        if os.pwrite(self._handle, line, self._size) != len(line):
            raise OSError(ENOSPC, "no room for the times of records")
        os.fsync(self._handle)
        self._size += len(line)
        self._take(file, end, ts)

    def _take(self, file: str, end: int, ts: int) -> None:
        self._count += 1
        self._latest = max(self._latest, ts)
        if end == 0:
            self._files.pop(file, None)
        else:
            self._files.setdefault(file, []).append((end, ts))

    def _load(self) -> int:
        """Take in what is there; its size. An entry that was cut off has been used by no record."""
        size = 0
        for line in self._path.read_bytes().splitlines(keepends=True):
            try:
                self._take(*msgspec.json.decode(without_checksum(line[:-1])))
            except (ValueError, msgspec.DecodeError):
                break
            size += len(line)
        os.ftruncate(self._handle, size)
        return size


def _line(file: str, end: int, ts: int) -> bytes:
    return with_checksum(msgspec.json.encode([file, end, ts]))
