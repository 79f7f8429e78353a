"""Stores of earlier formats are carried over by the first start.

Format 2 had Spark's checkpoint, formats 3 and 4 a progress with a field for each count by function.
In format 5 no row was recent.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import msgspec
import pytest
from damaged_stores import BATCHES, KEYS, Made, made, slates

from millstream.durable import write_record
from millstream.errors import StoreError
from millstream.stores import recent_rows
from millstream.stores.contract import Fence
from millstream.stores.home import FORMAT, Home
from millstream.stores.progress import FORMER_COUNTS, PARTS, decoded
from millstream.verifying.store import verify


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(tmp_path_factory.mktemp("stores"), layered=False)


def as_format_2(stores: Made, store: Path, *, batches: int = BATCHES) -> Home:
    """The store as the version before would have left it: with Spark's files."""
    shutil.copytree(stores.after(batches), store)
    home = Home.open(store)
    home.facts.format = 2
    home.write_facts()
    for folder in ("offsets", "commits"):
        (store / "checkpoint" / folder).mkdir(parents=True)
        for batch in range(batches):
            (store / "checkpoint" / folder / str(batch)).write_text("v1\n{}\n{}")
    (store / "checkpoint" / "metadata").write_text(json.dumps({"id": "query"}))
    return home


def test_a_store_of_format_2_is_carried_over_once(stores: Made, tmp_path: Path) -> None:
    """The store is readable before. The first start removes Spark's files and says so; the second
    says nothing. The slates stay the same."""
    store = tmp_path / "store"
    as_format_2(stores, store)
    expected = slates(stores.after(BATCHES))
    assert slates(store) == expected
    said: list[str] = []
    stores.start(store, say=said.append)
    assert [sentence for sentence in said if "format 2" in sentence] == said
    assert len(said) == 1
    assert not (store / "checkpoint").exists()
    assert Home.open(store).facts.format == FORMAT
    assert slates(store) == expected
    said.clear()
    stores.start(store, say=said.append)
    assert said == []
    assert slates(store) == expected


def test_an_unfinished_batch_of_the_old_kind_never_happened(stores: Made, tmp_path: Path) -> None:
    """Spark had planned a batch, and some shards had it: it is undone and planned afresh, with
    everything that is there by now."""
    store = tmp_path / "store"
    home = as_format_2(stores, store, batches=1)
    (store / "checkpoint" / "offsets" / "1").write_text("v1\n{}\n{}")
    shard = home.store().shard(0)
    shard.commit(Fence(1, 1, 0), {"count": {b"Scount\x00w0": b"of a batch that never happened"}})
    shard.close()
    stores.start(store)
    assert slates(store) == slates(stores.after(BATCHES))


def test_a_lost_record_of_format_2_is_refused_untouched(stores: Made, tmp_path: Path) -> None:
    """Spark had committed batches, and `progress` is gone: nothing is rolled back."""
    store = tmp_path / "store"
    as_format_2(stores, store)
    progress = (store / "progress").read_bytes()
    (store / "progress").unlink()
    with pytest.raises(StoreError, match=r"progress: is missing, .* nothing was changed"):
        stores.start(store)
    (store / "progress").write_bytes(progress)
    assert slates(store) == slates(stores.after(BATCHES))


def test_a_first_batch_of_the_old_kind_that_was_not_committed(stores: Made, tmp_path: Path) -> None:
    """A driver that died in its very first batch had no record yet, and lost nothing."""
    store = tmp_path / "store"
    home = as_format_2(stores, store, batches=1)
    shutil.rmtree(store / "checkpoint" / "commits")
    shutil.rmtree(store / "logs")
    (store / "progress").unlink()
    assert home.facts.format == 2
    stores.start(store)
    assert slates(store) == slates(stores.after(BATCHES))


def as_format_4(stores: Made, store: Path) -> bytes:
    """The store as a version of formats 3 and 4 would have left it; returns its progress."""
    shutil.copytree(stores.after(2), store)
    home = Home.open(store)
    progress = msgspec.to_builtins(decoded(home.read_progress()))
    for part in PARTS:
        progress |= progress.pop(part)
    for name, counts in progress.pop("functions").items():
        for field, count in counts.items():
            progress.setdefault(FORMER_COUNTS[field] or field, {})[name] = count
    former = msgspec.json.encode(progress)
    write_record(store / "progress", former)
    facts = msgspec.to_builtins(home.facts) | {"format": 4}
    write_record(store / "store.json", msgspec.json.encode(facts))
    return former


def test_a_store_of_format_4_is_carried_over_once(stores: Made, tmp_path: Path) -> None:
    """Its progress was flat. It is read as it is; the first start says that earlier versions will
    not open the store, and the counts go on from those before."""
    store = tmp_path / "store"
    as_format_4(stores, store)
    before, total = decoded(Home.open(store).read_progress()), KEYS * BATCHES
    assert 0 < before.counts("count").processed < total
    assert before.slates["count"] == len(slates(store))
    said: list[str] = []
    stores.start(store, say=said.append)
    assert len([sentence for sentence in said if "format 4 and has format 6" in sentence]) == 1
    assert Home.open(store).facts.format == FORMAT
    after = decoded(Home.open(store).read_progress())
    whole = decoded(Home.open(stores.after(BATCHES)).read_progress())
    for name, counts in whole.functions.items():
        assert after.counts(name).processed == counts.processed
        assert after.counts(name).slates == counts.slates
        assert after.counts(name).residual == 0
    assert slates(store) == slates(stores.after(BATCHES))
    assert verify(store).faults == []
    said.clear()
    stores.start(store, say=said.append)
    assert said == []


def test_a_store_of_format_5_has_recent_rows_from_now_on(
    stores: Made, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are read where they are, and those that change become recent."""
    store = tmp_path / "store"
    shutil.copytree(stores.after(2), store)
    facts = msgspec.to_builtins(Home.open(store).facts) | {"format": 5}
    write_record(store / "store.json", msgspec.json.encode(facts))
    assert slates(store) == slates(stores.after(2))
    monkeypatch.setattr(recent_rows, "room_for", lambda count: 100)
    said: list[str] = []
    stores.start(store, say=said.append)
    assert len([sentence for sentence in said if "format 5 and has format 6" in sentence]) == 1
    assert slates(store) == slates(stores.after(BATCHES))
    assert verify(store).faults == []
