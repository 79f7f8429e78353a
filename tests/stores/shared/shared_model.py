"""A driver and its hosts in one process, over any place: what the tests of the shared store run."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import msgspec

from millstream.errors import PlaceError, StoreError
from millstream.places.place import Place
from millstream.stores.contract import Changes, ChangesRef, Fence, Store
from millstream.stores.home import Facts
from millstream.stores.progress import Progress
from millstream.stores.read_rows import ReadRows
from millstream.stores.shared.changes_object import write_pack
from millstream.stores.shared.commit_log import CommitLog
from millstream.stores.shared.commit_record import CommitRecord, StoreState, state_of
from millstream.stores.shared.copies import Copies
from millstream.stores.shared.manifest import BaseRef, PackRef, ShardManifest
from millstream.stores.shared.shard_base import write_base
from millstream.stores.shared.shared_store import SharedStore

Rows = dict[bytes, bytes]


def rows_before(
    store: Store, batch: int, changes: Mapping[int, Mapping[str, Changes]]
) -> dict[int, ReadRows]:
    """Reads the rows that the first function of each shard changes, as a task of the batch does."""
    read: dict[int, ReadRows] = {}
    for number, functions in changes.items():
        try:
            with store.shard(number).before(batch) as view:
                view.get_many(sorted(next(iter(functions.values()), {})))
        except StoreError:
            continue  # the commit says so too
        if view.rows_read is not None:
            read[number] = view.rows_read
    return read


class ModelDriver:
    """Commits batches of made-up changes; the tasks run on any of some hosts."""

    def __init__(
        self, place: Place, folder: Path, shards: int, hosts: int, patience: float
    ) -> None:
        self.place = place
        self.shards = shards
        self.log = CommitLog(place, patience)
        self.hosts = [
            Copies(place, "store", folder / f"host{number}", patience) for number in range(hosts)
        ]
        self.patience = patience
        self.epoch = 0
        self.facts = msgspec.json.encode(Facts("test", shards, {"f": "dict"}, id="store"))
        self.attempt = 0
        self.state = self.start()

    def start(self) -> StoreState:
        """Take the store over, as a new driver."""
        state = self.log.load()
        manifest = ShardManifest() if state is None else state.manifest
        batch = 0 if state is None else state.batch + 1
        self.epoch = 1 if state is None else state.epoch + 1
        commit = self._record(batch, manifest_at=batch, manifest=manifest, facts=self.facts)
        assert self.log.create(commit)
        self.state = state_of(commit)
        return self.state

    def close(self) -> None:
        for copies in self.hosts:
            copies.close()

    def store_on(self, host: int) -> SharedStore:
        """The store as a task of the next batch sees it on a host."""
        lineages = [self.state.manifest.lineage(shard) for shard in range(self.shards)]
        copies = self.hosts[host]
        return SharedStore(self.place, copies, self.state.batch + 1, lineages, self.patience)

    def read(self, host: int, shard: int) -> Rows:
        """All rows of a shard before the next batch, as a host has them."""
        with self.store_on(host).shard(shard).before(self.state.batch + 1) as view:
            return dict(view.scan(b""))

    def attempted(
        self, host: int, changes: dict[int, dict[str, Changes]], store: SharedStore | None = None
    ) -> list[ChangesRef]:
        """A task of the next batch, or of an older driver's, that writes these changes."""
        self.attempt += 1
        fence = Fence(self.epoch, self.state.batch + 1, self.attempt)
        store = store or self.store_on(host)
        return store.commit(fence, changes, rows_before(store, fence.batch, changes))

    def commit(
        self,
        changes: list[ChangesRef],
        bases: list[BaseRef] | None = None,
        packs: list[PackRef] | None = None,
        *,
        whole: bool = False,
    ) -> bool:
        """Commit the next batch; False if another driver has."""
        batch = self.state.batch + 1
        at = batch if whole else self.state.manifest_at
        commit = self._record(
            batch, changes=changes, bases=bases or [], packs=packs or [], manifest_at=at
        )
        if whole:
            manifest = self.state.manifest.copy()
            manifest.take(batch, commit.changes, commit.bases, commit.packs)
            commit.manifest, commit.facts = manifest, self.facts
        if not self.log.create(commit):
            return False
        gone = self.state.take(commit)
        try:
            self.place.delete(gone)
        except PlaceError:
            pass  # no commit names them: a sweep takes them
        return True

    def base(self, host: int, shard: int) -> BaseRef:
        """A base of a shard as of the last commit, written by a host."""
        batch, lineage = self.state.batch, self.state.manifest.lineage(shard)
        with self.store_on(host).shard(shard).before(batch + 1) as view:
            return write_base(self.place, shard, batch, lineage, view, self.patience)

    def pack(self, together: int) -> list[PackRef]:
        """A pack of the oldest segments, if there are enough."""
        run = self.state.manifest.due_pack(together)
        if not run:
            return []
        return [write_pack(self.place, run, self.patience)]

    def _record(self, batch: int, **given: object) -> CommitRecord:
        return CommitRecord(
            batch=batch,
            epoch=self.epoch,
            id=uuid4().hex,
            written=time.time_ns() // 1_000,
            host="test",
            progress=msgspec.json.encode(Progress(batch=batch)),
            **given,  # type: ignore[arg-type]
        )
