"""A shard's list of free pages is right after any writes, and damage in it is found."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

import lmdb
import pytest

from millstream.stores.integrity.free_pages import free_pages_fault

PAGE = 4096


def fault(path: Path) -> str:
    with lmdb.open(str(path), max_readers=8, readonly=True) as env, env.begin() as txn:
        return free_pages_fault(str(path / "data.mdb"), txn, PAGE)


def written(path: Path, seed: int, commits: int = 40) -> None:
    """Many commits that put and delete rows, small ones and such as have pages of their own."""
    random = Random(seed)
    with lmdb.open(str(path), map_size=1 << 26) as env:
        for _ in range(commits):
            with env.begin(write=True) as txn:
                for _ in range(random.randrange(1, 120)):
                    key = f"{random.randrange(900):04d}".encode()
                    if random.random() < 0.4:
                        txn.delete(key)
                    else:
                        size = random.choice([10, 200, 1_500, 9_000, 40_000])
                        txn.put(key, random.randbytes(size))


@pytest.mark.parametrize("seed", range(20))
def test_a_whole_shard_has_nothing_wrong(tmp_path: Path, seed: int) -> None:
    """No page is taken for one that is free and in use, however rows came and went."""
    written(tmp_path / "shard", seed)
    assert fault(tmp_path / "shard") == ""


def test_an_empty_shard_has_nothing_wrong(tmp_path: Path) -> None:
    """An empty shard has no tree yet."""
    with lmdb.open(str(tmp_path / "shard")):
        pass
    assert fault(tmp_path / "shard") == ""


@pytest.mark.parametrize("seed", range(6))
def test_a_flipped_byte_in_the_list_is_found(tmp_path: Path, seed: int) -> None:
    """A page that is in use, or not there, in the list: LMDB would write over it."""
    written(tmp_path / "shard", seed)
    file = tmp_path / "shard" / "data.mdb"
    data = bytearray(file.read_bytes())
    meta = max(0, PAGE, key=lambda at: struct.unpack_from("<Q", data, at + 144))
    (root,) = struct.unpack_from("<Q", data, meta + 80)
    at = root * PAGE
    (node,) = struct.unpack_from("<H", data, at + 16)
    *_, key = struct.unpack_from("<HHHH", data, at + node)
    first = at + node + 8 + key + 8
    data[first + Random(seed).choice([0, 1, 3])] ^= 0x15
    file.write_bytes(data)
    assert "free" in fault(tmp_path / "shard")


def test_a_flipped_byte_in_the_number_of_pages_is_found(tmp_path: Path) -> None:
    """Else LMDB would take the map for full, or write far behind the end of the file."""
    written(tmp_path / "shard", 7)
    file = tmp_path / "shard" / "data.mdb"
    data = bytearray(file.read_bytes())
    meta = max(0, PAGE, key=lambda at: struct.unpack_from("<Q", data, at + 144))
    data[meta + 138] ^= 1
    file.write_bytes(data)
    assert "neither free nor in use" in fault(tmp_path / "shard")


def test_of_a_commit_that_is_not_the_last_nothing_is_said(tmp_path: Path) -> None:
    """LMDB uses the pages of an old list again, whoever reads: that is no damage."""
    written(tmp_path / "shard", 3)
    with lmdb.open(str(tmp_path / "shard"), map_size=1 << 26) as env, env.begin() as old:
        for number in range(30):
            with env.begin(write=True) as txn:
                txn.put(b"%04d" % number, bytes(5_000))
        assert free_pages_fault(str(tmp_path / "shard" / "data.mdb"), old, PAGE) == ""
    assert fault(tmp_path / "shard") == ""
