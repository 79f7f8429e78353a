"""The stores that the contract suite runs over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from millstream.stores.contract import Shard, Store
from millstream.stores.layered import LayeredStore
from millstream.stores.lmdb import LmdbStore
from millstream.stores.memory import MemoryStore


@pytest.fixture(params=["memory", "lmdb", "layered"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of four shards."""
    made: dict[str, Callable[[], Store]] = {
        "memory": lambda: MemoryStore(4),
        "lmdb": lambda: LmdbStore(tmp_path / "s", 4),
        "layered": lambda: LayeredStore(tmp_path / "s", tmp_path / "soft", 4),
    }
    opened = made[request.param]()
    yield opened
    opened.close()


@pytest.fixture
def shard(store: Store) -> Shard:
    """An empty shard."""
    return store.shard(0)
