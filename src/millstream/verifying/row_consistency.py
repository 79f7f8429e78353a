"""Checks the content of a store's rows against each other and against the progress.

Every slate can be read and is in its shard. The index of timers has each timer of each slate and no
other. A table's entries have their table. Slates with limited room are in order. Waiting events can
be read. The numbers of slates and of waiting events are those in the progress.
"""

from __future__ import annotations

import struct
import zlib
from collections import Counter
from pathlib import Path

import msgspec

from millstream.codec import decode_value, shard_of
from millstream.counted_nouns import counted, verb
from millstream.engine.columns import Columns
from millstream.errors import CodecError, StoreError
from millstream.stores.contract import View, after_prefix
from millstream.stores.environment import REPAIR
from millstream.stores.home import Facts
from millstream.stores.layout import (
    named,
    queue_directory,
    slates_of,
    timer_row,
    timers_of,
    unpack_slate,
    waiting_of,
)
from millstream.stores.progress import Progress
from millstream.stores.ranks import totals_row
from millstream.stores.rows import ROW
from millstream.verifying.findings import Findings
from millstream.verifying.room import check_room

UNREADABLE = (
    *(StoreError, CodecError, msgspec.MsgspecError),
    *(ValueError, struct.error, zlib.error, TypeError, IndexError),
)
COUNTED = (
    "if slates are missing, restore the store from a copy; to count the existing ones again, "
    "stop the application and run: millstream vacuum"
)
MOST = 5
"""The maximum number of these findings that are reported for a shard."""


class Meaning:
    """Checks the rows of one shard after another, then the counts of all."""

    def __init__(self, facts: Facts, progress: Progress, findings: Findings) -> None:
        self._facts = facts
        self._progress = progress
        self._findings = findings
        self._slates: Counter[str] = Counter()
        self._waiting: Counter[str] = Counter()
        self._reported = 0
        self._path = Path()

    def look(self, path: Path, number: int, view: View) -> None:
        """Check the rows of a shard; the view is as of the progress's batch."""
        self._path, self._reported = path, 0
        for name, kind in self._facts.updates.items():
            update = self._facts.stored(name)
            keys, index = self._look_at_slates(update, kind, number, view)
            self._look_at_index(update, index, view)
            if kind == "table":
                self._look_at_entries(update, keys, view)
            self._look_at_room(update, kind, view)
        for function in self._facts.functions:
            self._look_at_waiting(function, view)

    def count(self, path: Path) -> None:
        """Compare the counts; `path` is the file of the progress."""
        for update in self._facts.updates:
            recorded = self._progress.counts(update).slates
            actual = self._slates[self._facts.stored(update)]
            if recorded != actual:
                slates = counted(recorded, "slate")
                wrong = f"says that update {update!r} has {slates}, and there are {actual:,}"
                self._findings.add(path, wrong, COUNTED)
        names = {self._facts.stored(name): name for name in self._progress.functions}
        for function in {*self._waiting, *names}:
            recorded = self._progress.counts(names.get(function, function)).waiting
            actual = self._waiting[function]
            if recorded != actual:
                events = f"{counted(recorded, 'event')} {verb(recorded, 'waits', 'wait')}"
                wrong = f"says that {events} at {function!r}, and there are {actual:,}"
                self._findings.add(path, wrong, REPAIR)

    def _say(self, row: bytes, wrong: str) -> None:
        self._reported += 1
        if self._reported <= MOST:
            self._findings.add(self._path, f"{named(ROW + row)} {wrong}", REPAIR)

    def _look_at_slates(
        self, update: str, kind: str, number: int, view: View
    ) -> tuple[set[bytes], set[bytes]]:
        """Checks slates; returns their keys, and the rows that the index of timers must have."""
        prefix = slates_of(update)
        prefixes = {"event": timers_of(update, "event"), "wall": timers_of(update, "wall")}
        keys: set[bytes] = set()
        index: set[bytes] = set()
        for row, data in view.scan(prefix, after_prefix(prefix)):
            self._slates[update] += 1
            self._findings.looked["slates"] += 1
            keys.add(row[len(prefix) :])
            try:
                key = row[len(prefix) :].decode()
                slate = unpack_slate(data)
                if kind != "table":
                    decode_value(slate.data)
                index.update(
                    timer_row(prefixes[clock], at, key) for clock, at in slate.timers.values()
                )
                belongs = shard_of(update, key, self._facts.shards)
            except UNREADABLE as error:
                self._say(row, f"cannot be read: {error}")
                continue
            if belongs != number:
                self._say(row, f"is in this shard, and belongs in shard {belongs}")
        return keys, index

    def _look_at_index(self, update: str, must: set[bytes], view: View) -> None:
        prefix = timers_of(update, "event")[:-1]
        index = {row for row, _ in view.scan(prefix, after_prefix(prefix))}
        self._findings.looked["timers"] += len(index)
        for row in sorted(must - index):
            self._say(row, "is set by its slate, and the index does not have it")
        for row in sorted(index - must):
            self._say(row, "is in the index, and no slate has it")

    def _look_at_entries(self, update: str, keys: set[bytes], view: View) -> None:
        prefix = b"E" + update.encode() + b"\x00"
        for row, data in view.scan(prefix, after_prefix(prefix)):
            table, end, _ = row[len(prefix) :].partition(b"\x00\x00")
            try:
                decode_value(data)
            except UNREADABLE as error:
                self._say(row, f"cannot be read: {error}")
            if not end or table.replace(b"\x00\xff", b"\x00") not in keys:
                self._say(row, "has no table")

    def _look_at_room(self, update: str, kind: str, view: View) -> None:
        try:
            for row, wrong in check_room(update, kind, view):
                self._say(row, wrong)
        except UNREADABLE as error:
            self._say(totals_row(update), f"and ranks cannot be read: {error}")

    def _look_at_waiting(self, function: str, view: View) -> None:
        for prefix in (waiting_of(function), queue_directory(function)):
            waits = prefix == waiting_of(function)
            for row, data in view.scan(prefix, after_prefix(prefix)):
                if row == queue_directory(function):
                    continue
                try:
                    chunk = Columns.unpack(data)
                except UNREADABLE as error:
                    self._say(row, f"cannot be read: {error}")
                    continue
                horizon = self._progress.horizon if waits else None
                done = 0 if horizon is None else chunk.until(horizon)
                self._waiting[function] += len(chunk) - done
                self._findings.looked["waiting events"] += len(chunk) - done
