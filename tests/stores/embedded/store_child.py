"""Real processes over an embedded store that run a few lines and speak one line at a time.

No test waits for the clock: a child speaks over its standard output and hears over its input.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

from millstream.stores.contract import Shard

PRELUDE = """
import os, signal, sys
from millstream.errors import StaleCommit, StoreError
from millstream.stores import lmdb as backend
from millstream.stores.contract import Fence
from millstream.stores.lmdb import LmdbStore
store = LmdbStore(sys.argv[1], 1, map_size=int(sys.argv[2]))
shard = store.shard(0)
def say(word): print(word, flush=True)
def hear(): return sys.stdin.readline().strip()
"""

Child = Callable[[str], subprocess.Popen[str]]


def hear(process: subprocess.Popen[str]) -> str:
    """The next line that a child says."""
    assert process.stdout
    return process.stdout.readline().strip()


def tell(process: subprocess.Popen[str], word: str) -> None:
    """Let a child go on."""
    assert process.stdin
    process.stdin.write(word + "\n")
    process.stdin.flush()


def values(shard: Shard, at: int) -> dict[bytes, bytes]:
    """Every row as of batch `at`."""
    with shard.at(at) as view:
        return dict(view.scan(b""))


def pages(tmp_path: Path) -> int:
    """Returns the number of pages of the shard's file."""
    return (tmp_path / "store" / "shard-0000" / "data.mdb").stat().st_size // 4096
