"""The stores that the contract suite runs over."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from millstream.stores.contract import Shard, Store
from millstream.stores.lmdb import LmdbStore
from millstream.stores.memory import MemoryStore


@pytest.fixture(params=["memory", "lmdb"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    """An empty store of four shards."""
    opened: Store = MemoryStore(4) if request.param == "memory" else LmdbStore(tmp_path / "s", 4)
    yield opened
    opened.close()


@pytest.fixture
def shard(store: Store) -> Shard:
    """An empty shard."""
    return store.shard(0)
