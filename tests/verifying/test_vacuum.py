"""Vacuum removes expired slates and tombstones, and leaves the rest unchanged, whatever happens
meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.outcome import stored
from verifying.filled_store import SHARDS, an_app, clicks, dress, fill

from millstream.errors import StoreError
from millstream.stores import vacuum as module
from millstream.stores.contract import Fence
from millstream.stores.home import Home
from millstream.stores.layout import unpack_slate
from millstream.stores.progress import decoded
from millstream.stores.vacuum import vacuum
from millstream.verifying.store import verify

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with tombstones, and slates whose last update was from 400 to 590."""
    path = tmp_path / "store"
    batches = [clicks(0, 500), clicks(500, 600), []]
    dress(path, fill(path, an_app(), batches))
    return path


def rows(path: Path) -> dict[tuple[int, bytes], bytes]:
    home = Home.open(path)
    opened = home.store()
    try:
        return stored(opened, home.committed())
    finally:
        opened.close()


def quietly(_: str) -> None:
    pass


def test_nothing_is_lost(store: Path) -> None:
    """All rows are as they were, in fewer bytes, without a tombstone; verify is content."""
    before = rows(store)
    done = vacuum(Home.open(store), {}, quietly)
    assert rows(store) == before
    assert done.after < done.before
    assert done.tombstones > 0
    assert done.slates == {"count": 97, "seen": 97}
    findings = verify(store)
    assert findings.faults == []
    assert findings.looked["tombstones"] == 0
    assert [path.name for path in store.glob("shards*")] == [Home.open(store).facts.folder]


def test_expired_slates_go(store: Path) -> None:
    """With their entries and timers; the progress counts those that are left."""
    last = {
        row: unpack_slate(value).last
        for (_, row), value in rows(store).items()
        if row.startswith(b"Scount\x00")
    }
    must = {row for row, ts in last.items() if 589 - ts <= 50}
    assert 0 < len(must) < len(last)
    done = vacuum(Home.open(store), {"count": (589, 50), "seen": (589, 50)}, quietly)
    left = rows(store)
    assert {row for _, row in left if row.startswith(b"Scount\x00")} == must
    assert done.expired == {"count": 97 - len(must), "seen": 97 - len(must)}
    assert decoded(Home.open(store).read_progress()).slates == {
        "count": len(must),
        "seen": len(must),
    }
    assert verify(store).faults == []


def test_the_application_goes_on(store: Path) -> None:
    """After a vacuum the next batch is committed, rolled back and repeated as ever."""
    other = store.parent / "other"
    fill(other, an_app(), [clicks(0, 500), clicks(500, 600), []])
    vacuum(Home.open(store), {}, quietly)
    for path in (store, other):
        fill(path, an_app(), [clicks(600, 700), []])
        opened = Home.open(path).store()
        for number in range(SHARDS):
            with pytest.raises(StoreError):
                opened.shard(number).roll_back(1, 2)  # an older driver
            opened.shard(number).roll_back(50, 4)
        opened.close()
    assert rows(store) == rows(other)


def test_what_is_ahead_of_the_committed_batch_is_undone(store: Path) -> None:
    """Rows that a dead driver has committed to some shards are removed, as at every start."""
    before = rows(store)
    home = Home.open(store)
    opened = home.store()
    opened.shard(1).commit(Fence(1, home.committed() + 1, 0), {"count": {b"Scount\x00x": b"half"}})
    opened.close()
    vacuum(home, {}, quietly)
    assert rows(store) == before


@pytest.mark.parametrize("point", ["write_shard", "write_facts", "write_progress", "_clear"])
def test_a_crash_at_any_moment(store: Path, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ended before any of its steps, the store is whole; the next vacuum leaves nothing over."""
    before = rows(store)

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(module if hasattr(module, point) else Home, point, crash)
        with pytest.raises(KeyboardInterrupt):
            vacuum(Home.open(store), {}, quietly)
    assert rows(store) == before
    assert verify(store).faults == []
    vacuum(Home.open(store), {}, quietly)
    assert rows(store) == before
    assert len(list(store.glob("shards*"))) == 1


def test_a_damaged_store_is_left_alone(store: Path) -> None:
    """Pages that do not fit their checksum are not copied. The error names the shard and the
    repair."""
    data = Home.open(store).shards / "shard-0001" / "data.mdb"
    content = bytearray(data.read_bytes())
    for at in range(8_192, len(content), 512):
        content[at + 100] ^= 1
    data.write_bytes(content)
    with pytest.raises(StoreError, match=r"shard-0001: .*restore the whole store"):
        vacuum(Home.open(store), {}, quietly)
    assert Home.open(store).facts.folder == "shards"


def test_leftovers_go(store: Path) -> None:
    """Output of tries that failed goes; what is still to be published stays."""
    staged = decoded(Home.open(store).read_progress()).staged
    (store / "staging" / "000000000001-failed.rows").write_bytes(b"anything")
    assert vacuum(Home.open(store), {}, quietly).files == 2  # and the old shards
    assert [path.name for path in (store / "staging").iterdir()] == staged
