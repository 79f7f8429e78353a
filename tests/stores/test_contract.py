"""The contract that every store fulfils."""

from __future__ import annotations

import contextlib
import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from millstream.errors import StaleCommit, StaleRead, StoreError
from millstream.stores.contract import Fence, Shard, Store

RUN = b"r" * 478
"""Keys that share this much are truncated by LMDB's backend."""
AWKWARD = sorted(
    [b"", b"\x00", b"\x00\x00", b"\x01", b"a", b"\xff", b"\xff" * 509, b"\xff" * 510, b"\xff" * 700]
    + [RUN[:-1], RUN, RUN + b"zz", RUN + b"m" * 31, RUN + b"m" * 32, RUN + b"m" * 33]
    + [RUN + bytes([i]) * 100 for i in range(0, 256, 15)]
    + [b"r" * 477 + b"s", b"r" * 477 + b"q" + b"x" * 100, b"long" * 100_000]
)


def state(shard: Shard, at: int) -> dict[bytes, bytes]:
    """Every row as of batch `at`."""
    with shard.at(at) as view:
        return dict(view.scan(b""))


def put(shard: Shard, batch: int, attempt: int = 0, epoch: int = 1, **changes: str | None) -> None:
    """Commit, for the function `f`, changes given as text."""
    coded = {k.encode(): None if v is None else v.encode() for k, v in changes.items()}
    shard.commit(Fence(epoch, batch, attempt), {"f": coded})


def test_get_many_keeps_the_order_asked(shard: Shard) -> None:
    """`get_many` answers in the order of its keys, repeats too, with None where there is no row."""
    put(shard, 0, a="1", b="2")
    with shard.at(0) as view:
        assert view.get_many([b"b", b"x", b"a", b"b"]) == [b"2", None, b"1", b"2"]
        assert view.get_many([]) == []


def test_before_hides_the_batch_itself(shard: Shard) -> None:
    """A task of batch b reads what stood before b, although a try of b has committed."""
    put(shard, 3, kept="old", changed="old", deleted="old")
    put(shard, 4, changed="new", deleted=None, added="new")
    keys = [b"kept", b"changed", b"deleted", b"added"]
    with shard.before(4) as view:
        assert view.get_many(keys) == [b"old", b"old", b"old", None]
        assert [key for key, _ in view.scan(b"")] == [b"changed", b"deleted", b"kept"]
    with shard.before(5) as view:
        assert view.get_many(keys) == [b"old", b"new", None, b"new"]
        assert [key for key, _ in view.scan(b"")] == [b"added", b"changed", b"kept"]


def test_a_repeated_commit_changes_nothing(shard: Shard) -> None:
    """The same commit again, with the same fence or a higher attempt, leaves the same rows."""
    put(shard, 0, a="0", b="0")
    for attempt in (1, 1, 2):
        put(shard, 1, attempt, a="1", b=None, c="1")
        assert state(shard, 1) == {b"a": b"1", b"c": b"1"}
        assert state(shard, 0) == {b"a": b"0", b"b": b"0"}


def test_a_repeat_with_other_keys_replaces_the_whole_try(shard: Shard) -> None:
    """Rows that only the earlier attempt changed, added or deleted are as before the batch."""
    put(shard, 0, changed="0", deleted="0", both="0")
    put(shard, 1, 1, changed="try 1", deleted=None, added="try 1", both=None)
    put(shard, 1, 2, both="try 2", other="try 2")
    assert state(shard, 1) == {
        b"changed": b"0",
        b"deleted": b"0",
        b"both": b"try 2",
        b"other": b"try 2",
    }
    assert state(shard, 0) == {b"changed": b"0", b"deleted": b"0", b"both": b"0"}


def test_a_repeat_restores_a_row_that_was_deleted_before(shard: Shard) -> None:
    """A key deleted in batch 1 and put by a try of batch 2 is absent again when 2 leaves it out."""
    put(shard, 0, a="0", b="0")
    put(shard, 1, a=None)
    put(shard, 2, 1, a="try 1")
    put(shard, 2, 2, b="try 2")
    assert state(shard, 2) == {b"b": b"try 2"}
    assert state(shard, 1) == {b"b": b"0"}


def test_an_empty_repeat_undoes_the_earlier_try(shard: Shard) -> None:
    """A function named without changes takes back its own earlier try of the batch."""
    put(shard, 0, a="0")
    shard.commit(Fence(1, 1, 1), {"f": {b"a": b"1", b"b": b"1"}, "g": {b"z": b"1"}})
    shard.commit(Fence(1, 1, 2), {"f": {}})
    assert state(shard, 1) == {b"a": b"0", b"z": b"1"}


def test_functions_of_a_batch_commit_one_after_another(shard: Shard) -> None:
    """The layers of a batch commit apart, and each reads what the whole batch found."""
    shard.commit(Fence(1, 0, 1), {"f": {b"f": b"0"}})
    shard.commit(Fence(1, 0, 2), {"g": {b"g": b"0"}})
    with shard.before(0) as view:
        assert view.get_many([b"f", b"g"]) == [None, None]
    assert state(shard, 0) == {b"f": b"0", b"g": b"0"}


def test_rows_of_functions_that_rest_are_kept(shard: Shard) -> None:
    """A function that changes nothing for many batches keeps its rows, deletions included."""
    shard.commit(Fence(1, 0, 0), {"f": {b"f": b"0", b"gone": b"0"}})
    shard.commit(Fence(1, 1, 0), {"f": {b"gone": None}})
    for batch in range(2, 6):
        shard.commit(Fence(1, batch, 0), {"f": {}, "g": {b"g": b"%d" % batch}})
    assert state(shard, 5) == {b"f": b"0", b"g": b"5"}
    assert state(shard, 4) == {b"f": b"0", b"g": b"4"}


def test_a_deleted_key_can_be_put_again(shard: Shard) -> None:
    """Deleting, waiting and putting again behave as if the first row had never been."""
    for batch, value in enumerate(["0", None, None, "3", None, "5"]):
        put(shard, batch, a=value, other=str(batch))
        with shard.at(batch) as view:
            assert view.get_many([b"a"]) == [value.encode() if value else None]


@pytest.mark.parametrize(
    ("stale", "kind"),
    [
        (Fence(2, 4, 99), "older batch"),
        (Fence(1, 9, 99), "older driver"),
        (Fence(2, 5, 6), "older attempt"),
    ],
)
@pytest.mark.parametrize("empty", [False, True])
def test_stale_commits_are_refused(shard: Shard, stale: Fence, kind: str, empty: bool) -> None:
    """An older batch, driver or attempt is refused, changes or none, and nothing changes."""
    shard.commit(Fence(2, 5, 7), {"f": {b"a": b"1"}})
    with pytest.raises(StaleCommit) as refused:
        shard.commit(stale, {"f": {} if empty else {b"a": b"stale"}})
    message = str(refused.value)
    assert f"(epoch {stale.epoch}, batch {stale.batch}, attempt {stale.attempt})" in message, kind
    assert "(epoch 2, batch 5, attempt 7)" in message
    assert "drop this task" in message
    assert state(shard, 5) == {b"a": b"1"}


def test_a_commit_without_changes_is_seen(shard: Shard) -> None:
    """After an empty commit, a cancelled attempt that got part of the input is still refused."""
    put(shard, 0, a="0")
    put(shard, 1, attempt=2)
    with pytest.raises(StaleCommit):
        put(shard, 1, attempt=1, a="half")
    assert state(shard, 1) == {b"a": b"0"}


def test_a_commit_without_changes_forgets_nothing(shard: Shard) -> None:
    """Empty batches, and deletes of missing rows, leave old batches readable."""
    put(shard, 0, a="0")
    put(shard, 1, a="1")
    for batch in range(2, 9):
        put(shard, batch, nothing=None)
    assert state(shard, 0) == {b"a": b"0"}
    assert state(shard, 8) == {b"a": b"1"}


@pytest.mark.parametrize("first", [1, 2])
def test_the_higher_fence_wins_in_either_order(shard: Shard, first: int) -> None:
    """Of two attempts of a batch the rows of the higher one remain, whichever commits first."""
    put(shard, 0, a="0")
    for attempt in (first, 3 - first):
        changes = {b"a": b"%d" % attempt, b"only%d" % attempt: b"x"}
        stale = pytest.raises(StaleCommit) if attempt < first else contextlib.nullcontext()
        with stale:
            shard.commit(Fence(1, 1, attempt), {"f": changes})
    assert state(shard, 1) == {b"a": b"2", b"only2": b"x"}


def test_roll_back_undoes_what_is_ahead(shard: Shard) -> None:
    """At a driver's start, every function's changes after the committed batch are taken back."""
    put(shard, 0, changed="0", deleted="0")
    put(shard, 1, changed="1")
    shard.commit(Fence(1, 2, 0), {"f": {b"changed": b"2", b"deleted": None, b"added": b"2"}})
    shard.commit(Fence(1, 2, 1), {"g": {b"g": b"2"}})
    assert shard.roll_back(2, 1) is True
    assert state(shard, 1) == state(shard, 2) == {b"changed": b"1", b"deleted": b"0"}
    assert shard.roll_back(3, 1) is False
    put(shard, 2, epoch=3, changed="again")
    assert state(shard, 2) == {b"changed": b"again", b"deleted": b"0"}
    assert state(shard, 1) == {b"changed": b"1", b"deleted": b"0"}


def test_roll_back_keeps_what_is_committed(shard: Shard) -> None:
    """A shard that is not ahead is left as it is, its memory of the batch before included."""
    put(shard, 0, a="0")
    put(shard, 1, a="1")
    assert shard.roll_back(2, 1) is False
    assert state(shard, 1) == {b"a": b"1"}
    assert state(shard, 0) == {b"a": b"0"}


def test_roll_back_to_nothing(shard: Shard) -> None:
    """A driver killed before Spark committed batch 0 starts again from an empty shard."""
    put(shard, 0, a="0")
    assert shard.roll_back(2, -1) is True
    assert state(shard, -1) == state(shard, 0) == {}


def test_roll_back_does_not_answer_for_what_is_forgotten(shard: Shard) -> None:
    """After a roll-back of batch 2 to 1, batch 0 is refused: 2 has overwritten its memory."""
    for batch in range(3):
        put(shard, batch, a=str(batch))
    shard.roll_back(2, 1)
    with pytest.raises(StaleRead):
        shard.at(0)


def test_a_zombie_is_refused_in_every_shard(store: Store) -> None:
    """Roll-back raises the fence where there is nothing to undo, and in shards never used."""
    put(store.shard(1), 0, a="0")
    put(store.shard(2), 1, a="1")
    for number in range(store.shards):
        store.shard(number).roll_back(2, 0)
    for number in range(store.shards):
        with pytest.raises(StaleCommit):
            put(store.shard(number), 1, 500, a="zombie")
        put(store.shard(number), 1, 0, epoch=2, b="new driver")


def test_an_old_driver_cannot_roll_back(shard: Shard) -> None:
    """A roll-back below the fence, by an older driver or by the same after commits, is refused."""
    put(shard, 1, epoch=3, a="1")
    for epoch in (2, 3):
        with pytest.raises(StaleCommit, match=r"\(epoch 3, batch 1, attempt 0\)"):
            shard.roll_back(epoch, -1)
    assert state(shard, 1) == {b"a": b"1"}


def test_two_batches_ahead_is_an_error(shard: Shard) -> None:
    """A shard that is further ahead than it remembers says so and is left alone."""
    for batch in range(3):
        put(shard, batch, a=str(batch))
    with pytest.raises(StoreError, match="is older than its shards"):
        shard.roll_back(2, 0)
    assert state(shard, 2) == {b"a": b"2"}


def test_a_shard_tells_its_last_batch_and_driver(shard: Shard) -> None:
    """A start derives from them where it can continue. Asking changes nothing."""
    shard.roll_back(1, -1)
    put(shard, 0, 7, a="0")
    put(shard, 1, 8, a="1")
    for epoch, seen in ((1, Fence(1, 1, 8)), (2, None)):
        found = shard.state()
        assert found is not None
        assert (found.last, found.seen.epoch) == (1, epoch)
        assert found.seen == (seen or found.seen)
        assert shard.state() == found
        assert state(shard, 1) == {b"a": b"1"}
        shard.roll_back(2, 1)


def test_a_new_driver_must_roll_back_first(shard: Shard) -> None:
    """A higher epoch does not let an older batch in beside a later one."""
    put(shard, 5, a="5")
    with pytest.raises(StaleCommit, match="roll it back"):
        put(shard, 4, epoch=2, a="4")
    assert state(shard, 5) == {b"a": b"5"}


def test_readers_name_a_committed_batch(shard: Shard) -> None:
    """While batch c + 1 commits, readers at c see c whole; past that they are told to move on."""
    put(shard, 0, a="0", b="0")
    put(shard, 1, a="1")
    assert state(shard, 0) == {b"a": b"0", b"b": b"0"}
    put(shard, 2, b="2")
    with pytest.raises(StaleRead, match=r"as of batch 0.*at batch 2.*as of 1 or later"):
        shard.at(0)
    with pytest.raises(StaleRead):
        shard.before(1)
    assert state(shard, 1) == {b"a": b"1", b"b": b"0"}


def test_a_view_is_one_moment(shard: Shard) -> None:
    """An open view shows the same rows, however many batches commit meanwhile."""
    put(shard, 0, a="0", b="0")
    with shard.at(0) as view:
        rows = view.scan(b"")
        assert next(rows) == (b"a", b"0")
        for batch in range(1, 4):
            put(shard, batch, a=str(batch), b=None if batch == 2 else "x", c="new")
        assert view.get_many([b"a", b"b", b"c"]) == [b"0", b"0", None]
        assert list(rows) == [(b"b", b"0")]


def test_threads_never_see_half_a_batch(shard: Shard) -> None:
    """Threads that read while another commits see every row of one batch, the one they named."""
    keys = [b"%d" % i for i in range(50)]
    shard.commit(Fence(1, 0, 0), {"f": dict.fromkeys(keys, b"0")})
    committed = 0
    stop = threading.Event()

    def read() -> int:
        views = 0
        while not stop.is_set() or not views:
            named = committed
            with contextlib.suppress(StaleRead), shard.at(named) as view:
                assert set(view.get_many(keys)) == {b"%d" % named}
                assert {value for _, value in view.scan(b"")} == {b"%d" % named}
                views += 1
        return views

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        try:
            for batch in range(1, 80):
                shard.commit(Fence(1, batch, 0), {"f": dict.fromkeys(keys, b"%d" % batch)})
                committed = batch
        finally:
            stop.set()
        assert all(reader.result() for reader in readers)


def test_any_bytes_are_keys_and_values(shard: Shard) -> None:
    """Empty, long and awkward keys hold empty, ordinary and 1 MiB values; empty is not None."""
    values = itertools.cycle([b"", b"\x00", b"value", b"\xff" * (1 << 20)])
    wanted = dict(zip(AWKWARD, values, strict=False))
    shard.commit(Fence(1, 0, 0), {"f": wanted})
    with shard.at(0) as view:
        assert view.get_many(AWKWARD) == list(wanted.values())
        assert view.get_many([RUN + b"n" * 40, b"long" * 99_999]) == [None, None]
        assert dict(view.scan(b"")) == wanted
    shard.commit(Fence(1, 1, 1), {"f": dict.fromkeys(AWKWARD, b"")})
    shard.commit(Fence(1, 1, 2), {"f": dict.fromkeys(AWKWARD[::2])})
    assert state(shard, 1) == {key: wanted[key] for key in AWKWARD[1::2]}
    assert state(shard, 0) == wanted
    shard.roll_back(2, 0)
    assert state(shard, 0) == wanted


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_is_in_key_order_within_its_bounds(shard: Shard, reverse: bool) -> None:
    """Every pair of bounds gives the keys between them, true order, in both directions."""
    shard.commit(Fence(1, 0, 0), {"f": {key: key[-3:] for key in AWKWARD[::2]}})
    edges = [*AWKWARD, RUN + b"m" * 50, b"r" * 477, b"zzz"]
    with shard.at(0) as view:
        for start, stop in itertools.product(edges, [*edges, None]):
            wanted = [k for k in AWKWARD[::2] if start <= k and (stop is None or k < stop)]
            found = [key for key, _ in view.scan(start, stop, reverse=reverse)]
            assert found == (wanted[::-1] if reverse else wanted)
            alike = zip(start, stop or b"", strict=False)
            shared = len([*itertools.takewhile(lambda two: two[0] == two[1], alike)])
            rest = [key for key, _ in view.scan(start, stop, reverse=reverse, cut=shared)]
            assert rest == [key[shared:] for key in found]


def test_scan_is_lazy(shard: Shard) -> None:
    """A scan may be left at any row, and another begun in the same view."""
    shard.commit(Fence(1, 0, 0), {"f": {b"%05d" % i: b"v" for i in range(1000)}})
    with shard.at(0) as view:
        assert [k for k, _ in itertools.islice(view.scan(b"005"), 2)] == [b"00500", b"00501"]
        assert next(view.scan(b"", reverse=True)) == (b"00999", b"v")


def test_shards_are_apart(store: Store) -> None:
    """A commit to one shard is not seen in another, and there is no shard past the last."""
    put(store.shard(0), 0, a="0")
    assert state(store.shard(1), 0) == {}
    assert store.shards == 4
    for number in (-1, 4):
        with pytest.raises(StoreError, match="from 0 to 3"):
            store.shard(number)
