"""A store whose batches cost no flush to disk: a synced base and an unsynced layer above it.

DESIGN
------
LMDB without fsync survives the end of a process, but a power cut may leave it damaged. So each
shard consists of two. *Base* is an ordinary shard, flushed at every commit: it holds the rows as
they stood at the end of the last flushed batch f, and nothing of a later batch. *Soft* lies in a
folder of its own, is never flushed, and holds the changes of the batches after f. Commits go to
soft only; a view is soft over base. After a power cut soft is thrown away, and base is the state
at f.

*A row of soft* is `kind | length of the function's name (u16) | name | value`, where the kind is
put or deleted: a deleted row hides the row that base has. A row that base does not have is simply
removed. The name tells the flush who owns the row: base keeps a journal of each function's last
commit, so a row must be committed for the function that owns it.

*A flush* of the batches up to c has three steps, for all shards together:

1. `write_base` commits all rows of soft, as of c, to base, in one transaction a shard. In the base
   the flush always has number f + 1, however many batches it contains. So the base can roll back to
   f.
2. The store records that c is flushed (`Home.write_flushed`). The flush takes effect here.
3. `clear` empties soft, and notes in the same transaction that base must now be read as of c.

*Views* open soft first and read base as of the batch that soft notes. Until step 3 that is f, which
base remembers; afterwards it is c, and reading an earlier batch raises StaleRead. So a view opened
before, during or after a flush shows the same rows. If the process crashes before step 2,
`roll_back` undoes the flush; after it, the next start calls `clear`.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Self

from millstream.errors import StaleCommit, StaleRead
from millstream.stores import rows
from millstream.stores.checks import RowTally, digest_of, sealed, unsealed
from millstream.stores.commit_threads import commit_each
from millstream.stores.contract import (
    NO_BATCH,
    Changes,
    Fence,
    Layer,
    ShardState,
    check_read,
    check_roll_back,
)
from millstream.stores.environment import Transaction, explained
from millstream.stores.lmdb import MAP_SIZE, LmdbShard, LmdbStore, LmdbView
from millstream.stores.read_rows import ReadRows
from millstream.stores.shard_rows import HEAD_KEY, Head, read_head

_DELETED, _PUT = 0, 1
_ROW = struct.Struct("<BH")
_NOTE = struct.Struct("<q")
_NOTE_KEY = rows.OWN + b"f"
Item = tuple[bytes, bytes]


class LayeredView:
    """Soft over base, both as of one moment."""

    __slots__ = ("_base", "_soft")

    def __init__(self, soft: LmdbView, base: LmdbView) -> None:
        self._soft = soft
        self._base = base

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        soft_rows = self._soft.get_many(keys)
        missing = [number for number, row in enumerate(soft_rows) if row is None]
        values = [None if row is None else _value(row) for row in soft_rows]
        below = self._base.get_many([keys[number] for number in missing])
        for number, value in zip(missing, below, strict=True):
            values[number] = value
        return values

    def get(self, key: bytes) -> bytes | None:
        row = self._soft.get(key)
        return self._base.get(key) if row is None else _value(row)

    def scan(
        self, start: bytes, stop: bytes | None = None, *, reverse: bool = False, cut: int = 0
    ) -> Iterator[Item]:
        soft = self._soft.scan(start, stop, reverse=reverse, cut=cut)
        base = self._base.scan(start, stop, reverse=reverse, cut=cut)
        over = next(soft, None)
        return base if over is None else _merged(chain([over], soft), base, reverse)

    @property
    def rows_read(self) -> ReadRows | None:
        """What was read of soft, which commits go to."""
        return self._soft.rows_read

    def below(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values in base."""
        return self._base.get_many(keys)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._soft.__exit__(*exc)
        self._base.__exit__(*exc)


class _SoftShard(LmdbShard):
    """An unsynced shard that can be emptied, and that notes the batch that base is flushed to."""

    def noted(self) -> int:
        """The batch up to which base has everything; NO_BATCH if soft was never emptied."""
        with self._reading() as txn:
            return _note_of(txn.get(_NOTE_KEY))

    def note_in(self, view: LmdbView) -> int:
        """`noted`, as of a view."""
        with explained(self._where, "cannot read"):
            return _note_of(view.own(_NOTE_KEY))

    def check_noted(self, noted: int, committed: int) -> None:
        """Refuse to read as of `committed` if base is past it."""
        if noted != NO_BATCH:
            check_read(self._where, noted + 1, committed)

    def clear(self, epoch: int, committed: int) -> None:
        """Remove every row, also those changed after `committed`, and note that batch."""
        environment = self._environment

        def body(txn: Transaction) -> bool:
            head = read_head(txn)
            seen = max(head.seen, environment.soft_fence())
            # Only a newer driver may prevent this. A cancelled task of this driver's next batch may
            # have committed here: its rows are removed too.
            fence = check_roll_back(
                self._where, Fence(seen.epoch, 0, 0), head.last, epoch, committed
            )
            environment.clear(txn)
            # As after a roll-back: the batches before `committed` are forgotten.
            note = sealed(_NOTE_KEY, _NOTE.pack(committed))
            tally = RowTally(1, digest_of([note]))
            txn.put(HEAD_KEY, Head(max(seen, fence), committed + 1, tally).pack())
            txn.put(_NOTE_KEY, note)
            return True

        with explained(self._where, "nothing was cleared"):
            environment.write(body)


class LayeredShard:
    """One shard of a `LayeredStore`."""

    def __init__(self, base: LmdbShard, soft: _SoftShard, since: int) -> None:
        self._base = base
        self._soft = soft
        self._since = since

    def before(self, batch: int) -> LayeredView:
        return self._over_base(self._soft.before(batch), batch - 1)

    def at(self, committed: int) -> LayeredView:
        return self._over_base(self._soft.at(committed), committed)

    def _over_base(self, soft: LmdbView, committed: int) -> LayeredView:
        try:
            flushed = max(self._since, self._soft.note_in(soft))
            self._soft.check_noted(flushed, committed)
            return LayeredView(soft, self._base.at(flushed))
        except BaseException:
            soft.__exit__()
            raise

    @property
    def flushed(self) -> int:
        """The batch up to which base has everything."""
        return max(self._since, self._soft.noted())

    @property
    def last_batch(self) -> int:
        """The last batch that changed the layer."""
        return self._soft.last_batch

    @property
    def base_batch(self) -> int:
        """The last flush that changed base, counted as base counts."""
        return self._base.last_batch

    def state(self) -> ShardState | None:
        base, soft = self._base.state(), self._soft.state()
        if base is None:
            return None
        if soft is None:  # no batch has changed it since the layer was begun
            return ShardState(base.seen, NO_BATCH, base.last, self._since)
        return ShardState(max(soft.seen, base.seen), soft.last, base.last, self.flushed)

    def commit(
        self, fence: Fence, changes: Mapping[str, Changes], read: ReadRows | None = None
    ) -> None:
        self._soft.commit(
            fence,
            {name: self._layered(fence.batch, name, changed) for name, changed in changes.items()},
            read,
        )

    def _layered(self, batch: int, function: str, changed: Changes) -> Changes:
        """Translates a function's changes into changes of soft."""
        name = function.encode()
        put, deleted = _ROW.pack(_PUT, len(name)) + name, _ROW.pack(_DELETED, len(name)) + name
        gone = [key for key, value in changed.items() if value is None]
        if not gone:
            return {key: put + value for key, value in changed.items() if value is not None}
        try:
            with self.before(batch) as view:
                there, below = view.get_many(gone), view.below(gone)
        except StaleRead as error:
            raise StaleCommit(f"{error}; drop this task, nothing was changed") from error
        of_soft: dict[bytes, bytes | None] = {}
        for key, value, under in zip(gone, there, below, strict=True):
            if value is not None:  # deleting what is not there changes nothing
                of_soft[key] = None if under is None else deleted
        of_soft |= {key: put + value for key, value in changed.items() if value is not None}
        return of_soft

    def roll_back(self, epoch: int, committed: int) -> bool:
        undone = self._soft.roll_back(epoch, committed)
        self._base.roll_back(epoch, self.flushed)
        return undone

    def write_base(self, epoch: int, flushed: int, committed: int) -> int:
        """Commit the rows of soft as of `committed` to base, which has everything up to `flushed`.

        Returns the number of rows. Until `clear`, `roll_back` undoes all of it.
        """
        changes: dict[str, dict[bytes, bytes | None]] = {}
        with self._soft.at(committed) as soft:
            for key, row in soft.scan(b""):
                changes.setdefault(_owner(row), {})[key] = _value(row)
        if changes:
            self._base.commit(Fence(epoch, flushed + 1, 0), changes)
        return sum(map(len, changes.values()))

    def clear(self, epoch: int, committed: int) -> None:
        """Empty soft: base has everything up to `committed`."""
        self._soft.clear(epoch, committed)

    def close(self) -> None:
        self._soft.close()
        self._base.close()


class LayeredStore:
    """The shards under the folder `base`, with a layer above each under the folder `soft`.

    `since` is the batch up to which base had everything when the layer was begun.
    """

    def __init__(
        self,
        base: str | os.PathLike[str],
        soft: str | os.PathLike[str],
        shards: int,
        since: int = NO_BATCH,
        *,
        map_size: int = MAP_SIZE,
    ) -> None:
        self._base = LmdbStore(base, shards, map_size=map_size)
        self._path = Path(soft).absolute()
        self._since = since
        self._map_size = map_size
        self._shards: dict[int, LayeredShard] = {}

    @property
    def shards(self) -> int:
        return self._base.shards

    @property
    def layer(self) -> Layer | None:
        return self

    def write_base(self, epoch: int, flushed: int, committed: int) -> None:
        for number in range(self.shards):
            self.shard(number).write_base(epoch, flushed, committed)

    def clear(self, epoch: int, committed: int) -> None:
        for number in range(self.shards):
            if self.shard(number).flushed < committed:
                self.shard(number).clear(epoch, committed)

    def base_batches(self) -> list[int]:
        return [self.shard(number).base_batch for number in range(self.shards)]

    def shard(self, number: int) -> LayeredShard:
        if number not in self._shards:
            base = self._base.shard(number)
            path = str(self._path / f"shard-{number:04d}")
            soft = _SoftShard(path, number, self._map_size, sync=False)
            self._shards[number] = LayeredShard(base, soft, self._since)
        return self._shards[number]

    commit = commit_each

    def close(self) -> None:
        for shard in self._shards.values():
            shard.close()


def _note_of(note: bytes | None) -> int:
    return NO_BATCH if note is None else int(_NOTE.unpack(unsealed(_NOTE_KEY, note))[0])


def _value(row: bytes) -> bytes | None:
    kind, length = _ROW.unpack_from(row)
    return row[_ROW.size + length :] if kind == _PUT else None


def _owner(row: bytes) -> str:
    _, length = _ROW.unpack_from(row)
    return row[_ROW.size : _ROW.size + length].decode()


def _merged(soft: Iterator[Item], base: Iterator[Item], reverse: bool) -> Iterator[Item]:
    """Merges the rows of both in key order; soft wins where both have a key."""
    over, under = next(soft, None), next(base, None)
    while over is not None or under is not None:
        if over is None or (
            under is not None
            and over[0] != under[0]
            and (under[0] > over[0] if reverse else under[0] < over[0])
        ):
            assert under is not None
            yield under
            under = next(base, None)
            continue
        if under is not None and under[0] == over[0]:
            under = next(base, None)
        value = _value(over[1])
        if value is not None:
            yield over[0], value
        over = next(soft, None)
