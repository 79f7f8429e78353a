"""Every stored row has a checksum, and a shard knows how many rows it has, and which."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import lmdb
import pytest
from generated_cases import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from millstream.errors import StoreError
from millstream.stores.checks import Damaged, RowTally, check_all, digest_of, sealed
from millstream.stores.contract import Fence
from millstream.stores.home import Home
from millstream.stores.integrity.shard_check import check_shard
from millstream.stores.integrity.shard_checks import ShardChecks, finish_checks, start_checks
from millstream.stores.lmdb import LmdbStore
from millstream.stores.shard_rows import HEAD_KEY, read_head

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LmdbStore]:
    """An empty store of one shard."""
    opened = LmdbStore(tmp_path / "store", 1, map_size=1 << 24)
    yield opened
    opened.close()


def folder(tmp_path: Path) -> str:
    return str(tmp_path / "store" / "shard-0000")


def meddle(store: LmdbStore, path: str, change: Callable[[lmdb.Transaction], None]) -> None:
    """Change what is stored behind the store's back."""
    store.close()
    with lmdb.open(path, map_size=1 << 24) as env, env.begin(write=True) as txn:
        change(txn)


KEYS = st.sampled_from([b"Sf\x00a", b"Sf\x00b", b"Sf\x00" + b"l" * 600, b"Sf\x00" + b"l" * 601])
CHANGES = st.dictionaries(KEYS, st.one_of(st.none(), st.binary(max_size=8)), max_size=4)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.tuples(st.sampled_from("nrb"), CHANGES, CHANGES), max_size=8))
def test_the_tally_follows(tmp_path_factory: pytest.TempPathFactory, steps: list) -> None:
    """After commits, repeats and roll-backs in any order the head tells of what is there."""
    path = tmp_path_factory.mktemp("t")
    store = LmdbStore(path / "store", 1)
    shard, batch, epoch = store.shard(0), 0, 1
    for attempt, (kind, one, two) in enumerate(steps):
        if kind == "b":
            epoch += 1
            shard.roll_back(epoch, batch - 1)
        elif kind == "n":
            batch += 1
        if kind != "b":
            shard.commit(Fence(epoch, batch, attempt), {"f": one, "g": _other(two)})
    store.close()
    if (path / "store" / "shard-0000" / "data.mdb").exists():
        assert check_shard(str(path / "store" / "shard-0000")).findings == []


def _other(changes: dict) -> dict:
    return {b"Sg" + key[2:]: value for key, value in changes.items()}


@pytest.mark.parametrize("place", [0, 8, 12, -5, -1])
def test_a_flipped_byte_is_refused_wherever_it_is_read(
    store: LmdbStore, tmp_path: Path, place: int
) -> None:
    """By get, by scan, by a commit over it and by a roll-back: the row and the repair are named."""
    shard = store.shard(0)
    shard.commit(Fence(1, 0, 0), {"f": {b"Sf\x00a": b"zero"}})
    shard.commit(Fence(1, 1, 0), {"f": {b"Sf\x00a": b"one"}})

    def flip(txn: lmdb.Transaction) -> None:
        row = bytearray(txn.get(b"\x01Sf\x00a"))
        row[place] ^= 1
        txn.put(b"\x01Sf\x00a", bytes(row))

    meddle(store, folder(tmp_path), flip)
    said = r"shard 0 of the store .*the slate of 'f', key 'a', does not fit .*restore the whole"
    with shard.at(1) as view:
        with pytest.raises(StoreError, match=said):
            view.get_many([b"Sf\x00b", b"Sf\x00a"])
        with pytest.raises(StoreError, match=said):
            list(view.scan(b""))
    with pytest.raises(StoreError, match=said):
        shard.commit(Fence(1, 2, 0), {"f": {b"Sf\x00a": b"two"}})
    with pytest.raises(StoreError, match=said):
        shard.roll_back(2, 0)


def test_a_row_under_another_key(store: LmdbStore, tmp_path: Path) -> None:
    """A row that is whole, but lies under another's key, is refused."""
    store.shard(0).commit(Fence(1, 0, 0), {"f": {b"Sf\x00a": b"0", b"Sf\x00b": b"1"}})

    def swap(txn: lmdb.Transaction) -> None:
        txn.put(b"\x01Sf\x00a", txn.get(b"\x01Sf\x00b"))

    meddle(store, folder(tmp_path), swap)
    with store.shard(0).at(0) as view, pytest.raises(StoreError, match="key 'a'"):
        view.get_many([b"Sf\x00a"])


def test_rows_that_were_lost(store: LmdbStore, tmp_path: Path) -> None:
    """A row that is gone, a journal that is gone and an old row in place of a new are found."""
    rows = {b"Sf\x00%d" % n: b"0" for n in range(100)}
    store.shard(0).commit(Fence(1, 0, 0), {"f": rows})
    store.close()
    with lmdb.open(folder(tmp_path), map_size=1 << 24) as env, env.begin() as txn:
        old = {key: txn.get(key) for key in (b"\x01Sf\x007", b"\x01Sf\x008")}
    store.shard(0).commit(Fence(1, 1, 0), {"f": dict.fromkeys(rows, b"1")})

    def stale(txn: lmdb.Transaction) -> None:
        for key, row in old.items():
            assert row is not None
            txn.put(key, row)

    meddle(store, folder(tmp_path), stale)
    assert "an old page" in check_shard(folder(tmp_path)).findings[0]
    meddle(store, folder(tmp_path), lambda txn: txn.delete(b"\x01Sf\x007"))
    assert "it has 100 rows, and its head says 101" in check_shard(folder(tmp_path)).findings[0]
    meddle(store, folder(tmp_path), lambda txn: txn.delete(HEAD_KEY))
    assert "the shard's head is lost" in check_shard(folder(tmp_path)).findings[0]
    with pytest.raises(StoreError, match="the shard's head"):
        store.shard(0).at(1)


def test_a_check_of_all_shards_names_the_damaged_one(tmp_path: Path) -> None:
    """A driver's check stops at a shard that is damaged, cut short or missing."""
    home = Home.make(tmp_path / "s", "app", 3, {"f": "dict"})
    opened = home.store()
    for number in range(3):
        opened.shard(number).commit(
            Fence(1, 0, 0), {"f": {b"Sf\x00%d" % n: b"0" * 99 for n in range(500)}}
        )
    opened.close()
    home.write_progress({"batch": 0})
    with start_checks(home) as checks:
        assert [checked.rows for checked in finish_checks(checks)] == [500] * 3
    data = tmp_path / "s" / "shards" / "shard-0001" / "data.mdb"
    good = data.read_bytes()
    data.write_bytes(good[: len(good) // 2])
    results = ShardChecks([str(tmp_path / "s" / "shards" / f"shard-000{n}") for n in range(3)])
    found = results.results()
    assert [bool(checked.findings) for checked in found] == [False, True, False]
    assert "ended the process (SIGBUS)" in found[1].findings[0]
    with pytest.raises(StoreError, match=r"shard-0001: .*restore the whole store"):
        finish_checks(start_checks(home))
    for file in data.parent.iterdir():
        file.unlink()
    with pytest.raises(StoreError, match="shard-0001: the shard is missing"):
        start_checks(home)


def test_a_damaged_fence_file(store: LmdbStore, tmp_path: Path) -> None:
    """A commit refuses it and says what to do; the next driver's start mends it."""
    shard = store.shard(0)
    shard.commit(Fence(1, 0, 3), {})
    path = Path(folder(tmp_path)) / "fence"
    path.write_bytes(b"\xff" + path.read_bytes()[1:])
    with pytest.raises(StoreError, match=r"fence: .*start the application again"):
        shard.commit(Fence(1, 0, 2), {"f": {b"a": b"stale"}})
    shard.roll_back(2, -1)
    shard.commit(Fence(2, 0, 0), {"f": {b"a": b"0"}})


def test_a_store_of_an_older_format(tmp_path: Path) -> None:
    """The store is refused, with advice."""
    home = Home.make(tmp_path / "s", "app", 1, {})
    home.facts.format = 1
    home.write_facts()
    with pytest.raises(StoreError, match=r"has format 1, .*run it with the version that wrote it"):
        Home.open(tmp_path / "s")


def test_a_sum_sees_what_an_exclusive_or_would_not() -> None:
    """Equal changes of two rows do not cancel out in a shard's digest."""
    old = [sealed(b"a", b"1"), sealed(b"b", b"1")]
    new = [sealed(b"a", b"2"), sealed(b"b", b"2")]
    checks = [struct.unpack("<I", row[-4:])[0] for row in old + new]
    assert checks[0] ^ checks[1] == checks[2] ^ checks[3]
    assert digest_of(old) != digest_of(new)
    assert RowTally(2, digest_of(old)).changed(RowTally(2, digest_of(new)), old) == (
        2,
        digest_of(new),
    )


def test_an_empty_row_is_damage() -> None:
    """A row of no bytes, which no commit writes, is refused too."""
    with pytest.raises(Damaged):
        check_all([b"a", b"b"], [None, b""])


def test_a_head_is_read_back(store: LmdbStore, tmp_path: Path) -> None:
    """The head of a shard tells of its fence, its batch and its rows."""
    store.shard(0).commit(Fence(3, 7, 1), {"f": {b"a": b"0", b"b": b"0"}})
    store.close()
    with lmdb.open(folder(tmp_path)) as env, env.begin() as txn:
        head = read_head(txn)
    assert (head.seen, head.last, head.tally.count) == (Fence(3, 7, 1), 7, 3)
