"""What a batch reads: the records between two committed positions, for all sources of a run."""

from __future__ import annotations

import time
from typing import NamedTuple

from millstream.engine.progress import least
from millstream.errors import StoreError
from millstream.sources.address import Address
from millstream.sources.files import Position
from millstream.spark.inputs import Input, commit, open_input, position_of, register
from millstream.spark.job import SourceSplit
from millstream.stores.home import Home
from millstream.stores.progress import Progress

SPLIT_BYTES = 8 << 20
"""How large a piece of a file one task reads at a time."""
COMMIT_SECONDS = 1.0
"""How often the event logs are told what was committed."""


class Taken(NamedTuple):
    """What a batch takes in."""

    splits: list[SourceSplit]
    bytes: int
    oldest: int | None
    """When the oldest record came in, if that is known."""


class Left(NamedTuple):
    """How far the sources have been taken in, as far as is known."""

    bytes_done: int
    bytes_total: int
    records: int
    """Records in event logs that are to come."""


class Reading:
    """The sources of a run, as the driver reads them."""

    def __init__(self, home: Home, sources: dict[str, Address]) -> None:
        self._home = home
        self._sources = sources
        self._inputs: dict[str, Input] = {}
        self._next_commit = 0.0

    def between(self, progress: Progress, positions: dict[str, Position]) -> Taken:
        """What lies between the last committed batch's positions and these."""
        splits: list[SourceSplit] = []
        size, oldest = 0, None
        for name, until in positions.items():
            start = position_of(progress, name)
            if start == until:
                continue
            if name not in self._sources:
                raise StoreError(
                    f"{self._home.path}: a batch that was planned has records of source {name!r}, "
                    "which the application no longer has; put it back for one run"
                )
            source = self._input(name)
            source.reload()
            start = start or source.begin
            size += source.bytes_between(start, until)
            oldest = least(oldest, source.stamp_at(start))
            kind = self._sources[name].format
            pieces = source.splits(start, until, SPLIT_BYTES)
            splits.extend(SourceSplit(name, kind, split) for split in pieces)
        return Taken(splits, size, oldest)

    def left(self, progress: Progress) -> Left:
        """How far the sources have been taken in."""
        done = total = records = 0
        for name in self._sources:
            position = position_of(progress, name)
            if position is not None:
                source = self._input(name)
                done += source.bytes_between(source.begin, position)
                total += source.bytes_between(source.begin, source.end)
                records += source.records_after(position) or 0
        return Left(done, total, records)

    def register(self, progress: Progress) -> None:
        """Make the application known to the event logs, before anything is taken from them."""
        for name in self._sources:
            register(self._home, name, self._input(name), position_of(progress, name))

    def commit(self, progress: Progress) -> None:
        """Tell the event logs what is no longer needed of them; that may lag behind, and does."""
        now = time.monotonic()
        if now < self._next_commit:
            return
        self._next_commit = now + COMMIT_SECONDS
        for name in self._sources:
            commit(self._home, name, self._input(name), position_of(progress, name))

    def close(self) -> None:
        for source in self._inputs.values():
            source.close()

    def _input(self, name: str) -> Input:
        if name not in self._inputs:
            self._inputs[name] = open_input(self._home, name, self._sources[name])
        return self._inputs[name]
