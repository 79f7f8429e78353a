"""The driver's working folder for a shared store: laid out like a local store, built from commits.

Everything in the folder can be lost: every start builds it again from the commits. Data that must
last goes to the place, most of it with the commit of a batch: the progress, the facts, the
description, and the output that the sinks do not have yet.
"""

from __future__ import annotations

import shutil
import socket
import time
from collections import deque
from pathlib import Path
from uuid import uuid4

import msgspec

from millstream.durable import read_record, with_checksum, write_record, write_unsynced
from millstream.errors import StoreError, StoreLocked
from millstream.places.elapsed import moment
from millstream.places.place import Place, persistent, read, sealed
from millstream.stores.contract import ChangesRef
from millstream.stores.home import READABLE, Facts, Home
from millstream.stores.progress import Progress, decoded
from millstream.stores.shared.commit_log import MANIFEST_EVERY, PATIENCE, CommitLog
from millstream.stores.shared.commit_record import (
    COMMITS,
    CommitRecord,
    StoreState,
    commit_name,
    state_of,
)
from millstream.stores.shared.manifest import BaseRef, Lineage, PackRef, ShardManifest
from millstream.stores.shared.staged_objects import staged_name
from millstream.wall_clock import wall_clock

SHARDS = 64
"""The default number of shards of a new shared store: a cluster has no more tasks than shards, and
when a host is lost, whole shards move."""
INLINE_BYTES = 256 << 10
"""Output up to this size is stored in the commit itself."""
GRACE_SECONDS = 600.0
"""Objects that are no longer needed are kept for this long, for readers that still use them."""
KEPT_COMMITS = 2 * MANIFEST_EVERY
DESCRIPTION = "app.json"


class SharedHome(Home):
    """The working folder of a driver on a shared store."""

    def __init__(
        self, place: Place, folder: Path, facts: Facts, state: StoreState | None, cache: str = ""
    ) -> None:
        super().__init__(folder, facts)
        self._place = place
        self.cache = cache
        self._log = CommitLog(place)
        self._state = state
        self._known_at = moment()
        """A moment at which the last known commit was the newest."""
        self._epoch = 0
        self._changes: list[ChangesRef] = []
        self._bases: list[BaseRef] = []
        self._packs: list[PackRef] = []
        self._output: dict[str, bytes] = {}
        self._inline: set[str] = set()
        self._facts_changed = True
        self._garbage: deque[tuple[float, list[str]]] = deque()
        self._old_before = 0
        """Commits before this one can be deleted; 0: none."""

    @classmethod
    def take(
        cls,
        place: Place,
        folder: Path,
        app: str,
        shards: int | None,
        updates: dict[str, str],
        cache: str = "",
    ) -> SharedHome:
        """Opens the application's store from its commits; a new store is created by its first
        commit."""
        asked, state = moment(), CommitLog(place).load()
        if state is None:
            facts = Facts(app, shards or SHARDS, updates, id=uuid4().hex)
        else:
            facts = msgspec.json.decode(state.facts, type=Facts)
            if facts.format not in READABLE[1:]:
                raise StoreError(
                    f"{place.address}: the store has format {facts.format}, and this version of "
                    f"Millstream reads formats {READABLE[1]} to {READABLE[-1]}; run it with the "
                    "version that wrote it"
                )
        home = cls(place, folder, facts, state, cache)
        home._known_at = asked
        home._lay_out()
        home.fit(app, shards)
        return home

    def _lay_out(self) -> None:
        """Build the folder again from the commits."""
        for left in self.path.iterdir() if self.path.is_dir() else ():
            if left.is_dir():
                shutil.rmtree(left)
            elif left.name != "lock":
                left.unlink()
        for folder in (self.shards, self.staging, self.path / "sources"):
            folder.mkdir(parents=True, exist_ok=True)
        write_record(self.path / "progress", self.read_progress() or b"", synced=False)
        write_record(self.path / "store.json", msgspec.json.encode(self.facts), synced=False)
        if self._state is not None:
            if self._state.description is not None:
                write_record(self.path / DESCRIPTION, self._state.description, synced=False)
            self._output = staged_in(self._state.output)
            self._inline = {*self._output}
            for name, data in self._output.items():
                write_unsynced(self.staging / name, with_checksum(data))

    @property
    def place(self) -> Place:
        return self._place

    @property
    def name(self) -> str:
        return self._place.address

    @property
    def lineages(self) -> tuple[Lineage, ...]:
        """The last committed change of each shard."""
        manifest = ShardManifest() if self._state is None else self._state.manifest
        return tuple(manifest.lineage(number) for number in range(self.facts.shards))

    @property
    def manifest(self) -> ShardManifest:
        """The objects of the store, as of the last commit."""
        assert self._state is not None, "take_over comes first"
        return self._state.manifest

    def write_facts(self) -> None:
        write_record(self.path / "store.json", self._stored_facts(), synced=False)
        self._facts_changed = True

    def read_progress(self) -> bytes:
        return msgspec.json.encode(Progress()) if self._state is None else self._state.progress

    @property
    def next_epoch(self) -> int:
        """The epoch of the driver that takes over next."""
        return 1 if self._state is None else self._state.epoch + 1

    def replace_shards(self, shards: int, bases: list[BaseRef]) -> None:
        """Replace all shards by others, each with a base; the commit of `take_over` does it."""
        assert self._state is not None, "there is a store"
        self.facts.shards = shards
        self._state.manifest = ShardManifest(
            {base.shard: base for base in bases}, [], {base.shard: base.lineage for base in bases}
        )

    def take_over(self, progress: Progress) -> int:
        """Commit an empty batch with the next epoch: the driver before cannot commit any more."""
        state = self._state
        self._epoch = self.next_epoch
        if progress.staged:
            progress.unpublished = [*progress.unpublished, (progress.batch, progress.staged)]
            progress.staged = []
        progress.batch = 0 if state is None else state.batch + 1
        progress.written = wall_clock()
        self._facts_changed = True
        self._commit(progress, whole=True)
        return self._epoch

    def name_written(
        self, changes: list[ChangesRef], bases: list[BaseRef], packs: list[PackRef]
    ) -> None:
        """Set the objects that the next commit must name: its changes, and new bases and packs."""
        self._changes = changes
        self._bases += bases
        self._packs += packs

    def stage(self, name: str, data: bytes, *, synced: bool = True) -> None:
        write_unsynced(self.staging / name, with_checksum(data))
        if len(data) <= INLINE_BYTES:
            self._output[name] = data
            self._inline.add(name)
        else:
            where = staged_name(name)
            persistent(lambda: self._place.put(where, sealed(where, data)), PATIENCE)

    def fetch_staged(self, names: list[str]) -> None:
        for name in names:
            if not (self.staging / name).exists():
                where = staged_name(name)
                data = persistent(lambda where=where: read(self._place, where), PATIENCE)  # type: ignore[misc]
                if data is not None:
                    write_unsynced(self.staging / name, with_checksum(data))

    def drop_staged(self, names: list[str]) -> None:
        super().drop_staged(names)
        objects = [staged_name(name) for name in names if name not in self._inline]
        if objects:
            persistent(lambda: self._place.delete(objects), PATIENCE)
        for name in names:
            self._output.pop(name, None)
            self._inline.discard(name)

    def write_progress(self, progress: Progress, *, synced: bool = True) -> None:
        """Commit a batch. StoreLocked if another driver has taken over."""
        assert self._state is not None, "take_over comes first"
        whole = progress.batch - self._state.manifest_at >= MANIFEST_EVERY
        self._commit(progress, whole=whole)

    def _commit(self, progress: Progress, *, whole: bool) -> None:
        state, batch = self._state, progress.batch
        named = {*progress.staged, *(n for _, names in progress.unpublished for n in names)}
        output = {name: data for name, data in self._output.items() if name in named}
        commit = CommitRecord(
            batch=batch,
            epoch=self._epoch,
            id=uuid4().hex,
            written=progress.written,
            host=socket.gethostname(),
            progress=msgspec.json.encode(progress),
            changes=self._changes,
            bases=self._bases,
            packs=self._packs,
            output=msgspec.msgpack.encode(output) if output else b"",
            manifest_at=batch if whole or state is None else state.manifest_at,
        )
        gone: list[str] = []
        if whole or self._facts_changed:
            commit.facts = msgspec.json.encode(self.facts)
            commit.description = read_record(self.path / DESCRIPTION)
        if whole:
            commit.manifest = ShardManifest() if state is None else state.manifest.copy()
            gone = commit.manifest.take(batch, commit.changes, commit.bases, commit.packs)
        if not self._create(commit):
            raise self._overtaken(batch)
        if whole:
            self._state = state_of(commit)
            self._old_before = batch - KEPT_COMMITS
        else:
            assert state is not None
            gone = state.take(commit)
        self._changes, self._bases, self._packs, self._facts_changed = [], [], [], False
        if gone:
            self._garbage.append((time.monotonic(), gone))
        write_record(self.path / "progress", commit.progress, synced=False)

    def _create(self, commit: CommitRecord) -> bool:
        """Create the next commit; False if another driver has committed since.

        Old commits are deleted, so a name may become free again. A driver may have been suspended
        for so long that the commits of a newer driver are deleted already. It then asks for the
        newest commit before it creates one, and again after it, if it was suspended meanwhile.
        """
        if self._slept() and self._log.newest() != (commit.batch - 1 if commit.batch else None):
            return False
        asked = moment()
        if not self._log.create(commit):
            return False
        if self._slept() and self._log.newest() != commit.batch:
            self._place.delete([commit_name(commit.batch)])
            return False
        self._known_at = asked
        return True

    def _slept(self) -> bool:
        """True if commits after the last known one may have been deleted already."""
        return self._known_at.until(moment()) > GRACE_SECONDS / 2

    def _overtaken(self, batch: int) -> StoreLocked:
        newer = self._log.read(batch)
        by = "" if newer is None else f" on {newer.host}, epoch {newer.epoch}"
        return StoreLocked(
            f"{self._place.address}: another driver{by} has committed batch {batch}: it has taken "
            "over, or was started beside this one; this run ends, and nothing of its last batch "
            "counts"
        )

    def sweep(self, now: float) -> None:
        """Delete objects that were not needed for long enough, and old commits.

        This takes long. It may run in another thread, one call at a time.
        """
        while self._garbage and now - self._garbage[0][0] > GRACE_SECONDS:
            self._place.delete(self._garbage.popleft()[1])
        if self._old_before > 0:
            last, self._old_before = commit_name(self._old_before), 0
            listed = [*self._place.list(COMMITS)]
            young = max((commit.modified for commit in listed), default=0.0) - GRACE_SECONDS
            self._place.delete(
                commit.name for commit in listed if commit.name < last and commit.modified < young
            )

    def is_to_be_swept(self, now: float) -> bool:
        """True if there is anything to delete."""
        due = bool(self._garbage) and now - self._garbage[0][0] > GRACE_SECONDS
        return due or self._old_before > 0

    def committed_progress(self) -> Progress:
        """The progress of the last commit."""
        return decoded(self.read_progress())


def staged_in(output: bytes) -> dict[str, bytes]:
    """The files of the staging folder that a commit has in its output."""
    return msgspec.msgpack.decode(output, type=dict[str, bytes]) if output else {}
