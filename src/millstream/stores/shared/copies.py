"""The copies of a store's shards on this host, brought to the change that a task builds on.

DESIGN
------
A task names the last committed change of a shard, its lineage. If the copy has exactly that, or an
attempt of the task's own batch on top of it, there is nothing to do, and no request goes to the
place. Otherwise the copy differs: it is behind, because the shard's task ran on another host for a
while; or it has applied an attempt that lost. Then the commits decide. If the copy's last change,
or the one before it, was committed, the copy goes back to it and applies the frames after it.
Otherwise it is restored from the base of the shard.

Each restore of a copy makes a new folder, a generation; the link `current` names the one in use. So
a process that still has an old one open does no harm, and a copy that was not completely restored
is never used. Copies are not synced: those of another boot of the machine are not used, and are
deleted.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from uuid import uuid4

from millstream.errors import StaleCommit, StoreError
from millstream.places.place import Place
from millstream.stores.lmdb import MAP_SIZE, LmdbView
from millstream.stores.shared.commit_log import CommitLog
from millstream.stores.shared.commit_record import StoreState
from millstream.stores.shared.copy_restore import brought_on, write_restored
from millstream.stores.shared.manifest import Lineage, ShardManifest
from millstream.stores.shared.segment_reader import SegmentReader
from millstream.stores.shared.shard_copy import CopyMoved, ShardCopy
from millstream.stores.soft import boot_id

TRIES = 10
"""Attempts to bring a copy up to date: another task may change it during each."""
PATIENCE = 60.0
"""Seconds for which requests are retried while the place does not answer."""
CURRENT = "current"


class Copies:
    """The copies of one store in a folder of this host. Several processes may use it."""

    def __init__(self, place: Place, store: str, folder: Path, patience: float = PATIENCE) -> None:
        self._place = place
        self._patience = patience
        self._folder = folder / store / (boot_id() or "unknown")
        self._log = CommitLog(place, patience)
        self._segments = SegmentReader(place, patience)
        self._state: StoreState | None = None
        self._open: dict[int, tuple[str, ShardCopy]] = {}
        if self._folder.parent.is_dir():
            for other in self._folder.parent.iterdir():
                if other.name != self._folder.name:
                    shutil.rmtree(other, ignore_errors=True)

    def view(self, shard: int, batch: int, onto: Lineage) -> LmdbView:
        """The rows of a shard as they stood before `batch`; `onto` is the last change before it."""
        for _ in range(TRIES):
            copy = self.brought(shard, batch, onto)
            view = copy.before(batch)
            if copy.marks_in(view).before(batch) == onto:
                return view
            view.__exit__(None, None, None)  # another task has changed the copy meanwhile
        raise self._contended(shard, batch)

    def brought(self, shard: int, batch: int, onto: Lineage) -> ShardCopy:
        """The copy of a shard, with `onto` as its last change before `batch`.

        Raises StaleCommit if the batch is an old one.
        """
        copy = self._current(shard)
        marks = copy.marks()
        if marks.current.batch <= batch and marks.before(batch) == onto:
            return copy
        manifest = self._manifest_before(batch)
        if manifest.lineage(shard) != onto:
            raise StaleCommit(
                f"{self._place.address}: shard {shard}: batch {batch} builds on the change {onto}, "
                f"and the commits say {manifest.lineage(shard)}: another driver has taken over; "
                "drop this task, nothing was changed"
            )
        return self.bring(shard, batch, manifest)

    def bring(self, shard: int, batch: int, manifest: ShardManifest) -> ShardCopy:
        """The copy of a shard as of before `batch`; `manifest` is the one before that batch."""
        onto = manifest.lineage(shard)
        for _ in range(TRIES):
            copy = self._current(shard)
            marks = copy.marks()
            if marks.current.batch <= batch and marks.before(batch) == onto:
                return copy
            try:
                if not brought_on(copy, self._segments, shard, manifest):
                    self._restore(shard, manifest)
            except CopyMoved:
                continue
        raise self._contended(shard, batch)

    def folder_of(self, shard: int) -> Path:
        """The folder of all generations of a shard's copy."""
        return self._folder / f"{shard:04d}"

    def generation(self, shard: int) -> str:
        """The generation of a shard's copy that is in use; makes an empty one if there is none."""
        folder = self.folder_of(shard)
        try:
            return os.readlink(folder / CURRENT)
        except FileNotFoundError:
            folder.mkdir(parents=True, exist_ok=True)
            _point(folder, uuid4().hex)
            return os.readlink(folder / CURRENT)

    def close(self) -> None:
        while self._open:
            self._open.popitem()[1][1].close()

    def _manifest_before(self, batch: int) -> ShardManifest:
        """The manifest as of the commit before a batch."""
        state = self._state
        if state is None or state.batch >= batch:
            state = self._log.load()
        if state is None or state.batch >= batch:
            raise StaleCommit(
                f"{self._place.address}: batch {batch} is committed already, or there is no store; "
                "another driver has taken over: drop this task, nothing was changed"
            )
        self._state = state
        while state.batch < batch - 1:
            commit = self._log.read(state.batch + 1)
            if commit is None:  # deleted, since a later manifest includes it
                loaded = self._log.load()
                if loaded is None or loaded.batch <= state.batch or loaded.batch >= batch:
                    raise StoreError(
                        f"{self._place.address}: the commit of batch {state.batch + 1} is missing, "
                        f"and batch {batch} is running; was the store removed?"
                    )
                self._state = state = loaded
                continue
            state.take(commit)
        return state.manifest

    def _restore(self, shard: int, manifest: ShardManifest) -> None:
        """Make a new generation of a shard's copy, from its base and the changes after it."""
        generation = uuid4().hex
        folder = self.folder_of(shard)
        write_restored(
            self._place, self._segments, folder / generation, shard, manifest, self._patience
        )
        _point(folder, generation)

    def _current(self, shard: int) -> ShardCopy:
        """The copy in use; an empty one if there is none."""
        folder, generation = self.folder_of(shard), self.generation(shard)
        known = self._open.get(shard)
        if known is not None and known[0] == generation:
            return known[1]
        if known is not None:
            known[1].close()
        copy = ShardCopy(str(folder / generation), shard, MAP_SIZE)
        self._open[shard] = generation, copy
        return copy

    def _contended(self, shard: int, batch: int) -> StaleCommit:
        return StaleCommit(
            f"{self._place.address}: shard {shard}: other tasks changed the copy {TRIES} times "
            f"while batch {batch} was brought up; the task is retried"
        )


def _point(folder: Path, generation: str) -> None:
    """Make `current` name another generation; deletes the one before."""
    try:
        before = os.readlink(folder / CURRENT)
    except FileNotFoundError:
        before = ""
    link = folder / f".{generation}"
    os.symlink(generation, link)
    os.replace(link, folder / CURRENT)
    if before:
        shutil.rmtree(folder / before, ignore_errors=True)
