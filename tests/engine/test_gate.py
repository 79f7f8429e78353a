"""Events wait at their function until the horizon has passed them."""

from __future__ import annotations

from engine.columns_of import columns, times
from hypothesis import given
from hypothesis import strategies as st

from millstream.engine.cells.gate import CHUNK, Gate
from millstream.engine.columns import Columns
from millstream.stores.contract import Fence
from millstream.stores.memory import MemoryShard, MemoryStore


def new_shard() -> MemoryShard:
    return MemoryStore(1).shard(0)


def gate_of(shard: MemoryShard, batch: int, passed: int | None) -> Gate:
    return Gate(shard.before(batch), "f", passed, batch)


def commit(shard: MemoryShard, batch: int, gate: Gate) -> dict[bytes, bytes | None]:
    changes = gate.changes()
    shard.commit(Fence(1, batch, 1), {"f": changes})
    return changes


def test_events_up_to_the_horizon_pass() -> None:
    """The horizon itself is included; what is later waits."""
    gate = gate_of(new_shard(), 0, None)
    assert times(gate.take(columns(3, 1, 2), 2)) == [1, 2]
    assert gate.fresh == 1
    assert gate.least() == 3


def test_a_higher_horizon_in_the_same_batch_lets_more_through() -> None:
    """A gate can be asked again, and gives each event once."""
    gate = gate_of(new_shard(), 0, None)
    assert times(gate.take(columns(5, 1), 1)) == [1]
    assert times(gate.take(columns(4), 4)) == [4]
    assert times(gate.take(None, 9)) == [5]
    assert gate.changes() == {}
    assert gate.least() is None


def test_waiting_events_are_there_in_the_next_batch() -> None:
    """Waiting events are stored, and released once the horizon has passed them."""
    shard = new_shard()
    first = gate_of(shard, 0, None)
    first.take(columns(7, 5, 9), 1)
    commit(shard, 0, first)
    second = gate_of(shard, 1, 1)
    assert second.least() == 5
    assert times(second.take(columns(6), 7)) == [5, 7, 6]
    assert second.stored_taken == 2
    assert second.least() == 9


def test_a_chunk_that_is_half_done_is_not_written_again() -> None:
    """A chunk is unchanged until more than half of it is released. The horizon shows which part is
    released."""
    shard = new_shard()
    first = gate_of(shard, 0, None)
    first.take(columns(1, 2, 3, 4), 0)
    (row,) = commit(shard, 0, first)
    half = gate_of(shard, 1, 0)
    assert times(half.take(None, 2)) == [1, 2]
    assert commit(shard, 1, half) == {}
    rest = gate_of(shard, 2, 2)
    assert rest.least() == 1, "the least of a chunk that was not read is that of its key"
    assert times(rest.take(None, 4)) == [3, 4]
    assert commit(shard, 2, rest) == {row: None}


def test_an_event_far_ahead_does_not_keep_its_chunk_being_read() -> None:
    """Once more than half of a chunk is released, the rest becomes a chunk of its own, which is not
    read before its time. So a stray event in every batch does not slow down every later batch."""
    shard = new_shard()
    for batch in range(30):
        gate = gate_of(shard, batch, batch * 10 - 10 if batch else None)
        gate.take(columns(*range(batch * 10 + 11, batch * 10 + 19), 10_000 + batch), batch * 10)
        commit(shard, batch, gate)
    last = gate_of(shard, 30, 290)
    last.take(None, 300)
    assert len(last._chunks) <= 1


def test_chunks_beyond_the_horizon_are_not_read() -> None:
    """Only chunks that hold an event up to the horizon are unpacked."""
    shard = new_shard()
    gate = gate_of(shard, 0, None)
    gate.take(columns(*range(CHUNK + 5)), -1)
    assert len(commit(shard, 0, gate)) == 2
    again = gate_of(shard, 1, -1)
    assert len(again.take(None, 3)) == 4
    assert len(again._chunks) == 1


@given(
    st.lists(
        st.tuples(st.lists(st.integers(0, 30), max_size=8), st.integers(0, 8)),
        min_size=1,
        max_size=8,
    )
)
def test_every_event_passes_once_and_in_time(batches: list[tuple[list[int], int]]) -> None:
    """Each event comes out in the first batch whose horizon has passed it, and never again."""
    shard, horizon, number = new_shard(), -1, 0
    passed: int | None = None
    waiting: list[int] = []
    for number, (arrived, step) in enumerate([*batches, ([], 50)]):
        horizon += step
        gate = gate_of(shard, number, passed)
        due = gate.take(columns(*arrived) if arrived else None, horizon)
        waiting += arrived
        assert sorted(times(due)) == sorted(ts for ts in waiting if ts <= horizon)
        before, waiting = len(waiting), [ts for ts in waiting if ts > horizon]
        assert gate.fresh - gate.stored_taken == len(waiting) - (before - len(arrived))
        least = gate.least()
        assert (least is None) == (not waiting)
        assert least is None or least <= min(waiting)
        commit(shard, number, gate)
        passed = horizon
    with shard.at(number) as view:
        assert list(view.scan(b"")) == []


def test_nothing_arrived_and_nothing_stored() -> None:
    """An empty gate gives nothing and changes nothing."""
    gate = gate_of(new_shard(), 0, None)
    assert len(gate.take(Columns(), 5)) == 0
    assert gate.changes() == {}


def test_a_gate_knows_since_when_events_have_waited() -> None:
    """The earliest batch whose events become due is known, also of what is left of a chunk."""
    shard = new_shard()
    first = gate_of(shard, 0, None)
    first.take(columns(5, 6, 7, 8), 1)
    assert first.oldest is None
    commit(shard, 0, first)
    second = gate_of(shard, 1, 1)
    second.take(columns(20, 2), 7)
    assert second.oldest == 0
    commit(shard, 1, second)  # more than half of the chunk is done: the rest is written anew
    third = gate_of(shard, 2, 7)
    assert times(third.take(columns(9), 9)) == [8, 9]
    assert third.oldest == 0
    commit(shard, 2, third)
    fourth = gate_of(shard, 3, 9)
    assert times(fourth.take(None, 20)) == [20]
    assert fourth.oldest == 1
