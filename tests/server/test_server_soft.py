"""The server reads batches that are not flushed yet, and follows the store from way to way."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from server.served import MadeStore

from millstream.errors import StaleRead
from millstream.server.open_store import OpenStore
from millstream.stores.home import opened
from millstream.stores.layered import LayeredStore
from millstream.stores.soft import Flushed, Soft, boot_id


@pytest.fixture
def made(tmp_path: Path) -> MadeStore:
    """A store with one flushed batch."""
    made = MadeStore(tmp_path / "store", {"count": "dict"})
    made.commit({"count": {"a": {"n": 0}, "b": {"n": 0}}})
    return made


@pytest.fixture
def served(made: MadeStore) -> Iterator[OpenStore]:
    """The store as the server has it, opened before any of what a test does."""
    store = OpenStore(made.path)
    yield store
    store.close()


def begin_layer(made: MadeStore) -> None:
    """Go over to batches that are not flushed."""
    soft = Soft("layer", boot_id(), made.progress.batch)
    made.progress.soft = soft.id
    made.home.write_flushed(Flushed(made.progress))
    made.home.write_soft(soft)
    made.home.write_progress(made.progress)


def layer_of(made: MadeStore) -> LayeredStore:
    store = opened(made.path, made.home.facts.shards, made.home.soft)
    assert isinstance(store, LayeredStore)
    return store


def flush(made: MadeStore) -> None:
    store, flushed = layer_of(made), made.progress.batch
    for number in range(store.shards):
        store.shard(number).write_base(made.epoch, store.shard(number).flushed, flushed)
    made.home.write_flushed(Flushed(made.progress))
    for number in range(store.shards):
        store.shard(number).clear(made.epoch, flushed)
    store.close()


def slate(served: OpenStore, key: str) -> Any:
    found = served.reader.get("count", key)
    return None if found is None else (found.value["n"], found.batch)


def test_the_server_follows_a_layer(made: MadeStore, served: OpenStore) -> None:
    """The server sees each batch when it is committed, before and after a flush, and when batches
    are flushed one by one again."""
    assert slate(served, "a") == (0, 0)
    begin_layer(made)
    made.commit({"count": {"a": {"n": 1}}})
    assert (slate(served, "a"), slate(served, "b")) == ((1, 1), (0, 1))
    made.commit({"count": {"a": {"n": 2}, "b": None}})
    assert (slate(served, "a"), slate(served, "b")) == ((2, 2), None)
    flush(made)
    assert (slate(served, "a"), slate(served, "b")) == ((2, 2), None)
    made.commit({"count": {"a": {"n": 3}}})
    assert slate(served, "a") == (3, 3)
    flush(made)
    made.progress.soft = ""
    made.home.write_soft(None)
    made.commit({"count": {"a": {"n": 4}}})
    assert slate(served, "a") == (4, 4)


def test_a_reader_of_the_old_way_is_told(made: MadeStore, served: OpenStore) -> None:
    """A reader that is open while the way of flushing changes gets StaleRead, not old slates."""
    with served.lease() as reader:
        begin_layer(made)
        made.commit({"count": {"a": {"n": 1}}})
        with pytest.raises(StaleRead, match="open it again"):
            reader.get("count", "a")


def test_a_layer_of_another_boot_is_not_read(made: MadeStore, served: OpenStore) -> None:
    """After a cut of the power, and before a driver has started, the last flush is served, though
    the layer and the progress are garbage."""
    begin_layer(made)
    made.commit({"count": {"a": {"n": 1}}})
    made.home.write_soft(Soft("layer", "earlier", 0))
    (made.path / "progress").write_bytes(b"garbage")
    for path in (made.path / "soft").rglob("data.mdb"):
        path.write_bytes(b"garbage")
    assert slate(served, "a") == (0, 0)
    assert served.progress().batch == 0
