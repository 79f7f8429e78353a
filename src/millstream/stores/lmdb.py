"""The embedded store: one LMDB environment a shard, in `path/shard-0003/`.

DESIGN
------
*One commit is one write transaction*, flushed to disk when it returns. LMDB copies pages on write,
so a process killed at any moment leaves what stood before. `rows` decides what to put and delete,
this module reads and writes, `environment` opens, grows and forks.

Beside its rows a shard keeps, under keys that no row can have, its *head*, `(highest fence, last
batch, tally of rows and journals)`, and a journal for each function. All have checksums (`checks`),
and what does not fit one is a StoreError. A roll-back leaves the last batch as it is: that batch's
rows have overwritten the memory of the one before the batch rolled back to, so that one stays
forgotten.

*A view is one read transaction.* Keep it short (see `environment`). Keys are read in the order
asked, and fastest in key order.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import NamedTuple, Self
from zlib import crc32

from millstream.errors import StoreError
from millstream.stores import rows
from millstream.stores.checks import (
    NONE,
    WHOLE,
    Damaged,
    Tally,
    check,
    digest_of,
    sealed,
    unsealed,
)
from millstream.stores.contract import (
    NO_BATCH,
    NO_FENCE,
    Changes,
    Fence,
    Layer,
    ShardState,
    check_commit,
    check_read,
    check_roll_back,
)
from millstream.stores.environment import (
    ERRORS,
    Environment,
    Transaction,
    acquire,
    explain,
    explained,
    release,
)

MAP_SIZE = 1 << 34
"""Address space a shard, not room on disk; doubled when it is full."""

HEAD_KEY = rows.OWN + b"h"
_HEAD = struct.Struct("<qqqqQQ")
_LAST, _LAST_AT = struct.Struct("<q"), 24
"""Where `Head.last` is in it."""
JOURNALS = rows.OWN + b"j"
_JOURNALS_END = rows.OWN + b"k"


class Head(NamedTuple):
    """What a shard knows of itself."""

    seen: Fence
    """The highest fence that wrote."""
    last: int
    """The last batch that did."""
    tally: Tally
    """Of all rows and journals."""

    def pack(self) -> bytes:
        return sealed(HEAD_KEY, _HEAD.pack(*self.seen, self.last, *self.tally))


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
            stored = rows.stored_keys(keys)
            return rows.values(stored, list(map(get, stored)), self._limit)

    def get(self, key: bytes) -> bytes | None:
        stored = rows.stored_key(key)
        with explained(self._where, "cannot read"):
            row = self._open().get(stored)
            return None if row is None else rows.value(stored, row, self._limit)

    def scan(
        self, start: bytes, stop: bytes | None = None, *, reverse: bool = False, cut: int = 0
    ) -> Iterator[tuple[bytes, bytes]]:
        begin, end = rows.bounds(start, stop)
        bound = begin if reverse else end
        newest, unpack, body = rows.newest_tag(self._limit), rows.HEADER.unpack_from, rows.BODY
        run, has_value = rows.RUN, rows.HAS_VALUE
        after = len(rows.ROW) + cut
        try:  # and not `with`, which takes longer to leave; what `rows.value` does, without a call
            items = _items(self._open(), begin, end, reverse)
            for key, row in items:
                if (key < bound) is reverse:
                    return
                if crc32(key + row) != WHOLE:
                    raise Damaged(key)
                if len(key) >= run:  # rare: from here on keys may be out of order
                    rest = _within(chain([(key, row)], items), begin, end)
                    for name, value in rows.in_order(rest, self._limit, start, stop, reverse):
                        yield name[cut:], value
                    return
                tag, length = unpack(row)
                if tag > newest:
                    if (before := rows.previous(row)) is not None:
                        yield key[after:], before
                elif tag & has_value:
                    yield key[after:], row[body : body + length]
        except ERRORS as error:
            explain(error, self._where, "cannot read")

    def own(self, key: bytes) -> bytes | None:
        """What the shard keeps for itself under a key that no row can have."""
        return self._open().get(key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._txn is not None:
            self._txn.abort()
            self._txn = None  # it holds the environment, which a fork must be able to let go


class LmdbShard:
    """One shard of an `LmdbStore`."""

    def __init__(self, path: str, number: int, map_size: int, sync: bool = True) -> None:
        self._where = f"shard {number} of the store {os.path.dirname(path)}"
        self._path = path
        self._map_size = map_size
        self._sync = sync
        self._acquired: Environment | None = None

    @property
    def _environment(self) -> Environment:
        if self._acquired is None:
            self._acquired = acquire(self._path, self._map_size, self._sync)
        return self._acquired

    @property
    def last_batch(self) -> int:
        """The last batch that changed it."""
        with explained(self._where, "cannot read"):
            txn = self._environment.begin()
            try:
                return _last_batch(txn)
            finally:
                txn.abort()

    def state(self) -> ShardState | None:
        if not os.path.exists(os.path.join(self._path, "data.mdb")):
            return None  # opening it would make it
        with explained(self._where, "cannot read"):
            txn = self._environment.begin()
            try:
                head = read_head(txn)
                return ShardState(head.seen, head.last)
            finally:
                txn.abort()

    def before(self, batch: int) -> LmdbView:
        return self.at(batch - 1)

    def at(self, committed: int) -> LmdbView:
        with explained(self._where, "cannot read"):
            txn = self._environment.begin()
            try:
                last = _last_batch(txn)
                if last > committed + 1:
                    check_read(self._where, last, committed)
            except BaseException:
                txn.abort()
                raise
            return LmdbView(self._where, txn, committed)

    def commit(self, fence: Fence, changes: Mapping[str, Changes]) -> None:
        environment = self._environment
        # Sorted before the write lock is taken.
        prepared = [(_journal_key(function), _Sorted(c)) for function, c in changes.items()]

        def body(txn: Transaction) -> bool:
            head = read_head(txn)
            seen = max(head.seen, environment.soft_fence())
            check_commit(self._where, seen, head.last, fence)
            tally = head.tally
            for journal_key, changed in prepared:
                tally = _replace(txn, fence.batch, journal_key, changed, tally)
            wrote = tally is not head.tally
            if wrote:
                txn.put(HEAD_KEY, Head(fence, fence.batch, tally).pack())
            elif fence > seen:
                environment.raise_soft_fence(fence)
            return wrote

        with explained(self._where, "nothing was committed"):
            environment.write(body)

    def roll_back(self, epoch: int, committed: int) -> bool:
        environment = self._environment
        ahead: list[bytes] = []

        def body(txn: Transaction) -> bool:
            head = read_head(txn)
            environment.mend_soft_fence()
            seen = max(head.seen, environment.soft_fence())
            fence = check_roll_back(self._where, seen, head.last, epoch, committed)
            ahead.clear()
            tally = head.tally
            journals = _items(txn, JOURNALS, _JOURNALS_END)
            for key, blob in list(_within(journals, JOURNALS, _JOURNALS_END)):
                journal = rows.unpack_journal(key, blob)
                batch = rows.journal_batch(journal)
                if batch > committed:
                    keys = rows.journal_keys(journal)
                    restored = rows.restore(batch, keys, list(map(txn.get, keys)))
                    tally = _carry_out(txn, restored, tally)
                    txn.delete(key)
                    tally = tally.changed(NONE, (blob,))
                    ahead.append(key)
            txn.put(HEAD_KEY, Head(fence, head.last, tally).pack())
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

    @property
    def layer(self) -> Layer | None:
        return None

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


def _replace(
    txn: Transaction, batch: int, journal_key: bytes, changed: _Sorted, tally: Tally
) -> Tally:
    """Put `changed` in the place of what the function did in `batch`.

    Gives the tally that follows; the same object if there was nothing to do.
    """
    blob = txn.get(journal_key)
    old = None if blob is None else rows.unpack_journal(journal_key, blob)
    again = old is not None and rows.journal_batch(old) == batch
    if not changed.keys and not again:
        return tally
    found = list(map(txn.get, changed.keys))
    writes, journal = rows.replace(batch, changed.keys, changed.values, found, changed.long)
    if not writes.puts and not again:
        return tally
    if old is not None and again:
        keys = sorted(set(rows.journal_keys(old)).difference(changed.keys))
        restored = rows.restore(batch, keys, list(map(txn.get, keys)))
        tally = _carry_out(txn, restored, tally)
    elif old is not None:
        # Of those that are changed again, `writes` takes care.
        writes.deletes.extend(set(rows.journal_gone(old)).difference(changed.keys))
    tally = _carry_out(txn, writes, tally)
    gone = [] if blob is None else [blob]
    if not writes.puts:
        txn.delete(journal_key)
        return tally.changed(NONE, gone)
    packed = rows.pack_journal(journal_key, journal)
    txn.put(journal_key, packed)
    return tally.changed(Tally(1, digest_of([packed])), gone)


def _carry_out(txn: Transaction, writes: rows.Writes, tally: Tally) -> Tally:
    """Write; the tally that follows."""
    gone = [row for key in writes.deletes if (row := txn.pop(key)) is not None]
    if writes.puts:
        txn.cursor().putmulti(writes.puts)
    return tally.changed(writes.tally, gone + writes.replaced)


def _items(
    txn: Transaction, first: bytes, end: bytes, reverse: bool = False
) -> Iterator[tuple[bytes, bytes]]:
    """What is stored from `first` on, or backwards from before `end`; beyond the other one too."""
    cursor = txn.cursor()
    if not reverse:
        return cursor.iternext() if cursor.set_range(first) else iter(())
    found = cursor.prev() if cursor.set_range(end) else cursor.last()
    return cursor.iterprev() if found else iter(())


def _within(
    items: Iterable[tuple[bytes, bytes]], first: bytes, end: bytes
) -> Iterator[tuple[bytes, bytes]]:
    for key, row in items:
        if not first <= key < end:
            return
        yield key, row


def read_head(txn: Transaction) -> Head:
    """The shard's head, that of an empty one if it has none; Damaged if it is lost or wrong."""
    stored = txn.get(HEAD_KEY)
    if stored is None:
        if txn.stat()["entries"]:
            raise Damaged(HEAD_KEY)
        return Head(NO_FENCE, NO_BATCH, NONE)
    *fence, last, count, digest = _HEAD.unpack(unsealed(HEAD_KEY, stored))
    return Head(Fence(*fence), last, Tally(count, digest))


def _last_batch(txn: Transaction) -> int:
    """The last batch of the shard's head, without the rest of it: every view asks for it."""
    stored = txn.get(HEAD_KEY)
    if stored is None:
        return read_head(txn).last
    check(HEAD_KEY, stored)
    return int(_LAST.unpack_from(stored, _LAST_AT)[0])


def _journal_key(function: str) -> bytes:
    return rows.stored_key(b"j" + function.encode(), rows.OWN)
