"""Tests of the embedded store alone: its file and its growth, full disks and damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import lmdb
import pytest
from stores.embedded.store_child import Child, hear, pages, tell, values

from millstream.errors import StaleCommit, StoreError
from millstream.stores.contract import Fence, Shard
from millstream.stores.lmdb import LmdbStore

pytestmark = pytest.mark.timeout(60)


def test_an_empty_commit_writes_nothing(store: LmdbStore, tmp_path: Path) -> None:
    """A commit with nothing to change and nothing to undo makes no transaction."""

    def transactions() -> int:
        store.close()
        with lmdb.open(str(tmp_path / "store" / "shard-0000")) as env:
            return env.info()["last_txnid"]

    store.shard(0).commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
    before = transactions()
    store.shard(0).commit(Fence(1, 1, 0), {"f": {}, "g": {b"not there": None}})
    store.shard(0).commit(Fence(1, 2, 0), {})
    assert transactions() == before


def test_tombstones_are_removed(store: LmdbStore, tmp_path: Path) -> None:
    """A deleted row takes room until the function's next commit, and not after."""

    def entries() -> int:
        store.close()
        with lmdb.open(str(tmp_path / "store" / "shard-0000")) as env:
            return env.stat()["entries"]

    store.shard(0).commit(Fence(1, 0, 0), {"f": {b"%d" % i: b"0" for i in range(100)}})
    full = entries()
    store.shard(0).commit(Fence(1, 1, 0), {"f": {b"%d" % i: None for i in range(90)}})
    assert entries() == full
    store.shard(0).commit(Fence(1, 2, 0), {"f": {b"0": b"again"}})
    assert entries() == full - 89


def test_a_reader_that_hangs_does_not_block_commits(
    shard: Shard, child: Child, tmp_path: Path
) -> None:
    """A live reader keeps its moment while commits go on; once dead, the file stops growing."""
    shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0" * 30_000}})
    process = child("""
with shard.at(0) as view:
    say("reading")
    hear()
    say(view.get_many([b"a"])[0][:3])
    say("hung")
    hear()
""")
    assert hear(process) == "reading"
    batch = 0

    def commit(times: int) -> None:
        nonlocal batch
        for _ in range(times):
            batch += 1
            shard.commit(Fence(1, batch, 0), {"f": {b"a": b"%d" % (batch % 10) * 30_000}})

    commit(20)
    held = pages(tmp_path)
    commit(20)
    assert pages(tmp_path) > held + 100, "the reader held nothing: the test shows nothing"
    tell(process, "read")
    assert hear(process) == "b'000'"
    assert hear(process) == "hung"
    process.kill()
    process.wait()
    commit(5)
    cleared = pages(tmp_path)
    commit(100)
    assert pages(tmp_path) == cleared


def test_growing_past_the_first_size(shard: Shard, child: Child) -> None:
    """A full map is doubled under the commit; readers and writers elsewhere follow."""
    shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
    process = child("""
with shard.at(0) as view: say(view.get_many([b"a"]))
hear()
with shard.at(1) as view: say(sum(len(value) for _, value in view.scan(b"")))
hear()
shard.commit(Fence(1, 3, 1), {"f": {b"a": b"3"}})
say("committed")
""")
    assert hear(process) == "[b'0']"
    big = {b"%d" % i: bytes([i]) * (1 << 20) for i in range(20)}
    shard.commit(Fence(1, 1, 0), {"f": big})
    assert values(shard, 1) == {**big, b"a": b"0"}
    tell(process, "read")
    assert hear(process) == str((20 << 20) + 1)
    shard.commit(Fence(1, 2, 0), {"f": {b"more": b"m" * (40 << 20)}})
    tell(process, "commit")
    assert hear(process) == "committed"
    with shard.at(3) as view:
        assert view.get_many([b"a", b"19"]) == [b"3", big[b"19"]]


def test_a_view_that_growth_closed_says_so(shard: Shard) -> None:
    """A view open in the process that grows the map raises StoreError, and can be opened again."""
    shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
    with shard.at(0) as view:
        rows = view.scan(b"")
        next(rows)
        shard.commit(Fence(1, 1, 0), {"f": {b"b": b"b" * (5 << 20)}})
        with pytest.raises(StoreError, match="open it again"):
            view.get_many([b"a"])
        with pytest.raises(StoreError, match="open it again"):
            next(rows)
    with shard.at(0) as view:
        assert view.get_many([b"a"]) == [b"0"]


def test_a_full_disk(child: Child, tmp_path: Path) -> None:
    """A file that cannot be longer is a StoreError that says where and what to do."""
    process = child("""
import resource
shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
big = {b"%d" % i: b"x" * (1 << 20) for i in range(20)}
resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 20, resource.RLIM_INFINITY))
try: shard.commit(Fence(1, 1, 0), {"f": {b"a": b"1", **big}})
except StoreError as error: say(error)
with shard.at(1) as view: say(list(view.scan(b"")))
shard.commit(Fence(1, 1, 1), {"f": {b"a": b"small"}})
with shard.at(1) as view: say(list(view.scan(b"")))
""")
    message = hear(process)
    assert message.startswith(f"shard 0 of the store {tmp_path / 'store'}: nothing was committed")
    assert "make room" in message
    assert hear(process) == "[(b'a', b'0')]"
    assert hear(process) == "[(b'a', b'small')]"


def test_a_map_that_cannot_grow(child: Child) -> None:
    """Without address space, a commit is refused with advice, and the store is unchanged."""
    process = child("""
import itertools, resource
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (48 << 20), resource.RLIM_INFINITY))
try:
    for batch in itertools.count():
        shard.commit(Fence(1, batch, 0), {"f": {b"%d" % batch: b"x" * (1 << 20)}})
except StoreError as error:
    say(error)
with shard.at(batch) as view: say(sum(1 for _ in view.scan(b"")) - batch)
shard.commit(Fence(1, batch, 1), {"f": {b"a": b"small"}})
with shard.at(batch) as view: say(view.get_many([b"a"]))
""")
    assert "more address space" in hear(process)
    assert hear(process) == "0"
    assert hear(process) == "[b'small']"


def test_a_commit_that_fails_half_way_changes_nothing(shard: Shard) -> None:
    """When the second function's value is no bytes, the first function's rows are not there."""
    shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
    bad: dict[bytes, bytes | None] = {b"b": "text"}  # type: ignore[dict-item]  # the point
    with pytest.raises(TypeError):
        shard.commit(Fence(1, 1, 0), {"f": {b"a": b"1"}, "g": bad})
    assert values(shard, 1) == {b"a": b"0"}
    shard.commit(Fence(1, 1, 0), {"f": {b"a": b"1"}})
    assert values(shard, 1) == {b"a": b"1"}


def test_a_folder_that_was_deleted_is_made_anew(store: LmdbStore, tmp_path: Path) -> None:
    """A store opened where one was deleted is empty, though the old one is still open."""
    store.shard(0).commit(Fence(5, 9, 0), {"f": {b"a": b"0"}})
    shutil.rmtree(tmp_path / "store")
    fresh = LmdbStore(tmp_path / "store", 1)
    fresh.shard(0).commit(Fence(1, 0, 0), {"f": {b"b": b"0"}})
    assert values(fresh.shard(0), 0) == {b"b": b"0"}
    fresh.close()


def test_a_file_that_is_not_a_store(tmp_path: Path) -> None:
    """A damaged file is a StoreError that names the shard and the store."""
    folder = tmp_path / "store" / "shard-0000"
    folder.mkdir(parents=True)
    (folder / "data.mdb").write_bytes(b"no database" * 1000)
    with pytest.raises(StoreError, match=r"shard 0 of the store .*store"):
        LmdbStore(tmp_path / "store", 1).shard(0).at(0)


def test_a_stale_commit_names_the_shard(shard: Shard, tmp_path: Path) -> None:
    """The refusal says which shard of which store."""
    shard.commit(Fence(2, 0, 0), {"f": {b"a": b"0"}})
    with pytest.raises(StaleCommit, match=f"shard 0 of the store {tmp_path / 'store'}"):
        shard.commit(Fence(1, 0, 0), {"f": {}})
