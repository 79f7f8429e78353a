"""Reshards a shared store: writes new bases of all shards, and one commit that names them.

The rows are moved on this host, in a mirror of the store, as in a local store. Each new base is
read back from the place and compared with them. Nothing changes until the commit; without it, what
was written before is garbage. The commit is made as a driver makes it, so a former leader cannot
commit any more.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import zip_longest

import msgspec

from millstream.counted_nouns import counted
from millstream.driver.maintenance.resharding import NOTE, begun, write_resharded
from millstream.driver.startup.leadership import LOOK_SECONDS, LeaderWatch
from millstream.errors import StoreError, StoreLocked
from millstream.places.host_cache import working_folder
from millstream.places.place import Place
from millstream.stores.home import Home
from millstream.stores.lmdb import LmdbStore
from millstream.stores.progress import decoded
from millstream.stores.shared.commit_log import PATIENCE, CommitLog
from millstream.stores.shared.leader_beat import last_beat
from millstream.stores.shared.manifest import BaseRef
from millstream.stores.shared.mirror_folder import held_folder
from millstream.stores.shared.shard_base import read_base, write_base
from millstream.stores.shared.shared_home import SharedHome
from millstream.stores.shared.store_mirror import StoreMirror

AT_ONCE = 4
"""The number of bases that are written at the same time."""


def reshard_shared(
    place: Place, shards: int, say: Callable[[str], None], *, lease: float = 10.0, cache: str = ""
) -> int:
    """Gives a shared store another number of shards; returns the number that it had.

    Raises StoreLocked if the application is running.
    """
    _check_idle(place, lease)
    work = working_folder(place.address, "reshard", cache)
    with held_folder(work):
        with closing(StoreMirror(place, work / "mirror")) as mirror:
            facts = Home.open(mirror.path).facts
        if shards == facts.shards:
            say(f"the store has {counted(shards, 'shard')} already")
            return facts.shards
        home = SharedHome.take(place, work / "driver", facts.app, None, {}, cache)
        progress = decoded(home.read_progress())
        if progress.batch != mirror.batch:
            raise StoreLocked(
                f"{place.address}: a driver has committed batch {progress.batch} meanwhile; stop "
                "the application, and then reshard its store"
            )
        source = Home.open(mirror.path)
        # A mirror takes the folders shards-* for its own.
        note = begun(source, shards, progress.batch, prefix="resharded")
        counts = write_resharded(source, progress, note, home.next_epoch, say)
        rows = counted(sum(counts.rows.values()), "row")
        say(f"{rows} moved, and compared; writing to the place, and reading back")
        store = LmdbStore(source.path / note.folder, shards)
        try:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                bases = [*pool.map(lambda n: _base(place, store, n, note.batch), range(shards))]
        finally:
            store.close()
        home.replace_shards(shards, bases)
        home.take_over(progress)
        (source.path / NOTE).unlink(missing_ok=True)
        shutil.rmtree(source.path / note.folder, ignore_errors=True)
    return facts.shards


def _base(place: Place, store: LmdbStore, shard: int, batch: int) -> BaseRef:
    """Writes the base of a new shard, and reads it back; the base counts as the shard's last
    change."""
    with store.shard(shard).at(batch) as view:
        base = write_base(place, shard, batch, (batch, ()), view, PATIENCE)
        stored_rows = read_base(place, base, PATIENCE)
        for row, stored in zip_longest(view.scan(b""), stored_rows):
            if row != stored:
                raise StoreError(
                    f"{place.address}/{base.name}: the base must have the rows of the new shard "
                    f"{shard}, and differs at row {(row or stored)[0]!r}: the store was left as it "
                    "is; try again"
                )
    return msgspec.structs.replace(base, lineage=(batch, (base.name,)))


def _check_idle(place: Place, lease: float) -> None:
    """Raises StoreLocked if a driver runs on the store."""
    watch, log, pause = LeaderWatch(lease), CommitLog(place, 0.0), threading.Event()
    first = beat = last_beat(place)
    while beat is not None and not watch.may_lead(beat, log.newest(), time.monotonic()):
        if beat != first:
            raise StoreLocked(
                f"{place.address}: the application runs, on {beat.host}; stop it, and then "
                "reshard its store"
            )
        pause.wait(LOOK_SECONDS)
        beat = last_beat(place)
