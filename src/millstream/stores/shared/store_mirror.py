"""A mirror: a folder that looks like a local store, and follows a shared one.

Every reader of a local store can read a mirror: it has `store.json`, `progress`, `app.json` and
shards. Its content is determined by the commits alone, so a mirror can be created and thrown away
at any time, on any host.

DESIGN
------
*Following.* A commit names the objects with the changes of its batch. The mirror fetches each
object once, applies its rows to all shards, and then replaces `progress`. So the shard contract
holds for a reader of a mirror as it does beside a driver: it can read batch c while c + 1 is
applied.

*Falling behind.* Commits are kept only for a while. A mirror that missed some must jump from its
batch to a later one, which the shards in use cannot do under their readers. So it makes a new
folder of shards, from copies of the old shards or from bases. Then `store.json` names the new
folder, and `progress` the new batch. `progress` also names its folder: a reader that has the old
folder open gets an error that tells it to reopen the store, and never confuses the two. The old
folder is kept for a while.

*Starting.* If the shards that the last follower left are of this store and this boot of the machine
(they are not synced), they are brought up to date in place. Before that `store.json` is removed, so
that nobody reads them meanwhile.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from uuid import uuid4

import msgspec

from millstream.durable import write_record
from millstream.errors import PlaceDamaged, StaleCommit, StoreError
from millstream.places.place import Place, read
from millstream.stores.absent_shard import named_shards
from millstream.stores.contract import ChangesRef
from millstream.stores.home import READABLE, Facts
from millstream.stores.lmdb import MAP_SIZE
from millstream.stores.progress import decoded
from millstream.stores.shared.changes_object import ChangeFrame, frames_in, section
from millstream.stores.shared.commit_log import PATIENCE, CommitLog
from millstream.stores.shared.commit_record import CommitRecord, StoreState
from millstream.stores.shared.copy_restore import apply_frames, brought_on, write_restored
from millstream.stores.shared.mirror_record import MirrorRecord, read_mirror, write_mirror
from millstream.stores.shared.segment_reader import SegmentReader
from millstream.stores.shared.shard_copy import ShardCopy
from millstream.stores.soft import boot_id

AT_ONCE = 8
"""The number of shards restored, and of objects fetched, in parallel."""
KEPT_SECONDS = 60.0
"""Seconds for which an old folder of shards is kept for readers that have it open."""
DESCRIPTION = "app.json"


class StoreMirror:
    """A mirror of a shared store in a folder. One process writes to it."""

    def __init__(
        self,
        place: Place,
        folder: Path,
        patience: float = PATIENCE,
        shards: Collection[int] | None = None,
    ) -> None:
        """Create the mirror, or bring it to the last commit; with `shards`, only these."""
        self.path = folder
        self._place = place
        self._patience = patience
        self._log = CommitLog(place, patience)
        self._segments = SegmentReader(place, patience)
        self._pool = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="mirror")
        self._open: dict[int, ShardCopy] = {}
        self._given = None if shards is None else sorted(shards)
        self._shown_facts = b""
        self._shown_description: bytes | None = None
        self._next = CommitLog(place, 0.0)
        self._left: list[tuple[float, Path]] = []
        self._state = self._loaded()
        self._facts = self._checked_facts()
        self._lay_out()
        self._shards = self._shards_folder()
        self._pool_map(self._bring, self.here)
        self._show()

    @property
    def batch(self) -> int:
        """The batch that the mirror shows."""
        return self._state.batch

    @property
    def written(self) -> int:
        """The wall time at which that batch was committed, in microseconds."""
        return self._state.written

    @property
    def state(self) -> StoreState:
        """The state of the store according to the commits up to the mirror's batch."""
        return self._state

    @property
    def record(self) -> MirrorRecord:
        """The record of what the mirror follows."""
        return MirrorRecord(place=self._place.address, store=self._facts.id, boot=boot_id())

    @property
    def here(self) -> list[int]:
        """The shards that the mirror has."""
        return [*range(self._facts.shards)] if self._given is None else self._given

    def follow(self) -> bool:
        """Apply the next commit; False if there is none yet, or it was deleted (`catch_up`).

        Raises PlaceError, and changes nothing, if the place does not answer.
        """
        self._clear()
        commit = self._next.read(self._state.batch + 1)
        if commit is None:
            return False
        if commit.facts is not None and not self._fits(commit.facts):
            self.reload()
            return True
        try:
            self._apply(commit)
        except StaleCommit:
            self.reload()  # another process has changed the shards
            return True
        except PlaceDamaged:
            # If the mirror is behind, the object may have been packed or replaced by a base. If it
            # is not, the object is lost.
            if not self._is_behind():
                raise
            self.reload()
            return True
        self._state.take(commit)
        self._show()
        return True

    def _fits(self, facts: bytes) -> bool:
        """True if the shards here belong to a store with these facts."""
        other = msgspec.json.decode(facts, type=Facts)
        return (other.id, other.shards) == (self._facts.id, self._facts.shards)

    def catch_up(self) -> bool:
        """Build the shards again if commits were missed; False if none were."""
        if not self._is_behind() or self._next.read(self._state.batch + 1) is not None:
            return False
        self.reload()
        return True

    def reload(self) -> None:
        """Jump to the last commit, in a new folder of shards."""
        old = self._state, self._facts, self._shards, self._open
        try:
            self._state = self._loaded()
            self._facts = self._checked_facts()
            self._shards, self._open = self._fresh_folder(), {}
            if (self._facts.id, self._facts.shards) == (old[1].id, old[1].shards):
                self._pool_map(lambda shard: self._copy_on(old[3][shard], shard), self.here)
            else:
                self._pool_map(self._restore, self.here)
        except BaseException:
            unfinished, fresh = self._shards, self._open
            self._state, self._facts, self._shards, self._open = old
            if unfinished != self._shards:
                _close(fresh)
                shutil.rmtree(unfinished, ignore_errors=True)
            raise
        _close(old[3])
        self._show()
        self._left.append((time.monotonic(), old[2]))

    def close(self) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)
        _close(self._open)

    def _is_behind(self) -> bool:
        newest = self._next.newest()
        return newest is not None and newest > self._state.batch

    # commits

    def _apply(self, commit: CommitRecord) -> None:
        """Apply the changes of a batch; the lineages are still those before it."""
        wanted = set(self.here)
        refs = [ref for ref in commit.changes if wanted.intersection(ref.shards)]
        frames: dict[int, list[ChangeFrame]] = {}
        for ref, content in zip(refs, self._pool.map(self._fetched, refs), strict=True):
            where = f"{self._place.address}/{ref.name}"
            for shard in wanted.intersection(ref.shards):
                frames.setdefault(shard, []).extend(frames_in(where, section(content, shard)))
        for shard, changes in sorted(frames.items()):
            apply_frames(self._copy(shard), changes, self._state.manifest.lineage(shard))

    def _fetched(self, ref: ChangesRef) -> bytes:
        content = read(self._place, ref.name)
        if content is None:
            raise PlaceDamaged(
                f"{self._place.address}/{ref.name}: is missing, and a commit names it; restore it "
                "from a copy or an earlier version of the bucket"
            )
        return content

    def _loaded(self) -> StoreState:
        state = self._log.load()
        if state is None:
            raise StoreError(
                f"{self._place.address}: no store is there; run the application first, or name its "
                "store with --store"
            )
        return state

    def _checked_facts(self) -> Facts:
        facts = msgspec.json.decode(self._state.facts, type=Facts)
        if facts.format not in READABLE[1:]:
            raise StoreError(
                f"{self._place.address}: the store has format {facts.format}, and this version of "
                f"Millstream reads formats {READABLE[1]} to {READABLE[-1]}; read it with the "
                "version that wrote it"
            )
        if self._given and not 0 <= self._given[0] <= self._given[-1] < facts.shards:
            raise StoreError(
                f"{self._place.address}: the store has shards 0 to {facts.shards - 1}; asked for "
                f"{named_shards(self._given)}: name some of those with --shards"
            )
        return facts

    # shards

    def _bring(self, shard: int) -> None:
        """Bring a shard up to date from the state that the last follower left, or restore it."""
        if (self._folder_of(shard) / "data.mdb").exists():
            copy = self._copy(shard)
            try:
                if brought_on(copy, self._segments, shard, self._state.manifest):
                    return
            except PlaceDamaged:
                raise
            except StoreError:
                pass  # damaged, or not completely written
            self._open.pop(shard).close()
        shutil.rmtree(self._folder_of(shard), ignore_errors=True)
        self._restore(shard)

    def _copy_on(self, old: ShardCopy, shard: int) -> None:
        """Copy a shard in use to the new folder, and bring the copy up to date."""
        folder = self._folder_of(shard)
        fresh = self._unfinished(folder)
        old.copy_to(fresh)
        fresh.rename(folder)
        if not brought_on(self._copy(shard), self._segments, shard, self._state.manifest):
            self._open.pop(shard).close()
            shutil.rmtree(folder)
            self._restore(shard)

    def _restore(self, shard: int) -> None:
        """Restore a shard from its base and later changes; under another name until complete."""
        folder = self._folder_of(shard)
        fresh = self._unfinished(folder)
        manifest = self._state.manifest
        write_restored(self._place, self._segments, fresh, shard, manifest, self._patience)
        fresh.rename(folder)
        self._copy(shard)

    def _copy(self, shard: int) -> ShardCopy:
        if shard not in self._open:
            self._open[shard] = ShardCopy(str(self._folder_of(shard)), shard, MAP_SIZE)
        return self._open[shard]

    def _folder_of(self, shard: int) -> Path:
        return self._shards / f"shard-{shard:04d}"

    def _unfinished(self, folder: Path) -> Path:
        return folder.with_name(f".{folder.name}-{uuid4().hex[:8]}")

    def _pool_map(self, do: Callable[[int], None], shards: list[int]) -> None:
        """Call `do` for all shards, in parallel; none still runs when this returns or raises."""
        futures = [self._pool.submit(do, shard) for shard in shards]
        wait(futures)
        for future in futures:
            future.result()

    # the folder

    def _lay_out(self) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        (self.path / "store.json").unlink(missing_ok=True)
        known, now = read_mirror(self.path), self.record
        if known is None or (known.store, known.boot) != (now.store, now.boot) or not known.boot:
            for left in self.path.glob("shards-*"):
                shutil.rmtree(left)
        write_mirror(self.path, now)
        for folder in ("staging", "sources", "logs"):
            (self.path / folder).mkdir(exist_ok=True)

    def _shards_folder(self) -> Path:
        """The newest folder of shards, or a new one if there is none; deletes the others."""
        folders = sorted(self.path.glob("shards-*"), key=lambda path: path.stat().st_mtime_ns)
        for left in folders[:-1]:
            shutil.rmtree(left)
        if not folders:
            return self._fresh_folder()
        for unfinished in folders[-1].glob(".shard-*"):
            shutil.rmtree(unfinished)
        return folders[-1]

    def _fresh_folder(self) -> Path:
        folder = self.path / f"shards-{uuid4().hex[:8]}"
        folder.mkdir()
        return folder

    def _clear(self) -> None:
        """Delete old folders of shards whose time is over."""
        while self._left and time.monotonic() - self._left[0][0] > KEPT_SECONDS:
            shutil.rmtree(self._left.pop(0)[1], ignore_errors=True)

    def _show(self) -> None:
        """Publish the current batch to readers: the shards already have it."""
        state = self._state
        if state.description != self._shown_description and state.description is not None:
            write_record(self.path / DESCRIPTION, state.description, synced=False)
            self._shown_description = state.description
        facts = self._own_facts()
        if facts != self._shown_facts:
            # Before the progress: a reader that sees the new batch must find the new shards.
            write_record(self.path / "store.json", facts, synced=False)
            self._shown_facts = facts
        progress = decoded(state.progress)
        progress.folder = self._shards.name
        progress.staged, progress.unpublished = [], []  # only the driver has these files
        write_record(self.path / "progress", msgspec.json.encode(progress), synced=False)

    def _own_facts(self) -> bytes:
        facts = msgspec.json.decode(self._state.facts, type=Facts)
        facts.folder = self._shards.name
        facts.here = self._given
        return msgspec.json.encode(facts)


def _close(copies: dict[int, ShardCopy]) -> None:
    while copies:
        copies.popitem()[1].close()
