"""An embedded store of one shard, and processes that open it too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from stores.embedded.store_child import PRELUDE, Child

import millstream.stores
from millstream.stores.contract import Shard
from millstream.stores.lmdb import LmdbStore


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    """An empty store of one shard, small enough to be outgrown."""
    opened = LmdbStore(tmp_path / "store", 1, map_size=1 << 20)
    yield opened
    opened.close()


@pytest.fixture
def shard(store: LmdbStore) -> Shard:
    """Its shard."""
    return store.shard(0)


@pytest.fixture
def child(tmp_path: Path) -> Iterator[Child]:
    """Starts a process that has opened `store` and runs the code given."""
    started: list[subprocess.Popen[str]] = []
    source = Path(millstream.stores.__file__).parents[2]

    def start(code: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", PRELUDE + code, str(tmp_path / "store"), str(1 << 20)],
            env={**os.environ, "PYTHONPATH": str(source)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
