"""The stores that the contract suite runs over: the shared one also in places that misbehave."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from places.faulty_place import FaultRates, FaultyPlace
from stores.shared.played_store import PlayedStore

from millstream.places.directory_place import DirectoryPlace
from millstream.places.memory_place import MemoryPlace
from millstream.stores.contract import Shard, Store
from millstream.stores.layered import LayeredStore
from millstream.stores.lmdb import LmdbStore
from millstream.stores.memory import MemoryStore

FAULTS = FaultRates(fails=0.1, loses_answer=0.1, comes_late=0.1, slow=0.1)
"""Fault rates of a place: failed requests, lost responses (of creates too), requests that take
effect after their timeout, slow requests."""
PATIENCE = 60.0


@pytest.fixture(
    params=[
        *("memory", "lmdb", "lmdb-recent", "layered"),
        *("shared-memory", "shared-directory", "shared-faulty"),
    ]
)
def store(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    """An empty store of four shards."""
    # Retries wait for next to nothing.
    monkeypatch.setattr("millstream.places.place.FIRST_PAUSE", 1e-5)
    monkeypatch.setattr("millstream.places.place.LONGEST_PAUSE", 1e-4)
    if request.param == "lmdb-recent":
        monkeypatch.setattr("millstream.stores.recent_rows.room_for", lambda count: 40)
    faulty = FaultyPlace(MemoryPlace(), 7, FAULTS, pause=lambda: time.sleep(1e-3))
    made: dict[str, Callable[[], Store]] = {
        "memory": lambda: MemoryStore(4),
        "lmdb": lambda: LmdbStore(tmp_path / "s", 4),
        "lmdb-recent": lambda: LmdbStore(tmp_path / "s", 4),
        "layered": lambda: LayeredStore(tmp_path / "s", tmp_path / "soft", 4),
        "shared-memory": lambda: PlayedStore(MemoryPlace(), tmp_path / "s", 4),
        "shared-directory": lambda: PlayedStore(DirectoryPlace(tmp_path / "p"), tmp_path / "s", 4),
        "shared-faulty": lambda: PlayedStore(faulty, tmp_path / "s", 4, PATIENCE),
    }
    opened = made[request.param]()
    yield opened
    opened.close()


@pytest.fixture
def shard(store: Store) -> Shard:
    """An empty shard."""
    return store.shard(0)
