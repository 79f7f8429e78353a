"""Reads and writes a shard's rows, journals and head in LMDB, within a transaction.

`rows` decides what to put and delete; this module does it, and keeps the tally.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from millstream.stores import rows
from millstream.stores.checks import NONE, Damaged, RowTally, check, digest_of, sealed, unsealed
from millstream.stores.contract import NO_BATCH, NO_FENCE, Changes, Fence
from millstream.stores.environment import Transaction
from millstream.stores.read_rows import ReadRows
from millstream.stores.recent_rows import RecentRows

HEAD_KEY = rows.OWN + b"h"
_HEAD = struct.Struct("<qqqqQQ")
_LAST, _LAST_AT = struct.Struct("<q"), 24
"""The offset of `Head.last` in the packed head."""
JOURNALS = rows.OWN + b"j"
_JOURNALS_END = rows.OWN + b"k"


class Head(NamedTuple):
    """A shard's record of its own state."""

    seen: Fence
    """The highest fence that wrote."""
    last: int
    """The last batch that wrote."""
    tally: RowTally
    """The tally of all rows and journals."""

    def pack(self) -> bytes:
        return sealed(HEAD_KEY, _HEAD.pack(*self.seen, self.last, *self.tally))


class SortedChanges:
    """A function's changes in order of stored keys; `long` has the whole keys of long ones."""

    __slots__ = ("keys", "long", "values")

    def __init__(self, changes: Changes) -> None:
        keys = sorted(changes)
        self.keys = rows.stored_keys(keys)
        self.long: dict[bytes, bytes] = {}
        if keys and max(map(len, keys)) > rows.MAX_SHORT:
            whole = dict(sorted(zip(self.keys, keys, strict=True)))
            self.keys, keys = list(whole), list(whole.values())
            self.long = {s: key for s, key in whole.items() if len(key) > rows.MAX_SHORT}
        self.values = [changes[key] for key in keys]


def replace_rows(
    txn: Transaction,
    recent: RecentRows,
    batch: int,
    journal_key: bytes,
    changed: SortedChanges,
    tally: RowTally,
    read: ReadRows | None = None,
) -> RowTally:
    """Replace the function's changes of `batch` with `changed`.

    `read` has rows as they are now, as of before the batch. Returns the new tally; the same object
    if there was nothing to do.
    """
    blob = txn.get(journal_key)
    old = None if blob is None else rows.checked_journal(journal_key, blob)
    again = old is not None and rows.journal_batch(old) == batch
    if not changed.keys and not again:
        return tally
    if read is not None:
        current = read.current(changed.keys, recent.read)
    else:
        current = recent.read(changed.keys, batch - 1)
    keys, current = recent.place(batch, changed.keys, changed.values, current)
    long = changed.long and {
        key: changed.long[stored]
        for stored, key in zip(changed.keys, keys, strict=True)
        if stored in changed.long
    }
    writes, journal = rows.replace(batch, keys, changed.values, current, long)
    if not writes.puts and not again:
        return tally
    if old is not None and again:
        undone = sorted(set(rows.journal_keys(old)).difference(keys))
        tally = restore_rows(txn, recent, batch, undone, tally)
    elif old is not None:
        # Keys that are changed again are in `writes` already.
        writes.deletes.extend(set(rows.journal_gone(old)).difference(keys))
    tally = carry_out(txn, recent, writes, tally)
    gone = [] if blob is None else [blob]
    if not writes.puts:
        txn.delete(journal_key)
        return tally.changed(NONE, gone)
    packed = rows.pack_journal(journal_key, journal)
    txn.put(journal_key, packed)
    return tally.changed(RowTally(1, digest_of([packed])), gone)


def carry_out(
    txn: Transaction, recent: RecentRows, writes: rows.Writes, tally: RowTally
) -> RowTally:
    """Carry out the writes; returns the new tally."""
    gone = recent.remove(writes.deletes)
    if writes.puts:
        txn.cursor().putmulti(writes.puts)
    return tally.changed(writes.tally, gone)


def items_from(
    txn: Transaction, first: bytes, end: bytes, reverse: bool = False
) -> Iterator[tuple[bytes, bytes]]:
    """Items from `first` on, or backwards from before `end`; does not stop at the other bound."""
    cursor = txn.cursor()
    if not reverse:
        return cursor.iternext() if cursor.set_range(first) else iter(())
    positioned = cursor.prev() if cursor.set_range(end) else cursor.last()
    return cursor.iterprev() if positioned else iter(())


def within(
    items: Iterable[tuple[bytes, bytes]], first: bytes, end: bytes
) -> Iterator[tuple[bytes, bytes]]:
    for key, row in items:
        if not first <= key < end:
            return
        yield key, row


def journals(txn: Transaction) -> list[tuple[bytes, bytes]]:
    """All journals of the shard, with the keys that they are stored under."""
    return [*within(items_from(txn, JOURNALS, _JOURNALS_END), JOURNALS, _JOURNALS_END)]


def restore_rows(
    txn: Transaction, recent: RecentRows, batch: int, keys: list[bytes], tally: RowTally
) -> RowTally:
    """Undo the changes of `batch` to stored keys; returns the new tally."""
    return carry_out(txn, recent, rows.restore(batch, keys, list(map(txn.get, keys))), tally)


def read_head(txn: Transaction) -> Head:
    """The shard's head; the head of an empty shard if there are no rows; Damaged if it is lost."""
    stored = txn.get(HEAD_KEY)
    if stored is None:
        if txn.stat()["entries"]:
            raise Damaged(HEAD_KEY)
        return Head(NO_FENCE, NO_BATCH, NONE)
    *fence, last, count, digest = _HEAD.unpack(unsealed(HEAD_KEY, stored))
    return Head(Fence(*fence), last, RowTally(count, digest))


def last_batch(txn: Transaction) -> int:
    """The last batch of the shard's head, without parsing the rest: every view needs it."""
    stored = txn.get(HEAD_KEY)
    if stored is None:
        return read_head(txn).last
    check(HEAD_KEY, stored)
    return int(_LAST.unpack_from(stored, _LAST_AT)[0])


def journal_key(function: str) -> bytes:
    return rows.stored_key(b"j" + function.encode(), rows.OWN)
