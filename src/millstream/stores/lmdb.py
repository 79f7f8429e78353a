"""The embedded store: one LMDB environment a shard, in `path/shard-0003/`.

DESIGN
------
*One commit is one write transaction*, flushed to disk when it returns. LMDB copies pages on write,
so a process killed at any moment leaves the previous state. `rows` decides what to put and delete,
this module reads and writes, and `environment` opens, grows and handles forks.

Besides its rows a shard keeps, under keys that no row can have, its *head*, `(highest fence, last
batch, tally of rows and journals)`, and a journal for each function. All have checksums (`checks`),
and a mismatch raises StoreError. A roll-back does not change the last batch: that batch's rows have
overwritten the values from before the batch rolled back to, so that earlier state stays forgotten.

*A view is one read transaction.* Keep it short (see `environment`). Keys are read in the order
asked, and fastest in key order.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Self
from zlib import crc32

from millstream.errors import StoreError
from millstream.stores import rows
from millstream.stores.checks import NONE, WHOLE, Damaged
from millstream.stores.commit_threads import commit_each
from millstream.stores.contract import (
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
    holds_data,
    release,
)
from millstream.stores.read_rows import ReadRows
from millstream.stores.recent_rows import (
    RecentRows,
    has_recent,
    look_up,
    look_up_one,
    merged,
    recent_bounds,
)
from millstream.stores.shard_rows import (
    HEAD_KEY,
    Head,
    SortedChanges,
    items_from,
    journal_key,
    journals,
    last_batch,
    read_head,
    replace_rows,
    restore_rows,
    within,
)

MAP_SIZE = 1 << 34
"""Address space for each shard, not space on disk; doubled when it is full."""


class LmdbView:
    """The rows of one shard as of the end of batch `limit`: one read transaction."""

    __slots__ = ("_has_recent", "_limit", "_txn", "_where", "rows_read")

    def __init__(
        self, where: str, txn: Transaction, limit: int, rows_read: ReadRows | None = None
    ) -> None:
        self._where = where
        self._txn: Transaction | None = txn
        self._limit = limit
        self._has_recent = has_recent(txn.get)
        self.rows_read = rows_read

    def _open(self) -> Transaction:
        if self._txn is None:
            raise StoreError(f"{self._where}: this view was closed; open another to read again")
        return self._txn

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        get = self._open().get
        with explained(self._where, "cannot read"):
            stored = rows.stored_keys(keys)
            if self._has_recent:
                current = look_up(get, stored, self._limit)
            elif self.rows_read is None:
                return rows.values(stored, list(map(get, stored)), self._limit)
            else:
                current = rows.examined(stored, list(map(get, stored)), self._limit)
            if self.rows_read is not None:
                self.rows_read.add(stored, current)
            return [*current.values]

    def get(self, key: bytes) -> bytes | None:
        stored = rows.stored_key(key)
        with explained(self._where, "cannot read"):
            get = self._open().get
            stored, row = look_up_one(get, stored) if self._has_recent else (stored, get(stored))
            return None if row is None else rows.value(stored, row, self._limit)

    def scan(
        self, start: bytes, stop: bytes | None = None, *, reverse: bool = False, cut: int = 0
    ) -> Iterator[tuple[bytes, bytes]]:
        begin, end = rows.bounds(start, stop)
        bound = begin if reverse else end
        newest, unpack, body = rows.newest_tag(self._limit), rows.HEADER.unpack_from, rows.BODY
        run, has_value = rows.RUN, rows.HAS_VALUE
        after = len(rows.ROW) + cut
        # `try` because leaving a `with` block takes longer; `rows.value` is inlined for speed.
        try:
            txn = self._open()
            items = items_from(txn, begin, end, reverse)
            first = next(self._recent(txn, begin, end, reverse), None)
            if first is not None:
                both = merged(
                    self._recent(txn, begin, end, reverse), within(items, begin, end), reverse
                )
                for name, value in rows.in_order(both, self._limit, start, stop, reverse):
                    yield name[cut:], value
                return
            for key, row in items:
                if (key < bound) is reverse:
                    return
                if crc32(key + row) != WHOLE:
                    raise Damaged(key)
                if len(key) >= run:  # rare: from here on keys may be out of order
                    rest = within(chain([(key, row)], items), begin, end)
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

    def _recent(
        self, txn: Transaction, begin: bytes, end: bytes, reverse: bool
    ) -> Iterator[tuple[bytes, bytes]]:
        """The recent rows in a range of stored keys."""
        if not self._has_recent:
            return iter(())
        begin, end = recent_bounds(begin, end)
        return within(items_from(txn, begin, end, reverse), begin, end)

    def own(self, key: bytes) -> bytes | None:
        """The shard's own record under a key that no row can have."""
        return self._open().get(key)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._txn is not None:
            self._txn.abort()
            self._txn = None  # it references the environment, which a fork must be able to drop


def still_so(
    environment: Environment, txn: Transaction, batch: int, read: ReadRows | None
) -> ReadRows | None:
    """Returns what was read before `batch` if nothing was written since; else None."""
    if read is None or read.limit != batch - 1 or not environment.follows(txn, read.moment):
        return None
    return read


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
        """The last batch that changed the shard."""
        with self._reading() as txn:
            return last_batch(txn)

    def state(self) -> ShardState | None:
        with explained(self._where, "cannot read"):
            if not holds_data(self._path):
                return None  # opening it would create it
        with self._reading() as txn:
            head = read_head(txn)
            return ShardState(head.seen, head.last)

    @contextmanager
    def _reading(self) -> Iterator[Transaction]:
        with explained(self._where, "cannot read"):
            txn = self._environment.begin()
            try:
                yield txn
            finally:
                txn.abort()

    def before(self, batch: int) -> LmdbView:
        return self._view(batch - 1, keep=True)

    def at(self, committed: int) -> LmdbView:
        return self._view(committed, keep=False)

    def _view(self, committed: int, *, keep: bool) -> LmdbView:
        """Opens a view; `keep`: what it reads is kept for a commit."""
        with explained(self._where, "cannot read"):
            txn, moment = self._environment.begin_at()
            try:
                last = last_batch(txn)
                if last > committed + 1:
                    check_read(self._where, last, committed)
            except BaseException:
                txn.abort()
                raise
            kept = keep and moment is not None
            return LmdbView(
                self._where, txn, committed, ReadRows(committed, moment) if kept else None
            )

    def commit(
        self, fence: Fence, changes: Mapping[str, Changes], read: ReadRows | None = None
    ) -> None:
        environment = self._environment
        # Sorted before the write lock is taken.
        prepared = [(journal_key(function), SortedChanges(c)) for function, c in changes.items()]

        def body(txn: Transaction) -> bool:
            head = read_head(txn)
            seen = max(head.seen, environment.soft_fence())
            check_commit(self._where, seen, head.last, fence)
            tally, known = head.tally, still_so(environment, txn, fence.batch, read)
            recent = RecentRows(txn)
            for key, changed in prepared:
                tally = replace_rows(txn, recent, fence.batch, key, changed, tally, known)
            wrote = tally is not head.tally
            if wrote:
                tally = recent.settle(fence.batch, tally)
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
            tally, recent = head.tally, RecentRows(txn)
            for key, blob in journals(txn):
                journal = rows.checked_journal(key, blob)
                batch = rows.journal_batch(journal)
                if batch > committed:
                    tally = restore_rows(txn, recent, batch, rows.journal_keys(journal), tally)
                    txn.delete(key)
                    tally = tally.changed(NONE, (blob,))
                    ahead.append(key)
            tally = recent.settle(committed, tally)
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
    """A fixed number of shards under the folder `path`, each created when it is first used."""

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

    commit = commit_each

    def close(self) -> None:
        for shard in self._shards.values():
            shard.close()


def _unpickled(path: str, shards: int, map_size: int) -> LmdbStore:
    return LmdbStore(path, shards, map_size=map_size)
