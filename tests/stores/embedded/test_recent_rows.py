"""Recent rows: which rows are, where they lie, and when they move back."""

from __future__ import annotations

from pathlib import Path

import lmdb
import pytest

from millstream.stores import recent_rows
from millstream.stores.contract import Fence
from millstream.stores.integrity.shard_check import CheckedShard, check_shard
from millstream.stores.lmdb import LmdbStore
from millstream.stores.rows import RECENT, ROW
from millstream.stores.shard_rows import HEAD_KEY, Head, read_head

OTHERS = {b"o%03d" % number: b"0" for number in range(100)}
"""Rows of batch 0."""


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shards have recent rows from 50 others on, one to ten."""
    monkeypatch.setattr(recent_rows, "LARGE", 50)
    monkeypatch.setattr(recent_rows, "SHARE", 10)
    monkeypatch.setattr(recent_rows, "LEAST_EXAMINED", 0)


@pytest.fixture
def filled(store: LmdbStore) -> LmdbStore:
    """The store after batch 1: 100 rows, and the shard may have recent ones."""
    store.shard(0).commit(Fence(1, 0, 0), {"f": OTHERS})
    store.shard(0).commit(Fence(1, 1, 0), {"f": {b"o000": b"1"}})
    return store


def places(store: LmdbStore, tmp_path: Path, *keys: bytes) -> list[str]:
    """The prefixes under which each key has a row: `R` for recent, `r` for others."""
    store.close()
    with lmdb.open(str(tmp_path / "store" / "shard-0000")) as env, env.begin() as txn:
        return [
            "R" * (txn.get(RECENT + key) is not None) + "r" * (txn.get(ROW + key) is not None)
            for key in keys
        ]


def checked(store: LmdbStore, tmp_path: Path) -> CheckedShard:
    """The shard after a check of all its rows."""
    store.close()
    shard = check_shard(str(tmp_path / "store" / "shard-0000"))
    assert not shard.findings
    return shard


def commit(store: LmdbStore, batch: int, *keys: bytes, value: bytes | None = b"x") -> None:
    """Change keys, as of a batch, as a task does that has read them before."""
    with store.shard(0).before(batch) as view:
        view.get_many(sorted(keys))
    changes = dict.fromkeys(keys, value)
    store.shard(0).commit(Fence(1, batch, 0), {"f": changes}, view.rows_read)


def test_small_shard(store: LmdbStore, tmp_path: Path) -> None:
    """A shard with few rows has no recent ones, and no note."""
    for batch in range(5):
        commit(store, batch, b"a")
    assert places(store, tmp_path, b"a") == ["r"]
    with lmdb.open(str(tmp_path / "store" / "shard-0000")) as env, env.begin() as txn:
        assert not recent_rows.has_recent(txn.get)


def test_moving_in(filled: LmdbStore, tmp_path: Path) -> None:
    """A row that is written again soon becomes recent and hides the old one; so does a new row."""
    commit(filled, 2, b"new", b"o000")
    commit(filled, 30, b"o001")
    assert places(filled, tmp_path, b"new", b"o000", b"o001") == ["R", "Rr", "r"]
    with filled.shard(0).at(30) as view:
        assert view.get_many([b"new", b"o000", b"o001", b"o002"]) == [b"x", b"x", b"x", b"0"]
        wanted = sorted({**OTHERS, b"o000": b"x"}.items())
        wanted[1] = (b"o001", b"x")
        assert list(view.scan(b"o")) == wanted
        assert list(view.scan(b"o", reverse=True)) == wanted[::-1]
    assert checked(filled, tmp_path).rows == 101


def test_large_commits(filled: LmdbStore, tmp_path: Path) -> None:
    """New rows are not recent in a commit that has several for each page."""
    commit(filled, 2, b"n1", b"n2", b"n3", b"n4")
    assert places(filled, tmp_path, b"n1") == ["r"]


def test_moving_back(filled: LmdbStore, tmp_path: Path) -> None:
    """When there is no room, rows that were not written for long move back, and others stay."""
    for batch in range(2, 60):
        commit(filled, batch, b"n%03d" % batch, b"hot")
    rows = checked(filled, tmp_path).rows
    assert rows == 100 + 58 + 1
    assert places(filled, tmp_path, b"hot", b"n002", b"n059") == ["R", "r", "R"]
    with filled.shard(0).at(59) as view:
        assert len(list(view.scan(b""))) == rows
        assert view.get(b"n002") == b"x"


def test_deleting(filled: LmdbStore, tmp_path: Path) -> None:
    """A recent row that is deleted hides the old one, until both are gone."""
    commit(filled, 2, b"o000")
    commit(filled, 3, b"o000", value=None)
    assert places(filled, tmp_path, b"o000") == ["Rr"]
    with filled.shard(0).at(3) as view:
        assert view.get(b"o000") is None
        assert next(view.scan(b"")) == (b"o001", b"0")
    assert filled.shard(0).roll_back(2, 2)
    with filled.shard(0).at(2) as view:
        assert view.get(b"o000") == b"x"
    filled.shard(0).commit(Fence(2, 3, 1), {"f": {b"o000": None}})
    filled.shard(0).commit(Fence(2, 4, 0), {"f": {b"o001": b"1"}})
    assert places(filled, tmp_path, b"o000") == [""]
    assert checked(filled, tmp_path).rows == 99


def test_the_note_is_checked(filled: LmdbStore, tmp_path: Path) -> None:
    """A note that tells of another number of recent rows is found."""
    commit(filled, 2, b"new")
    filled.close()
    folder = str(tmp_path / "store" / "shard-0000")
    with lmdb.open(folder) as env, env.begin(write=True) as txn:
        head, recent = read_head(txn), recent_rows.RecentRows(txn)
        recent._count += 1
        tally = recent.settle(2, head.tally)
        txn.put(HEAD_KEY, Head(head.seen, head.last, tally).pack())
    assert check_shard(folder).findings == ["it has 1 recent row, and its note says 2"]
