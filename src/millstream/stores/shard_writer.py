"""Writes a new shard from rows, for a vacuum, a reshard, or a copy that is restored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

import lmdb

from millstream.durable import sync
from millstream.stores import rows
from millstream.stores.checks import NONE, RowTally, digest_of
from millstream.stores.contract import Fence
from millstream.stores.lmdb import MAP_SIZE
from millstream.stores.shard_rows import HEAD_KEY, Head

CHUNK = 10_000
"""Rows written in one transaction."""


class ShardWriter:
    """Makes a shard from rows in any order. A context manager; `finish` completes the shard."""

    def __init__(self, folder: Path, batch: int) -> None:
        """All rows are as of the end of `batch`. The folder may have rows from an earlier try."""
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._batch = batch
        self._env = lmdb.open(str(folder), map_size=MAP_SIZE, sync=False)

    def __enter__(self) -> ShardWriter:
        return self

    def __exit__(self, *exc: object) -> None:
        self._env.close()

    def put(self, items: Sequence[tuple[bytes, bytes]]) -> RowTally:
        keys = [key for key, _ in items]
        stored = rows.stored_keys(keys)
        long = {
            short: key for short, key in zip(stored, keys, strict=True) if len(key) > rows.MAX_SHORT
        }
        values = [value for _, value in items]
        current = rows.examined(stored, [None] * len(items), self._batch - 1)
        writes, _ = rows.replace(self._batch, stored, values, current, long)
        with self._env.begin(write=True) as txn:
            txn.cursor().putmulti(writes.puts)
        return writes.tally

    def counted(self) -> RowTally:
        """The tally of all rows in the folder."""
        tally = NONE
        with self._env.begin() as txn:
            values = (value for key, value in txn.cursor() if key[:1] == rows.ROW)
            while chunk := list(islice(values, CHUNK)):
                tally = tally.changed(RowTally(len(chunk), digest_of(chunk)), ())
        return tally

    def finish(
        self, epoch: int, tally: RowTally, own: Mapping[bytes, bytes] | None = None, *, synced: bool
    ) -> None:
        """Write the head and the shard's `own` records; sync them to disk if `synced`."""
        own = own or {}
        tally = tally.changed(RowTally(len(own), digest_of([*own.values()])), ())
        # As after a roll-back: the batches before this one are forgotten.
        head = Head(Fence(epoch, self._batch + 1, 0), self._batch + 1, tally)
        with self._env.begin(write=True) as txn:
            txn.put(HEAD_KEY, head.pack())
            for key, value in own.items():
                txn.put(key, value)
        if synced:
            self._env.sync(True)
            sync(self._folder)


def write_shard(
    folder: Path,
    items: Iterable[tuple[bytes, bytes]],
    epoch: int,
    batch: int,
    *,
    synced: bool = True,
    own: Mapping[bytes, bytes] | None = None,
) -> None:
    """Make a shard with these rows, as of the end of `batch`, in a folder that must not exist yet.

    If `synced`, it is on disk when this returns. `own` has the shard's own records.
    """
    folder.mkdir(parents=True)
    tally, pending = NONE, iter(items)
    with ShardWriter(folder, batch) as writer:
        while chunk := list(islice(pending, CHUNK)):
            tally = tally.changed(writer.put(chunk), ())
        writer.finish(epoch, tally, own, synced=synced)
