"""All stores against a naive model, over random sequences of commits, repeats and roll-backs."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Sequence
from itertools import islice, takewhile
from pathlib import Path

import pytest
from generated_cases import examples
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from stores.shared.played_store import PlayedStore

from millstream.errors import StaleCommit, StaleRead, StoreError
from millstream.places.memory_place import MemoryPlace
from millstream.stores import recent_rows
from millstream.stores.contract import Fence, Store
from millstream.stores.integrity.shard_check import check_shard
from millstream.stores.layered import LayeredStore
from millstream.stores.lmdb import LmdbStore
from millstream.stores.memory import MemoryStore
from millstream.stores.read_rows import ReadRows

RUN = b"k" * 478
KEYS = {
    "f": [b"", b"\x00", b"k", RUN[1:], RUN, RUN + b"k" * 31, RUN + b"k" * 32, RUN + b"z", RUN * 2]
    + [RUN + bytes([i]) * 200 for i in (0, 9, 255)],
    "g": [b"l", b"\xff", b"\xff" * 478, b"\xff" * 509, b"\xff" * 510, b"\xff" * 600],
}
EVERY = [*KEYS["f"], *KEYS["g"]]
VALUES = st.none() | st.sampled_from([b"", b"v", b"w" * 5000]) | st.binary(max_size=3)
CHANGES = st.fixed_dictionaries(
    {},
    optional={
        name: st.dictionaries(st.sampled_from(keys), VALUES, max_size=6)
        for name, keys in KEYS.items()
    },
)

Rows = dict[bytes, bytes]
Change = dict[bytes, bytes | None]


class Model:
    """The rows before the last batch, and the changes of each function since."""

    def __init__(self) -> None:
        self.seen = Fence(-1, -1, -1)
        self.last = -1
        self.earlier: Rows = {}
        self.tries: dict[str, Change] = {}

    def now(self) -> Rows:
        rows: dict[bytes, bytes | None] = dict(self.earlier)
        for changed in self.tries.values():
            rows.update(changed)
        return {key: value for key, value in rows.items() if value is not None}

    def commit(self, fence: Fence, changes: dict[str, Change]) -> None:
        if fence < self.seen or fence.batch < self.last:
            raise StaleCommit
        self.seen = fence
        rows = self.earlier if fence.batch == self.last else self.now()
        real = {
            name: {k: v for k, v in changed.items() if v is not None or k in rows}
            for name, changed in changes.items()
        }
        if fence.batch > self.last and any(real.values()):
            self.earlier, self.tries, self.last = rows, {}, fence.batch
        if fence.batch == self.last:
            self.tries.update(real)

    def roll_back(self, epoch: int, committed: int) -> bool:
        fence = Fence(epoch, committed + 1, 0)
        if fence < self.seen:
            raise StaleCommit
        if self.last > committed + 1:
            raise StoreError
        self.seen = fence
        if self.last <= committed:
            return False
        undone = any(self.tries.values())
        self.tries = {}
        return undone

    def at(self, committed: int) -> Rows:
        if self.last > committed + 1:
            raise StaleRead
        return self.earlier if committed < self.last else self.now()


class Stores(RuleBasedStateMachine):
    """The model and the stores do the same, refusals included."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.mkdtemp()
        self.stores = self.made()
        self.shards = [store.shard(0) for store in self.stores]
        self.model = Model()
        self.read: list[ReadRows | None] = [None for _ in self.shards]
        """What the last view of each store has read. It may be of any earlier batch."""

    def made(self) -> list[Store]:
        """The stores, each of one shard."""
        base, soft = f"{self.folder}/base", f"{self.folder}/soft"
        return [
            MemoryStore(1),
            LmdbStore(f"{self.folder}/lmdb", 1, map_size=1 << 16),
            LayeredStore(base, soft, 1, map_size=1 << 16),
        ]

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        shutil.rmtree(self.folder)

    def same(self, act: str, *arguments: object, each: Sequence[object] = ()) -> None:
        """`each` is a further argument for each store."""
        outcomes = []
        more = [(argument,) for argument in each] or [() for _ in self.shards]
        for one, last in zip((self.model, *self.shards), ((), *more), strict=True):
            try:
                outcomes.append(getattr(one, act)(*arguments, *last))
            except StoreError as error:
                outcomes.append(type(error))
        assert outcomes.count(outcomes[0]) == len(outcomes), outcomes

    @rule(
        epoch=st.integers(-1, 1),
        batch=st.sampled_from([-1, 0, 0, 0, 1, 1, 1, 2]),
        attempt=st.integers(-1, 2),
        changes=CHANGES,
    )
    def commit(self, epoch: int, batch: int, attempt: int, changes: dict[str, Change]) -> None:
        """Around the fence: the next batch, the same again with other keys, or a stale one."""
        seen = self.model.seen
        fence = Fence(*(max(0, n) for n in (seen[0] + epoch, seen[1] + batch, seen[2] + attempt)))
        self.same("commit", fence, changes, each=self.read)

    @rule(changes=CHANGES, keys=st.sets(st.sampled_from(EVERY)))
    def task(self, changes: dict[str, Change], keys: set[bytes]) -> None:
        """A task of the next batch reads some rows and commits, some of those or others."""
        self.read = []
        for shard in self.shards:
            with shard.before(self.model.last + 1) as view:
                view.get_many(sorted(keys))
            self.read.append(view.rows_read)
        fence = Fence(self.model.seen.epoch, self.model.last + 1, self.model.seen.attempt)
        self.same("commit", fence, changes, each=self.read)

    @rule(epoch=st.integers(-1, 2), back=st.sampled_from([-1, 0, 1, 1, 1, 2]))
    def roll_back(self, epoch: int, back: int) -> None:
        """A driver starts again, mostly one batch back."""
        self.same("roll_back", max(0, self.model.seen.epoch + epoch), self.model.last - back)

    @rule(
        back=st.integers(-1, 2),
        start=st.sampled_from(EVERY),
        stop=st.none() | st.sampled_from(EVERY),
        reverse=st.booleans(),
        limit=st.integers(1, 5),
    )
    def read(self, back: int, start: bytes, stop: bytes | None, reverse: bool, limit: int) -> None:
        """Every key and a range, as of batches around the last."""
        committed = self.model.last - back
        try:
            rows = self.model.at(committed)
        except StaleRead:
            self.same("at", committed)
            return
        keys = sorted(k for k in rows if start <= k and (stop is None or k < stop))
        wanted = [(key, rows[key]) for key in (reversed(keys) if reverse else keys)]
        for shard in self.shards:
            with shard.before(committed + 1) as view:
                assert view.get_many(EVERY) == [rows.get(key) for key in EVERY]
                assert [view.get(key) for key in EVERY] == [rows.get(key) for key in EVERY]
                assert list(view.scan(start, stop, reverse=reverse)) == wanted
                shared = len(
                    [
                        *takewhile(
                            lambda two: two[0] == two[1], zip(start, stop or b"", strict=False)
                        )
                    ]
                )
                some = list(islice(view.scan(start, stop, reverse=reverse, cut=shared), limit))
                assert some == [(key[shared:], value) for key, value in wanted[:limit]]


TestStores = Stores.TestCase
TestStores.settings = settings(
    max_examples=examples(150),
    stateful_step_count=30,
    deadline=None,  # a commit waits for the disk
    suppress_health_check=[HealthCheck.too_slow],
)


class WithRecentRows(Stores):
    """The same, with recent rows in every shard."""

    def __init__(self) -> None:
        self.patch = pytest.MonkeyPatch()
        self.patch.setattr(recent_rows, "LEAST_EXAMINED", 1)
        super().__init__()

    @initialize(room=st.sampled_from([1, 4, 30]), sparse=st.integers(1, 4))
    def begin(self, room: int, sparse: int) -> None:
        """Room for few rows or for all; new rows are recent always or sometimes."""
        self.patch.setattr(recent_rows, "room_for", lambda count: room)
        self.patch.setattr(recent_rows, "SPARSE", sparse)

    def teardown(self) -> None:
        for store in self.stores:
            store.close()
        findings = [check_shard(str(d.parent)).findings for d in Path(self.folder).rglob("*.mdb")]
        super().teardown()
        self.patch.undo()
        assert not any(findings)


TestWithRecentRows = WithRecentRows.TestCase
TestWithRecentRows.settings = TestStores.settings


class SharedStores(Stores):
    """The model and a shared store do the same. Apart from the others, as it takes longer."""

    def made(self) -> list[Store]:
        return [PlayedStore(MemoryPlace(), Path(self.folder) / "shared", 1)]


class SharedWithRecentRows(WithRecentRows, SharedStores):
    """A shared store whose copies have recent rows."""


TestSharedStores = SharedStores.TestCase
TestSharedStores.settings = settings(
    max_examples=examples(50),
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestSharedWithRecentRows = SharedWithRecentRows.TestCase
TestSharedWithRecentRows.settings = TestSharedStores.settings
