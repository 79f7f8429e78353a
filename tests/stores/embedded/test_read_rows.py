"""Rows that a task has read are not read again by its commit, unless they may have changed."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from zlib import crc32

import pytest
from stores.embedded.store_child import Child, hear

from millstream.stores import rows
from millstream.stores.contract import Fence, Shard
from millstream.stores.lmdb import LmdbStore
from millstream.stores.read_rows import MOST_BYTES, ReadRows
from millstream.stores.rows import Current, stored_key

KEY = b"a"
NEXT = Fence(1, 1, 0)


@pytest.fixture
def begun(shard: Shard) -> Shard:
    """The shard after batch 0."""
    shard.commit(Fence(1, 0, 0), {"f": {KEY: b"0"}})
    return shard


def misread(shard: Shard, batch: int = 1) -> ReadRows:
    """What a view has read of the row, with a value that the row never had."""
    with shard.before(batch) as view:
        view.get_many([KEY])
        (value,) = view.get_many([KEY])
    kept = view.rows_read
    assert kept is not None
    assert value is not None
    read = ReadRows(kept.limit, kept.moment)
    known = kept.current([stored_key(KEY)], of_rows({}))
    read.add([stored_key(KEY)], known._replace(values=[b"misread"]))
    return read


def of_rows(stored: dict[bytes, bytes]) -> Callable[[Sequence[bytes], int], Current]:
    """Reads stored rows of a dict."""
    return lambda keys, limit: rows.examined(keys, [stored.get(key) for key in keys], limit)


def value_before(shard: Shard) -> bytes | None:
    """Commits batch 1, and returns the value that the row had before, as the commit knew it."""
    with shard.at(0) as view:
        return view.get(KEY)


def test_a_commit_takes_what_its_task_has_read(begun: Shard) -> None:
    """If nothing was written since, the commit does not look at the stored row."""
    begun.commit(NEXT, {"f": {KEY: b"1"}}, misread(begun))
    assert value_before(begun) == b"misread"


def again(shard: Shard) -> None:
    """Another attempt of the same batch commits."""
    shard.commit(NEXT, {"f": {KEY: b"other"}})


def another_key(shard: Shard) -> None:
    """A commit of another function, which does not touch the row."""
    shard.commit(NEXT, {"g": {b"b": b"1"}})


def rolled_back(shard: Shard) -> None:
    """The next driver has rolled back to batch 0."""
    shard.roll_back(1, 0)


def reopened(shard: Shard) -> None:
    """The environment was closed: the files may be others."""
    shard.close()


@pytest.mark.parametrize("act", [again, another_key, rolled_back, reopened])
def test_what_may_have_changed_is_read_again(begun: Shard, act: Callable[[Shard], None]) -> None:
    read = misread(begun)
    act(begun)
    begun.commit(NEXT, {"f": {KEY: b"1"}}, read)
    assert value_before(begun) == b"0"


def test_what_another_process_wrote_is_read_again(begun: Shard, child: Child) -> None:
    """Another attempt runs in another worker."""
    read = misread(begun)
    process = child("""
shard.commit(Fence(1, 1, 0), {"f": {b"a": b"other"}})
say("committed")
""")
    assert hear(process) == "committed"
    begun.commit(NEXT, {"f": {KEY: b"1"}}, read)
    assert value_before(begun) == b"0"


def test_what_was_read_as_of_another_batch_is_read_again(begun: Shard) -> None:
    """Values of the batch before the last are not those that batch 2 replaces."""
    begun.commit(NEXT, {"f": {KEY: b"1"}})
    read = misread(begun, batch=1)
    begun.commit(Fence(1, 2, 0), {"f": {KEY: b"2"}}, read)
    with begun.at(1) as view:
        assert view.get(KEY) == b"1"


def test_a_map_that_grows_keeps_what_was_read(store: LmdbStore, begun: Shard) -> None:
    """The commit runs again after the map has grown, with the same outcome."""
    with begun.before(1) as view:
        view.get_many([KEY])
    begun.commit(NEXT, {"f": {KEY: b"1", b"b": b"b" * (5 << 20)}}, view.rows_read)
    assert value_before(begun) == b"0"


def test_large_values_are_not_kept(begun: Shard) -> None:
    """A task may read many slates of a megabyte: they do not stay in memory until the commit."""
    begun.commit(NEXT, {"f": {b"b": b"b" * (MOST_BYTES + 1)}})
    with begun.before(2) as view:
        view.get_many([KEY, b"b"])
        view.get_many([KEY])
    assert view.rows_read is not None
    asked: list[bytes] = []

    def stored(keys: Sequence[bytes], limit: int) -> Current:
        asked.extend(keys)
        return of_rows({})(keys, limit)

    view.rows_read.current([stored_key(KEY)], stored)
    assert asked == []
    view.rows_read.current([stored_key(KEY), stored_key(b"b")], stored)
    assert asked == [stored_key(b"b")]


def test_rows_that_are_known_and_others_mix(shard: Shard) -> None:
    """Only the others are read, and each is in the order asked, also those that do not exist."""
    with shard.before(1) as view:
        view.get_many([b"a", b"c"])
        view.get_many([b"c", b"e"])
    assert view.rows_read is not None
    keys = [stored_key(key) for key in (b"e", b"b", b"c")]
    new = rows.examined(keys[1:2], [None], -1)
    writes, _ = rows.replace(0, keys[1:2], [b"old"], new, {})
    found = view.rows_read.current(keys, of_rows(dict(writes.puts)))
    assert [*found.values] == [None, b"old", None]
    assert found.ends[0] == found.ends[2] == rows.ABSENT != found.ends[1]
    assert found.seeds == array("I", map(crc32, keys))
