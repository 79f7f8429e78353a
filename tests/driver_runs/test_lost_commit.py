"""A shard whose last commit is gone is whole as of the one before; only the progress tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from millstream.driver.durability.disk_flush import Flushing
from millstream.driver.startup.recovery import check_recoverable
from millstream.errors import StoreError
from millstream.stores.contract import Fence
from millstream.stores.home import Home
from millstream.stores.progress import Progress
from millstream.verifying.store import verify

PAGE, NUMBER = 4096, 144
"""Where each of LMDB's two first pages has the number of its commit: the higher counts."""


def filled(path: Path) -> tuple[Home, Progress]:
    """A store of two shards after two batches; the second changed only shard 1."""
    home = Home.make(path, "app", 2, {"count": "dict"})
    epoch, store = home.raise_epoch(), home.store()
    for batch, shards in enumerate([(0, 1), (1,)]):
        for number in shards:
            changes = {"count": {b"Xrow": str(batch).encode()}}
            store.shard(number).commit(Fence(epoch, batch, 0), changes)
    progress = Progress(batch=1, last_batches=[store.shard(n).last_batch for n in range(2)])
    store.close()
    home.write_progress(progress)
    return home, progress


def recovered(home: Home, progress: Progress) -> None:
    """Makes the changes of a start to the shards."""
    check_recoverable(home)
    flushing = Flushing(home, None)
    try:
        flushing.recover(home.raise_epoch(), progress)
        assert flushing.last_batches() == progress.last_batches
    finally:
        flushing.close()


def test_a_commit_that_was_lost_is_found(tmp_path: Path) -> None:
    """A flipped byte makes the commit before the last one the last. verify names the shard, and a
    start refuses."""
    home, progress = filled(tmp_path / "store")
    assert progress.last_batches == [0, 1]
    path = home.shards / "shard-0001" / "data.mdb"
    content = bytearray(path.read_bytes())
    older = min(NUMBER, PAGE + NUMBER, key=lambda at: content[at])
    content[older] += 2
    path.write_bytes(content)
    wrong = [finding.wrong for finding in verify(home.path).faults if finding.file == str(path)]
    assert wrong == ["was changed in batch 1, but says that its last batch is 0"]
    with pytest.raises(StoreError, match=r"shard-0001: it was changed in batch 1, .* restore"):
        recovered(home, progress)


def test_a_shard_that_a_batch_did_not_change_is_not_missed(tmp_path: Path) -> None:
    """Its last batch is an older one, and rightly so; rolled back, what it knows stays."""
    home, progress = filled(tmp_path / "store")
    assert not [finding for finding in verify(home.path).faults if "shards" in finding.file]
    recovered(home, progress)
    recovered(home, progress)
