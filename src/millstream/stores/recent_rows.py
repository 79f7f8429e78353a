"""The recent rows of a large shard: a second, small place for the rows that change now.

DESIGN
------
LMDB copies each page that a commit changes, 4 KiB, and writes the copy to disk. In a large shard
the rows that a batch changes are each alone in their page. So a commit writes as many pages as
rows, and this takes several times the time of all the rest. Next to each other the same rows would
fill few pages (docs/design/2026-11-19-growth.md).

*The place.* A recent row is stored under its key with the prefix `RECENT` in place of `ROW`. So
recent rows are together, in key order, in a part of the tree of their own. A recent row hides the
row of the same key under `ROW`. Whoever looks for a row looks here first, and a scan merges both.

*Moving in.* A commit writes a row here if that row was written within the *window*, the number of
batches in which commits of this size write as many rows as there is room for. A new row belongs
here too, unless a commit is so large that it finds several rows in most pages. What is here stays
here while it changes. The old row under `ROW` is not touched, only hidden: its page is not written.

*Moving back.* If there are more recent rows than room, each commit also examines about twice as
many recent rows as it wrote, in key order, from where the last one stopped. Those that were not
written within the window move back, those of one page together. Tombstones stay, since the next
batch of their function removes them, and so do the rows of this batch: it may be undone.

*Removing* a recent row removes the one that it hides too.

The *note*, one of the shard's own records, has the number of recent rows and where the last commit
stopped. A shard without one has no recent rows; small shards never get one.
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from zlib import crc32

from millstream.stores import rows
from millstream.stores.checks import (
    CHECK,
    NONE,
    RowTally,
    check,
    digest_of,
    sealed,
    sealed_all,
    unsealed,
)
from millstream.stores.environment import Transaction
from millstream.stores.rows import ABSENT, RECENT, ROW, Current

NOTE_KEY = rows.OWN + b"r"
_COUNT = struct.Struct("<Q")
LARGE = 1 << 15
"""Shards with at least so many rows have recent ones: a smaller one is dense as it is."""
SHARE = 8
"""There is room for one recent row to so many others."""
SPARSE = 4
"""New rows are recent if the window is at least so many batches."""
LEAST_EXAMINED = 16
Item = tuple[bytes, bytes]
Get = Callable[[bytes], bytes | None]


def room_for(count: int) -> int:
    """The number of recent rows that a shard with `count` other rows has room for."""
    return count // SHARE if count >= LARGE else 0


def has_recent(get: Get) -> bool:
    """True if the shard may have recent rows."""
    return get(NOTE_KEY) is not None


def count_of(get: Get) -> int:
    """The number of recent rows, by the shard's note."""
    return _read_note(get(NOTE_KEY))[0]


def look_up(get: Get, keys: Sequence[bytes], limit: int) -> Current:
    """The rows of stored keys, recent ones first, as of the end of batch `limit`."""
    at = [RECENT + key[1:] for key in keys]
    stored = list(map(get, at))
    for place in [place for place, row in enumerate(stored) if row is None]:
        at[place] = key = keys[place]
        stored[place] = get(key)
    batches = array("q", [ABSENT if row is None else rows.batch_of(row) for row in stored])
    return rows.examined(at, stored, limit)._replace(at=at, batches=batches)


def look_up_one(get: Get, key: bytes) -> tuple[bytes, bytes | None]:
    """The row of one stored key, with the key that it is under."""
    recent = RECENT + key[1:]
    row = get(recent)
    return (key, get(key)) if row is None else (recent, row)


def recent_bounds(begin: bytes, end: bytes) -> tuple[bytes, bytes]:
    """The range of the recent rows, for a range of stored keys.

    >>> recent_bounds(b"\\x01a", b"\\x02")
    (b'\\x02a', b'\\x03')
    """
    return RECENT + begin[1:], bytes([end[0] + 1]) + end[1:]


def merged(recent: Iterator[Item], others: Iterator[Item], reverse: bool) -> Iterator[Item]:
    """Merges recent rows and others in key order, without those that are hidden."""
    other = next(others, None)
    for item in recent:
        hidden = ROW + item[0][1:]
        while other is not None and (other[0] > hidden if reverse else other[0] < hidden):
            yield other
            other = next(others, None)
        if other is not None and other[0] == hidden:
            other = next(others, None)
        yield item
    if other is not None:
        yield other
        yield from others


class RecentRows:
    """The recent rows of a shard, within a transaction that writes."""

    def __init__(self, txn: Transaction) -> None:
        self._txn = txn
        self._note = txn.get(NOTE_KEY)
        self._count, self._from = _read_note(self._note)
        self._room = room_for(txn.stat()["entries"] - self._count)
        self._written = 0

    def read(self, keys: Sequence[bytes], limit: int) -> Current:
        """The rows of stored keys as of the end of batch `limit`."""
        if self._note is not None:
            return look_up(self._txn.get, keys, limit)
        return rows.examined(keys, list(map(self._txn.get, keys)), limit)

    def place(
        self,
        batch: int,
        keys: Sequence[bytes],
        new: Sequence[bytes | None],
        current: Current,
    ) -> tuple[Sequence[bytes], Current]:
        """Decides where the rows of a commit are written.

        Returns the stored keys, and what is there. Values and previous values are unchanged.
        """
        self._written += len(keys)
        if current.at is None:
            return keys, current
        window = self._room // (len(keys) or 1)
        at, seeds, ends = list(current.at), array("I", current.seeds), array("q", current.ends)
        for place, (key, written, before, value) in enumerate(
            zip(current.at, current.batches, current.values, new, strict=True)
        ):
            if key >= RECENT or value is None:
                continue
            if written == ABSENT:
                recent = window >= SPARSE
            else:
                recent = before is not None and written < batch <= written + window
            if recent:
                at[place] = key = RECENT + key[1:]
                seeds[place], ends[place] = crc32(key), ABSENT
                self._count += 1
        return at, Current(seeds, current.values, ends)

    def remove(self, keys: Sequence[bytes]) -> list[bytes]:
        """Removes rows, and those that they hide; returns the rows that were there."""
        gone: list[bytes] = []
        for key in keys:
            row = self._txn.pop(key)
            if row is not None:
                gone.append(row)
            if key >= RECENT:
                self._count -= row is not None
                hidden = self._txn.pop(ROW + key[1:])
                if hidden is not None:
                    gone.append(hidden)
        return gone

    def settle(self, batch: int, tally: RowTally) -> RowTally:
        """Ends the changes of a transaction: moves rows back and writes the note."""
        if self._written and self._count > self._room:
            tally = self._move_back(batch, tally)
        if self._note is None and not self._room:
            return tally
        note = sealed(NOTE_KEY, _COUNT.pack(self._count) + self._from)
        if note == self._note:
            return tally
        self._txn.put(NOTE_KEY, note)
        gone = [] if self._note is None else [self._note]
        return tally.changed(RowTally(1, digest_of([note])), gone)

    def _move_back(self, batch: int, tally: RowTally) -> RowTally:
        oldest = batch - self._room // self._written
        examined = 2 * self._written + LEAST_EXAMINED
        cursor = self._txn.cursor()
        begun = cursor.set_range(RECENT + self._from)
        items = list(islice(cursor.iternext(), examined)) if begun else []
        self._from = items[-1][0][1:] if len(items) == examined else b""
        moved = [
            (key, row)
            for key, row in items
            if rows.batch_of(row) < min(oldest, batch) and not rows.is_tombstone(row)
        ]
        for key, row in moved:
            check(key, row)
        keys = [ROW + key[1:] for key, _ in moved]
        hidden = [row for row in map(self._txn.get, keys) if row is not None]
        puts, put = sealed_all(keys, [row[:-CHECK] for _, row in moved], map(crc32, keys))
        for key, _ in moved:
            self._txn.delete(key)
        if puts:
            self._txn.cursor().putmulti(puts)
        self._count -= len(moved)
        return tally.changed(NONE, [row for _, row in moved]).changed(put, hidden)


def _read_note(note: bytes | None) -> tuple[int, bytes]:
    """The number of recent rows, and the key, without its prefix, from which to go on."""
    if note is None:
        return 0, b""
    body = unsealed(NOTE_KEY, note)
    return _COUNT.unpack_from(body)[0], body[_COUNT.size :]
