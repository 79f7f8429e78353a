"""The shared store as a task sees it: the shards before its batch, and its changes.

Each job creates one `SharedStore`, with the batch and the last change of every shard. It reads from
the copies. A commit applies the changes to the copies and writes them to the place, as one object
for all shards of the task. They take effect only when the driver names the object in a commit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

from millstream.errors import StoreError
from millstream.places.place import Place, persistent, sealed
from millstream.stores.contract import Changes, ChangesRef, Fence, Layer, ShardState, check_read
from millstream.stores.lmdb import LmdbView
from millstream.stores.read_rows import NOTHING_READ, ReadRows
from millstream.stores.shared.changes_object import encode_changes
from millstream.stores.shared.copies import Copies
from millstream.stores.shared.manifest import Lineage

PATIENCE = 60.0
"""Seconds for which a task retries to write its changes while the place does not answer."""


class SharedStore:
    """The shards of a shared store, for the tasks of one batch in this process."""

    def __init__(
        self,
        place: Place,
        copies: Copies,
        batch: int,
        lineages: Sequence[Lineage],
        patience: float = PATIENCE,
    ) -> None:
        self._place = place
        self._copies = copies
        self._batch = batch
        self._lineages = lineages
        self._patience = patience

    @property
    def shards(self) -> int:
        return len(self._lineages)

    @property
    def layer(self) -> Layer | None:
        return None

    def shard(self, number: int) -> SharedShard:
        if not 0 <= number < self.shards:
            raise StoreError(
                f"the store {self._place.address}: shard {number} must be from 0 to "
                f"{self.shards - 1}"
            )
        return SharedShard(self, number)

    def view(self, shard: int, committed: int) -> LmdbView:
        """The rows of a shard as they stood at the end of `committed`."""
        if committed != self._batch - 1:
            where = f"shard {shard} of the store {self._place.address}"
            check_read(where, self._batch, committed)
            raise StoreError(
                f"{where}: batch {committed} is not the one before batch {self._batch}, which is "
                "being made"
            )
        return self._copies.view(shard, self._batch, self._lineages[shard])

    def lineage(self, shard: int) -> Lineage:
        """The last committed change of a shard."""
        return self._lineages[shard]

    def commit(
        self,
        fence: Fence,
        changes: Mapping[int, Mapping[str, Changes]],
        read: Mapping[int, ReadRows] = NOTHING_READ,
    ) -> list[ChangesRef]:
        """Apply a task's changes to the copies and write them to the place; returns the object."""
        changed = {
            number: functions
            for number, functions in changes.items()
            if any(rows for rows in functions.values())
        }
        name = f"changes/{fence.batch:012d}/{fence.epoch}-{fence.attempt}-{uuid4().hex[:12]}"
        data = sealed(name, encode_changes(fence.batch, name, changed)) if changed else b""
        with ThreadPoolExecutor(1) as writer:
            written = writer.submit(self._write, name, data)
            for number, functions in changes.items():
                onto = self._lineages[number]
                copy = self._copies.brought(number, fence.batch, onto)
                if number in changed or copy.marks().current.batch == fence.batch:
                    copy.advance(fence.batch, name, functions, onto, read.get(number))
            written.result()
        return [ChangesRef(name, len(data), sorted(changed))] if changed else []

    def _write(self, name: str, data: bytes) -> None:
        if data:
            persistent(lambda: self._place.put(name, data), self._patience)

    def close(self) -> None:
        """The copies stay open, for the next batch."""


class SharedShard:
    """One shard of a `SharedStore`."""

    def __init__(self, store: SharedStore, number: int) -> None:
        self._store = store
        self._number = number

    def before(self, batch: int) -> LmdbView:
        return self._store.view(self._number, batch - 1)

    def at(self, committed: int) -> LmdbView:
        return self._store.view(self._number, committed)

    def commit(
        self, fence: Fence, changes: Mapping[str, Changes], read: ReadRows | None = None
    ) -> None:
        known = NOTHING_READ if read is None else {self._number: read}
        self._store.commit(fence, {self._number: changes}, known)

    def roll_back(self, epoch: int, committed: int) -> bool:
        """Returns False: changes that no commit names never take effect, so there is nothing to
        undo."""
        return False

    @property
    def last_batch(self) -> int:
        return self._store.lineage(self._number)[0]

    def state(self) -> ShardState | None:
        batch = self.last_batch
        return ShardState(Fence(0, batch, 0), batch)

    def close(self) -> None:
        pass
