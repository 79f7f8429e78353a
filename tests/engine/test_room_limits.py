"""Limits of room that come, change and go between two runs, and how shards share them."""

from __future__ import annotations

from typing import Any

from engine.in_process import InProcess
from engine.limited_room import all_rows, check_batch, plain
from engine.room_app import BATCHES, LANES, an_app, event, keys, later
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.engine.cells.priority import mark_of
from millstream.engine.cells.room import Share, share_of
from millstream.model.event import Event
from millstream.stores.memory import MemoryStore


def test_shares() -> None:
    """A limit is divided among the shards, upwards."""
    update = an_app(5, 1_000).checked().update("weigh")
    share = share_of(update, 4)
    assert share == Share(2, 250, mark_of(update))
    assert [share.fits(*one) for one in [(2, 250), (3, 9), (2, 251), (1, 999)]] == [
        *(True, False, False, True)
    ]
    assert share_of(an_app().checked().update("weigh"), 4) is None


@settings(max_examples=examples(40), deadline=None)
@given(before=BATCHES, after=BATCHES, lane=LANES, shards=st.integers(1, 3))
def test_limits_may_come_and_go(
    before: list[list[Event]], after: list[list[Event]], lane: Any, shards: int
) -> None:
    """A store that had slates before is put in order by the next batch, whatever it had before.

    So with another priority, and with limits that were taken away for a while and came back.
    """
    store = MemoryStore(shards)
    apps = [an_app(), an_app(4, 600), an_app(7, ranked=False), an_app(), an_app(3, 500)]
    engine = None
    given = later(before)
    for app in apps:
        known = {} if engine is None else {"progress": engine.progress, "clock": engine.clock}
        engine = InProcess(app.checked(), shards=shards, lane=lane, store=store, **known)
        engine.attempts = 10_000
        for batch in [*given, []]:
            check_batch(engine, batch)
        given = later(after)
    assert engine is not None


def test_limits_taken_away_leave_nothing() -> None:
    """Without limits no row of the order is there, and none is ever written."""
    store = MemoryStore(1)
    limited = InProcess(an_app(3).checked(), shards=1, store=store)
    limited.batch([event(n, key) for n, key in enumerate("abcd")])
    assert plain(all_rows(limited)) != all_rows(limited)
    free = InProcess(an_app().checked(), shards=1, store=store, progress=limited.progress)
    free.attempts = 100
    free.batch([event(9, "z")])
    assert plain(all_rows(free)) == all_rows(free)
    assert keys(free) == {"b", "c", "d", "z"}


def test_lowered_limits_hold_at_once() -> None:
    """A batch without an event lets go what no longer fits."""
    store = MemoryStore(1)
    engine = InProcess(an_app(4).checked(), shards=1, store=store)
    engine.batch([event(n, key, w=n) for n, key in enumerate("abcd")])
    fewer = InProcess(an_app(2).checked(), shards=1, store=store, progress=engine.progress)
    fewer.attempts = 100
    assert check_batch(fewer, []) > 0
    assert keys(fewer) == {"c", "d"}


def test_a_batch_that_changes_nothing_writes_nothing() -> None:
    """An order that is as it was is not written again."""
    store = MemoryStore(1)
    engine = InProcess(an_app(3).checked(), shards=1, store=store)
    engine.batch([event(1, "a")])
    engine.batch([])
    assert store.shard(0)._content.last == 0
