"""A shared store behind the shard contract: plays the driver, the hosts of tasks, and a reader.

A shared store keeps the contract's promises with other means than a shard that refuses: nothing
that a task writes counts until a commit names it. So the parts are played as they are in a run:

- *The driver* creates the commits. A batch is committed when the next one begins; until then it is
  *pending*, and a later try of it takes the place of an earlier one: other objects are named. It
  knows the highest fence, and does not take the report of a task below it.
- *Tasks* run on one host after the other, and the copies of a host are wiped now and then. A task
  that the driver will not listen to has written its object all the same, and has changed the copy.
- *Readers* of the last batch find it in the copies of any host; those of the batch before it in a
  mirror, which has followed from the start: copies that were restored have no memory of it.
- *Roll-back* is a new driver, which reads the commits anew, and commits an empty batch with its
  epoch. What was pending was never there.

What the contract promises of a function's part of a try holds for whole tries here: an object is
named whole or not at all. So a try that repeats some functions of an earlier one does the others of
it again, as a task does that is started anew.

The numbers of commits are not those of the contract's batches: the commit of a new driver has one
too, and batches that changed nothing have none.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from stores.shared.shared_model import ModelDriver, rows_before

from millstream.errors import StoreError
from millstream.places.place import Place, persistent
from millstream.stores.commit_threads import commit_each
from millstream.stores.contract import (
    NO_BATCH,
    NO_FENCE,
    Changes,
    ChangesRef,
    Fence,
    Layer,
    Shard,
    ShardState,
    check_commit,
    check_read,
    check_roll_back,
)
from millstream.stores.home import Home
from millstream.stores.lmdb import LmdbStore, LmdbView
from millstream.stores.read_rows import NOTHING_READ, ReadRows
from millstream.stores.shared.copies import Copies
from millstream.stores.shared.manifest import ShardManifest
from millstream.stores.shared.shared_store import SharedStore
from millstream.stores.shared.store_mirror import StoreMirror

HOSTS = 3


@dataclass
class Try:
    """The writes of a task to a shard in the pending batch."""

    shard: int
    changes: dict[str, Changes]
    refs: list[ChangesRef]


@dataclass
class Pending:
    """The batch that is not committed yet."""

    batch: int
    tries: list[Try] = field(default_factory=list)

    @property
    def refs(self) -> list[ChangesRef]:
        return [ref for one in self.tries for ref in one.refs]


class PlayedStore:
    """A shared store in a place, as a store of the contract."""

    def __init__(self, place: Place, folder: Path, shards: int, patience: float = 0.0) -> None:
        self._place = place
        self._folder = folder
        self._patience = patience
        self.driver = ModelDriver(place, folder / "hosts", shards, HOSTS, patience)
        self._mirror = StoreMirror(place, folder / "mirror", patience)
        self._reading = LmdbStore(Home.open(self._mirror.path).shards, shards)
        self.lock = threading.RLock()
        self.pending: Pending | None = None
        self.overtaken = False
        self.batches = {self.driver.state.batch: NO_BATCH}
        """The contract's batch that each commit shows."""
        self._turn = 0
        self._gone: list[Copies] = []
        self._shards = [PlayedShard(self, number) for number in range(shards)]

    @property
    def shards(self) -> int:
        return len(self._shards)

    @property
    def layer(self) -> Layer | None:
        return None

    def shard(self, number: int) -> Shard:
        if not 0 <= number < self.shards:
            raise StoreError(f"shard {number} must be from 0 to {self.shards - 1}")
        return self._shards[number]

    def commit(
        self,
        fence: Fence,
        changes: Mapping[int, Mapping[str, Changes]],
        read: Mapping[int, ReadRows] = NOTHING_READ,
    ) -> list[ChangesRef]:
        return commit_each(self, fence, changes, read)

    def close(self) -> None:
        for copies in self._gone:
            copies.close()
        self._reading.close()
        self._mirror.close()
        self.driver.close()

    # the driver

    def settle(self) -> None:
        """Commits the pending batch. The next one begins on another host, which may be new."""
        pending, self.pending = self.pending, None
        if pending is None:
            return
        whole = self.driver.state.batch % 3 == 0
        assert self.driver.commit(pending.refs, whole=whole)
        self.batches[self.driver.state.batch] = pending.batch
        assert persistent(self._mirror.follow, self._patience)
        self._next_host()
        if self.overtaken:
            self.take_over()

    def take_over(self) -> None:
        """Starts a new driver, which knows only the place. If a batch is pending, the new driver
        starts after the old one has committed it."""
        self.overtaken = self.pending is not None
        if self.overtaken:
            return
        self.driver.start()
        self.batches[self.driver.state.batch] = max(self.batches.values())
        assert persistent(self._mirror.follow, self._patience)
        self._next_host()

    def task(self, fence: Fence, shard: int, changes: Mapping[str, Changes]) -> list[ChangesRef]:
        """Run a task on the host whose turn it is; the objects that it wrote."""
        numbered = Fence(fence.epoch, self.driver.state.batch + 1, fence.attempt)
        store = self.driver.store_on(self._turn)
        read = rows_before(store, numbered.batch, {shard: changes})
        return store.commit(numbered, {shard: changes}, read)

    def zombie(self, fence: Fence, shard: int, changes: Mapping[str, Changes]) -> None:
        """Run a task that nobody listens to."""
        state = self.driver.state
        lineages = [state.manifest.lineage(number) for number in range(self.shards)]
        copies = self.driver.hosts[self._turn]
        for batch in (state.batch, state.batch + 1):
            store = SharedStore(self._place, copies, batch, lineages, self._patience)
            with contextlib.suppress(StoreError):
                store.commit(Fence(fence.epoch, batch, fence.attempt), {shard: changes})

    def _next_host(self) -> None:
        self._turn = (self._turn + 1) % HOSTS
        if self._turn == 0:  # it is a new machine; whoever reads on the old one may go on
            self._gone.append(self.driver.hosts[0])
            folder = self._folder / "hosts" / f"new{len(self._gone)}"
            self.driver.hosts[0] = Copies(self._place, "store", folder, self._patience)

    # readers

    def view(self, shard: int, committed: int) -> LmdbView:
        """The rows of a shard at the end of a batch of the contract."""
        state, pending = self.driver.state, self.pending
        number = max((n for n, batch in self.batches.items() if batch <= committed), default=0)
        if number < state.batch:
            return self._reading.shard(shard).at(number)
        copies = self.driver.hosts[(self._turn + 1) % HOSTS]
        if pending is None or committed < pending.batch:
            return copies.view(shard, number + 1, state.manifest.lineage(shard))
        manifest = self._with(pending.refs)
        return copies.bring(shard, number + 2, manifest).before(number + 2)

    def _with(self, refs: list[ChangesRef]) -> ShardManifest:
        """The manifest as it would be after a commit of these objects."""
        manifest = self.driver.state.manifest.copy()
        manifest.take(self.driver.state.batch + 1, refs, [], [])
        return manifest


class PlayedShard:
    """A shard. The driver here knows what a shard of a local store knows of itself."""

    def __init__(self, store: PlayedStore, number: int) -> None:
        self._store = store
        self._number = number
        self._where = f"shard {number}"
        self._seen = NO_FENCE
        self._last = NO_BATCH

    @property
    def last_batch(self) -> int:
        return self._last

    def state(self) -> ShardState | None:
        return ShardState(self._seen, self._last)

    def close(self) -> None:
        pass

    def before(self, batch: int) -> LmdbView:
        return self.at(batch - 1)

    def at(self, committed: int) -> LmdbView:
        with self._store.lock:
            check_read(self._where, self._last, committed)
            return self._store.view(self._number, committed)

    def commit(
        self, fence: Fence, changes: Mapping[str, Changes], read: ReadRows | None = None
    ) -> None:
        store = self._store
        with store.lock:
            try:
                check_commit(self._where, self._seen, self._last, fence)
            except StoreError:
                store.zombie(fence, self._number, changes)
                raise
            self._seen = fence
            if store.pending is None or store.pending.batch != fence.batch:
                if not self._real(fence.batch, changes):
                    return
                store.settle()
                store.pending = Pending(fence.batch)
            self._replace(store.pending, fence, changes)
            if self._last < fence.batch and self._real(fence.batch, changes):
                self._last = fence.batch

    def roll_back(self, epoch: int, committed: int) -> bool:
        store = self._store
        with store.lock:
            fence = check_roll_back(self._where, self._seen, self._last, epoch, committed)
            self._seen = fence
            pending, undone = store.pending, False
            if pending is not None and pending.batch > committed:
                own = [one for one in pending.tries if one.shard == self._number]
                undone = any(self._real(committed + 1, one.changes) for one in own)
                pending.tries = [one for one in pending.tries if one not in own]
                if not pending.tries:
                    store.pending = None
            store.take_over()
            return undone

    def _replace(self, pending: Pending, fence: Fence, changes: Mapping[str, Changes]) -> None:
        """Let a try be named in the place of those whose functions it repeats."""
        mine = [one for one in pending.tries if one.shard == self._number]
        repeated = [one for one in mine if one.changes.keys() & changes.keys()]
        whole: dict[str, Changes] = {}
        for one in repeated:
            whole.update(one.changes)
        whole.update(changes)
        refs = self._store.task(fence, self._number, whole)
        pending.tries = [one for one in pending.tries if one not in repeated]
        pending.tries.append(Try(self._number, whole, refs))

    def _real(self, batch: int, changes: Mapping[str, Changes]) -> bool:
        """True if the changes differ from the rows before the batch."""
        keys = [key for changed in changes.values() for key in changed]
        if any(value is not None for changed in changes.values() for value in changed.values()):
            return True
        with self._store.view(self._number, batch - 1) as view:
            return any(value is not None for value in view.get_many(keys))
