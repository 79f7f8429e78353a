"""The store of two layers: the effect of a flush, and of its interruption at any point."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import lmdb
import pytest
from generated_cases import examples
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule

from millstream.errors import StaleCommit, StaleRead
from millstream.stores.contract import Fence, Shard
from millstream.stores.integrity.shard_check import check_shard
from millstream.stores.layered import LayeredShard, LayeredStore
from millstream.stores.lmdb import LmdbStore
from millstream.stores.memory import MemoryStore

Change = dict[bytes, bytes | None]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[LayeredStore]:
    """An empty store of one shard."""
    opened = LayeredStore(tmp_path / "base", tmp_path / "soft", 1)
    yield opened
    opened.close()


def rows_at(shard: Shard, batch: int) -> dict[bytes, bytes]:
    with shard.at(batch) as view:
        return dict(view.scan(b""))


def base_at(folder: Path, batch: int) -> dict[bytes, bytes]:
    """Returns the rows that a store without a layer sees."""
    store = LmdbStore(folder / "base", 1)
    try:
        return rows_at(store.shard(0), batch)
    finally:
        store.close()


def flush(shard: LayeredShard, epoch: int, committed: int) -> None:
    shard.write_base(epoch, shard.flushed, committed)
    shard.clear(epoch, committed)


def test_batches_between_flushes_leave_base_alone(store: LayeredStore, tmp_path: Path) -> None:
    """Base has no transaction more, so nothing is forced to disk, until the flush makes one."""

    def transactions() -> int:
        store.close()
        with lmdb.open(str(tmp_path / "base" / "shard-0000")) as env:
            return env.info()["last_txnid"]

    shard = store.shard(0)
    shard.roll_back(1, -1)
    before = transactions()
    for batch in range(10):
        shard.commit(Fence(1, batch, 0), {"f": {b"a": b"%d" % batch, b"b%d" % batch: b"x"}})
    assert transactions() == before
    flush(shard, 1, 9)
    assert transactions() == before + 1
    assert base_at(tmp_path, 9)[b"a"] == b"9"


def test_slates_are_readable_at_once(store: LayeredStore) -> None:
    """Another store object of the same folders sees a batch when it is committed, unflushed."""
    shard = store.shard(0)
    shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0", b"gone": b"0"}})
    flush(shard, 1, 0)
    shard.commit(Fence(1, 1, 0), {"f": {b"b": b"1", b"gone": None}})
    other = LayeredStore(store._base._path, store._path, 1)
    assert rows_at(other.shard(0), 1) == {b"a": b"0", b"b": b"1"}
    assert rows_at(other.shard(0), 0) == {b"a": b"0", b"gone": b"0"}


@pytest.mark.parametrize("moment", ["begun", "written", "cleared"])
def test_a_view_opened_at_any_moment_of_a_flush_shows_the_same(
    store: LayeredStore, moment: str
) -> None:
    """Before base is written, before the layer is emptied and afterwards: the committed batch; the
    batch before it too, until the layer is emptied, and then StaleRead."""
    shard = store.shard(0)
    shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0", b"b": b"0", b"c": b"0"}})
    flush(shard, 1, 0)
    shard.commit(Fence(1, 1, 0), {"f": {b"a": b"1"}})
    shard.commit(Fence(1, 2, 0), {"f": {b"b": b"2", b"c": None, b"d": b"2"}})
    if moment != "begun":
        shard.write_base(1, 0, 2)
    if moment == "cleared":
        shard.clear(1, 2)
    assert rows_at(shard, 2) == {b"a": b"1", b"b": b"2", b"d": b"2"}
    if moment == "cleared":
        with pytest.raises(StaleRead):
            shard.at(1)
    else:
        assert rows_at(shard, 1) == {b"a": b"1", b"b": b"0", b"c": b"0"}


def test_a_view_outlives_a_flush(store: LayeredStore) -> None:
    """A view that was open before goes on showing its moment."""
    shard = store.shard(0)
    shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0", b"b": b"0"}})
    with shard.at(0) as view:
        rows = view.scan(b"")
        assert next(rows) == (b"a", b"0")
        flush(shard, 1, 0)
        for batch in range(1, 4):
            shard.commit(Fence(1, batch, 0), {"f": {b"b": b"%d" % batch, b"c": b"new"}})
            flush(shard, 1, batch)
        assert list(rows) == [(b"b", b"0")]
        assert view.get_many([b"c"]) == [None]


def test_what_comes_and_goes_between_flushes_never_reaches_base(
    store: LayeredStore, tmp_path: Path
) -> None:
    """A row made and deleted between two flushes leaves nothing: no row, no tombstone."""
    shard = store.shard(0)
    shard.commit(Fence(1, 0, 0), {"f": {b"stays": b"0"}})
    shard.commit(Fence(1, 1, 0), {"f": {b"passing": b"1"}})
    shard.commit(Fence(1, 2, 0), {"f": {b"passing": None}})
    shard.commit(Fence(1, 3, 0), {"f": {b"stays": b"3"}})
    assert shard.write_base(1, -1, 3) == 1
    assert base_at(tmp_path, 3) == {b"stays": b"3"}


def test_deleted_rows_leave_base_at_their_functions_next_flush(
    store: LayeredStore, tmp_path: Path
) -> None:
    """A flush commits under the names of the functions, so that each one's tombstones are purged,
    and no other's."""

    def entries() -> int:
        store.close()
        with lmdb.open(str(tmp_path / "base" / "shard-0000")) as env:
            return env.stat()["entries"]

    shard = store.shard(0)
    rows: dict[str, Change] = {
        name: {b"%s%d" % (name.encode(), n): b"0" for n in range(50)} for name in ("f", "g")
    }
    shard.commit(Fence(1, 0, 0), rows)
    flush(shard, 1, 0)
    full = entries()
    shard.commit(Fence(1, 1, 0), {"f": dict.fromkeys(list(rows["f"])[:40])})
    flush(shard, 1, 1)
    assert entries() == full
    shard.commit(Fence(1, 2, 0), {"g": {b"g0": b"1"}})
    flush(shard, 1, 2)
    assert entries() == full
    shard.commit(Fence(1, 3, 0), {"f": {b"f49": b"1"}})
    flush(shard, 1, 3)
    assert entries() == full - 40


def test_a_flush_leaves_out_a_batch_that_was_cut_off(store: LayeredStore, tmp_path: Path) -> None:
    """Rows of the next batch that a cancelled task has committed are not flushed, and are
    removed."""
    shard = store.shard(0)
    shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
    shard.commit(Fence(1, 1, 57), {"f": {b"a": b"half", b"b": b"half"}})
    flush(shard, 1, 0)
    assert rows_at(shard, 0) == base_at(tmp_path, 0) == {b"a": b"0"}


def test_both_layers_stand_a_check(store: LayeredStore, tmp_path: Path) -> None:
    """The check of a shard covers the layer too: its rows, and its notes."""
    shard = store.shard(0)
    for batch in range(4):
        shard.commit(Fence(1, batch, 0), {"f": {b"a": b"%d" % batch, b"b%d" % batch: b"x"}})
        if batch == 2:
            flush(shard, 1, batch)
    store.close()
    for layer in ("base", "soft"):
        assert check_shard(str(tmp_path / layer / "shard-0000")).findings == []


def test_an_old_drivers_task_is_refused_after_a_flush(store: LayeredStore) -> None:
    """The layer keeps its fence when it is emptied."""
    shard = store.shard(0)
    shard.commit(Fence(1, 0, 0), {"f": {b"a": b"0"}})
    shard.roll_back(2, 0)
    flush(shard, 2, 0)
    for fence in (Fence(1, 1, 9), Fence(2, 0, 9)):
        with pytest.raises(StaleCommit):
            shard.commit(fence, {"f": {b"a": b"zombie"}})
    with pytest.raises(StaleCommit):
        shard.clear(1, 0)
    assert rows_at(shard, 0) == {b"a": b"0"}


KEYS = {"f": [b"a", b"b", b"", b"k" * 600], "g": [b"x", b"y", b"k" * 601]}
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        name: st.dictionaries(
            st.sampled_from(keys), st.none() | st.sampled_from([b"", b"v", b"w" * 900]), max_size=3
        )
        for name, keys in KEYS.items()
    },
)


class Flushes(RuleBasedStateMachine):
    """A layered store beside one in memory, through commits, flushes and both kinds of crash.

    The folder is what a machine keeps: `soft` is lost when the power is cut, `base` is not.
    """

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.layers, self.since, self.epoch = 0, -1, 1
        self.committed = self.flushed = -1
        self.kept: dict[int, dict[bytes, bytes]] = {-1: {}}
        """The rows at the end of each batch that a crash may take the store back to."""
        self._open()
        self.plain = MemoryStore(1).shard(0)
        self._start()

    def _open(self) -> None:
        self.store = LayeredStore(
            self.folder / "base",
            self.folder / f"soft{self.layers}",
            1,
            self.since,
            map_size=1 << 16,
        )
        self.shard = self.store.shard(0)

    def _start(self) -> None:
        """A driver starts: it first finishes a flush that was recorded, then rolls back."""
        self.epoch += 1
        if self.shard.flushed < self.flushed:
            self.shard.clear(self.epoch, self.flushed)
        self.shard.roll_back(self.epoch, self.committed)
        self.plain.roll_back(self.epoch, self.committed)
        self._check()

    def _check(self) -> None:
        assert rows_at(self.shard, self.committed) == self.kept[self.committed]

    def teardown(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder)

    @rule(tries=st.lists(CHANGES, min_size=1, max_size=2), cut=st.booleans())
    def batch(self, tries: list[dict[str, Change]], cut: bool) -> None:
        """A batch whose task may be tried twice; the driver may be killed before it is recorded."""
        for attempt, changes in enumerate(tries):
            for shard in (self.shard, self.plain):
                every = {name: changes.get(name, {}) for name in KEYS}
                shard.commit(Fence(self.epoch, self.committed + 1, attempt), every)
        self._check()
        if cut:
            self._start()
            return
        self.committed += 1
        self.kept[self.committed] = rows_at(self.plain, self.committed)
        self._check()

    @precondition(lambda self: self.committed > self.flushed)
    @rule(steps=st.sampled_from(["write", "write, record", "all"]), power=st.booleans())
    def flush(self, steps: str, power: bool) -> None:
        """A flush that is cut off after a step, by a kill or with the power; or done."""
        self.shard.write_base(self.epoch, self.flushed, self.committed)
        if "record" in steps or steps == "all":
            self.flushed = self.committed
        if steps == "all":
            self.shard.clear(self.epoch, self.committed)
            self._check()
        elif power:
            self._cut_power()
        else:
            self._start()

    @rule()
    def power(self) -> None:
        """The power is cut between batches."""
        self._cut_power()

    def _cut_power(self) -> None:
        self.store.close()
        shutil.rmtree(self.folder / f"soft{self.layers}", ignore_errors=True)
        self.layers, self.since = self.layers + 1, self.flushed
        self.committed = self.flushed
        self._open()
        rows = self.kept[self.committed]
        assert base_at(self.folder, self.committed) == rows, "what a reader sees meanwhile"
        self.plain = MemoryStore(1).shard(0)
        split = {
            name: {key: rows[key] for key in keys if key in rows} for name, keys in KEYS.items()
        }
        self.plain.commit(Fence(self.epoch, max(0, self.committed), 0), split)
        self._start()


TestFlushes = Flushes.TestCase
TestFlushes.settings = settings(
    max_examples=examples(60),
    stateful_step_count=25,
    deadline=None,  # a flush waits for the disk
    suppress_health_check=[HealthCheck.too_slow],
)
