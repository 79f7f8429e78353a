"""The embedded store: one LMDB environment a shard, in `path/shard-0003/`.

DESIGN
------
*One commit is one write transaction*, flushed to disk when it returns. LMDB copies pages on write,
so a process killed at any moment leaves what stood before. `rows` decides what to put and delete,
this module reads and writes, `environment` opens, grows and forks.

Beside its rows a shard keeps, under keys that no row can have, its *head*, `(highest fence, last
batch)`, and a journal for each function. A roll-back leaves the last batch as it is: that batch's
rows have overwritten the memory of the one before the batch rolled back to, so that one stays
forgotten.

*A view is one read transaction.* Keep it short (see `environment`). Keys are read in the order
asked, and fastest in key order.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

from millstream.errors import StoreError
from millstream.stores import rows
from millstream.stores.contract import (
    NO_BATCH,
    NO_FENCE,
    Changes,
    Fence,
    check_commit,
    check_read,
    check_roll_back,
)
from millstream.stores.environment import Environment, Transaction, acquire, explained, release

MAP_SIZE = 1 << 34
"""Address space a shard, not room on disk; doubled when it is full."""

_HEAD = struct.Struct("<qqqq")
_HEAD_KEY = rows.OWN + b"h"
_JOURNALS = rows.OWN + b"j"
_JOURNALS_END = rows.OWN + b"k"


class _Head(NamedTuple):
    seen: Fence
    last: int


class LmdbView:
    """The rows of one shard as of the end of batch `limit`: one read transaction."""

    __slots__ = ("_limit", "_txn", "_where")

    def __init__(self, where: str, txn: Transaction, limit: int) -> None:
        self._where = where
        self._txn: Transaction | None = txn
        self._limit = limit

    def _open(self) -> Transaction:
        if self._txn is None:
            raise StoreError(f"{self._where}: this view was closed; open another to read again")
        return self._txn

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        get = self._open().get
        with explained(self._where, "cannot read"):
            return rows.values(map(get, rows.stored_keys(keys)), self._limit)

    def scan(
        self, start: bytes, stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        txn = self._open()
        first, end = rows.bounds(start, stop)
        with explained(self._where, "cannot read"):
            items = _backwards(txn, first, end) if reverse else _items(txn, first, end)
            yield from rows.in_order(items, self._limit, start, stop, reverse)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._txn is not None:
            self._txn.abort()
            self._txn = None  # it holds the environment, which a fork must be able to let go


class LmdbShard:
    """One shard of an `LmdbStore`."""

    def __init__(self, path: str, number: int, map_size: int) -> None:
        self._where = f"shard {number} of the store {os.path.dirname(path)}"
        self._path = path
        self._map_size = map_size
        self._acquired: Environment | None = None

    @property
    def _environment(self) -> Environment:
        if self._acquired is None:
            self._acquired = acquire(self._path, self._map_size)
        return self._acquired

    def before(self, batch: int) -> LmdbView:
        return self.at(batch - 1)

    def at(self, committed: int) -> LmdbView:
        with explained(self._where, "cannot read"):
            txn = self._environment.begin()
            try:
                check_read(self._where, _read_head(txn).last, committed)
            except BaseException:
                txn.abort()
                raise
            return LmdbView(self._where, txn, committed)

    def commit(self, fence: Fence, changes: Mapping[str, Changes]) -> None:
        environment = self._environment
        # Sorted before the write lock is taken.
        prepared = [(_journal_key(function), _Sorted(c)) for function, c in changes.items()]

        def body(txn: Transaction) -> bool:
            head = _read_head(txn)
            seen = max(head.seen, environment.soft_fence())
            check_commit(self._where, seen, head.last, fence)
            wrote = False
            for journal_key, changed in prepared:
                wrote |= _replace(txn, fence.batch, journal_key, changed)
            if wrote:
                txn.put(_HEAD_KEY, _HEAD.pack(*fence, fence.batch))
            elif fence > seen:
                environment.raise_soft_fence(fence)
            return wrote

        with explained(self._where, "nothing was committed"):
            environment.write(body)

    def roll_back(self, epoch: int, committed: int) -> bool:
        environment = self._environment
        ahead: list[bytes] = []

        def body(txn: Transaction) -> bool:
            head = _read_head(txn)
            seen = max(head.seen, environment.soft_fence())
            fence = check_roll_back(self._where, seen, head.last, epoch, committed)
            ahead.clear()
            for key, blob in list(_items(txn, _JOURNALS, _JOURNALS_END)):
                batch = rows.journal_batch(blob)
                if batch > committed:
                    keys = rows.journal_keys(blob)
                    _carry_out(txn, rows.restore(batch, keys, map(txn.get, keys)))
                    txn.delete(key)
                    ahead.append(key)
            txn.put(_HEAD_KEY, _HEAD.pack(*fence, head.last))
            return True

        with explained(self._where, "nothing was rolled back"):
            environment.write(body)
        return bool(ahead)

    def close(self) -> None:
        if self._acquired is not None:
            release(self._acquired)
            self._acquired = None


class LmdbStore:
    """A fixed number of shards under the folder `path`, each made when it is first used."""

    def __init__(self, path: str | os.PathLike[str], shards: int, *, map_size: int = MAP_SIZE):
        self._path = Path(path).absolute()
        self._map_size = map_size
        self._count = shards
        self._shards: dict[int, LmdbShard] = {}

    def __reduce__(self) -> tuple[Callable[..., LmdbStore], tuple[str, int, int]]:
        return _unpickled, (str(self._path), self._count, self._map_size)

    @property
    def shards(self) -> int:
        return self._count

    def shard(self, number: int) -> LmdbShard:
        if not 0 <= number < self._count:
            raise StoreError(
                f"the store {self._path}: shard {number} must be from 0 to {self._count - 1}"
            )
        path = str(self._path / f"shard-{number:04d}")
        return self._shards.setdefault(number, LmdbShard(path, number, self._map_size))

    def close(self) -> None:
        for shard in self._shards.values():
            shard.close()


def _unpickled(path: str, shards: int, map_size: int) -> LmdbStore:
    return LmdbStore(path, shards, map_size=map_size)


class _Sorted:
    """A function's changes by stored key, in order; `long` has the whole keys of the long ones."""

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


def _replace(txn: Transaction, batch: int, journal_key: bytes, changed: _Sorted) -> bool:
    """Put `changed` in the place of what the function did in `batch`; False if that is nothing."""
    blob = txn.get(journal_key)
    again = blob is not None and rows.journal_batch(blob) == batch
    if not changed.keys and not again:
        return False
    found = list(map(txn.get, changed.keys))
    writes, journal = rows.replace(batch, changed.keys, changed.values, found, changed.long)
    if not writes.puts and not again:
        return False
    if blob is not None and again:
        keys = sorted(set(rows.journal_keys(blob)).difference(changed.keys))
        _carry_out(txn, rows.restore(batch, keys, map(txn.get, keys)))
    elif blob is not None:
        writes.deletes.extend(rows.journal_gone(blob))
    _carry_out(txn, writes)
    if writes.puts:
        txn.put(journal_key, rows.pack_journal(journal))
    else:
        txn.delete(journal_key)
    return True


def _carry_out(txn: Transaction, writes: rows.Writes) -> None:
    """Deletes come first: a tombstone that is purged may be put again."""
    for key in writes.deletes:
        txn.delete(key)
    if writes.puts:
        txn.cursor().putmulti(writes.puts)


def _items(txn: Transaction, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    cursor = txn.cursor()
    if cursor.set_range(first):
        for key, row in cursor.iternext():
            if key >= end:
                return
            yield key, row


def _backwards(txn: Transaction, first: bytes, end: bytes) -> Iterator[tuple[bytes, bytes]]:
    cursor = txn.cursor()
    if cursor.prev() if cursor.set_range(end) else cursor.last():
        for key, row in cursor.iterprev():
            if key < first:
                return
            yield key, row


def _read_head(txn: Transaction) -> _Head:
    stored = txn.get(_HEAD_KEY)
    if stored is None:
        return _Head(NO_FENCE, NO_BATCH)
    *fence, last = _HEAD.unpack(stored)
    return _Head(Fence(*fence), last)


def _journal_key(function: str) -> bytes:
    return rows.stored_key(b"j" + function.encode(), rows.OWN)
