"""Opens the store of a job for its tasks, and keeps it open in this process between batches."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from millstream.driver.durability.base_writer import BaseWriting
from millstream.driver.job import BatchJob, SharedJob
from millstream.durable import with_checksum, write_unsynced, write_whole
from millstream.places.host_cache import cache_folder
from millstream.places.place import Place, persistent, sealed
from millstream.places.place_address import place_at
from millstream.stores.contract import Store
from millstream.stores.home import opened
from millstream.stores.shared.copies import Copies
from millstream.stores.shared.manifest import BaseRef
from millstream.stores.shared.shared_store import PATIENCE, SharedStore
from millstream.stores.shared.staged_objects import staged_name
from millstream.stores.soft import Soft

MOST_OPEN = 8

_open: dict[tuple[Path, str, Soft | None], Store] = {}
"""The stores of recent jobs in this process, by path, run and layer."""


@dataclass(frozen=True, slots=True)
class _OpenPlace:
    """A place, and this host's copies of the shards of the store in it."""

    place: Place
    copies: Copies
    bases: BaseWriting

    def close(self) -> None:
        self.bases.close()
        self.copies.close()


_places: dict[tuple[str, str], _OpenPlace] = {}
"""Open places, by address and run."""


def store_of(job: BatchJob) -> Store:
    if job.shared is not None:
        opened_place = _place_of(job.shared, job.run)
        batch, lineages = job.beat.batch, job.shared.lineages
        return SharedStore(opened_place.place, opened_place.copies, batch, lineages)
    name = job.store, job.run, job.soft
    if name not in _open:
        for path, run, soft in [*_open]:
            if (path == job.store and run != job.run) or len(_open) >= MOST_OPEN:
                _open.pop((path, run, soft)).close()
        _open[name] = opened(job.store, job.shards, job.soft)
    return _open[name]


def place_of(job: BatchJob) -> Place:
    """Returns the place of a job's shared store."""
    assert job.shared is not None, "the store is a folder"
    return _place_of(job.shared, job.run).place


def bases_of(job: BatchJob, owned: Iterable[int]) -> list[BaseRef]:
    """Starts the bases that are needed of the `owned` shards; returns those that are finished."""
    if job.shared is None:
        return []
    opened_place, batch = _place_of(job.shared, job.run), job.beat.batch
    for shard in job.shared.bases.intersection(owned):
        if opened_place.bases.takes(shard):
            lineage = job.shared.lineages[shard]
            view = opened_place.copies.view(shard, batch, lineage)
            opened_place.bases.begin(shard, batch - 1, lineage, view)
    return opened_place.bases.finished()


def stage(job: BatchJob, name: str, data: bytes) -> None:
    """Stages output of a task: keeps it until the sinks have it."""
    if job.shared is not None:
        place, where = _place_of(job.shared, job.run).place, staged_name(name)
        persistent(lambda: place.put(where, sealed(where, data)), PATIENCE)
        return
    write = write_whole if job.soft is None else write_unsynced
    write(job.store / "staging" / name, with_checksum(data))


def close_stores() -> None:
    """Closes the stores that jobs have opened in this process."""
    while _open:
        _open.popitem()[1].close()
    while _places:
        _places.popitem()[1].close()


def _place_of(shared: SharedJob, run: str) -> _OpenPlace:
    name = shared.place, run
    if name not in _places:
        for known in [*_places]:
            if known[0] == shared.place or len(_places) >= MOST_OPEN:
                _places.pop(known).close()
        place = place_at(shared.place)
        copies = Copies(place, shared.id, cache_folder(shared.cache) / "copies")
        _places[name] = _OpenPlace(place, copies, BaseWriting(place))
    return _places[name]
