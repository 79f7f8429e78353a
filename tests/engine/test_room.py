"""Limited room: the least important slates go, exactly those, and nothing else changes."""

from __future__ import annotations

from typing import Any

import pytest
from case_counter import count_case
from engine.disturbed import Crashing, CrashingStore, Retried
from engine.in_process import InProcess
from engine.limited_room import all_rows, check_batch, check_order
from engine.outcome import of_engine, of_reference
from engine.room_app import BATCHES, KEYS, LANES, an_app, event, keys, later
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from progress_counts import by_function

import millstream as ms
from millstream.model.event import Event
from millstream.stores.memory import MemoryStore


@settings(max_examples=examples(150), deadline=None)
@given(
    batches=BATCHES,
    keep=st.one_of(st.none(), st.integers(1, 8)),
    memory=st.one_of(st.none(), st.integers(1, 700)),
    shards=st.integers(1, 4),
    lane=LANES,
    ranked=st.booleans(),
    order=st.sampled_from(["arrival", "event-time"]),
)
def test_the_least_important_go(
    batches: list[list[Event]],
    keep: int | None,
    memory: int | None,
    shards: int,
    lane: Any,
    ranked: bool,
    order: str,
) -> None:
    """After each batch a shard has the most important of its slates that fit, and only their rows.

    What is to stay is found by running the batch without limits and sorting all slates. The stored
    order and the totals are those of the slates that are there.
    """
    if keep is None and memory is None:
        keep = 3
    app = an_app(keep, memory, ranked=ranked, order=order)
    engine = InProcess(app.checked(), shards=shards, lane=lane)
    went = 0
    for batch in later(batches):
        went += check_batch(engine, batch)
    count_case("room against sorting all slates" if went else "room, with room enough")


@settings(max_examples=examples(60), deadline=None)
@given(batches=BATCHES, shards=st.integers(1, 4), lane=LANES, ranked=st.booleans())
def test_with_room_enough_it_is_the_reference(
    batches: list[list[Event]], shards: int, lane: Any, ranked: bool
) -> None:
    """Below the limits nothing goes: the result is the reference's, which knows no limits."""
    app = an_app(len(KEYS) * 4, 1_000_000, ranked=ranked, order="event-time")
    engine = InProcess(app.checked(), shards=shards, lane=lane)
    given = [[], *later(batches)]
    for batch in given:
        engine.batch(batch)
    engine.settle(final=True)
    assert not engine.late
    assert by_function(engine.progress.functions, "evicted") == {}
    events = [one for batch in given for one in batch]
    assert of_engine(engine) == of_reference(app.checked(), events, shards)
    check_order(engine)
    count_case("room against reference")


@settings(max_examples=examples(60), deadline=None)
@given(
    batches=BATCHES,
    keep=st.integers(1, 6),
    memory=st.integers(100, 900),
    lane=LANES,
    share=st.integers(0, 9),
    commits=st.integers(0, 6),
)
def test_tasks_tried_again_and_crashes_change_nothing(
    batches: list[list[Event]], keep: int, memory: int, lane: Any, share: int, commits: int
) -> None:
    """Retried tasks and roll-backs leave every row and every count as without them."""
    workflow = an_app(keep, memory).checked()
    engines = [
        InProcess(workflow, lane=lane),
        Retried(workflow, lane=lane, share=share),
        Crashing(workflow, lane=lane, commits=commits, store=CrashingStore(MemoryStore(4))),
    ]
    for batch in later(batches):
        for engine in engines:
            engine.batch(batch)
    first, *others = [
        (all_rows(one), by_function(one.progress.functions, "evicted"), of_engine(one))
        for one in engines
    ]
    assert all(other == first for other in others)


@settings(max_examples=examples(60), deadline=None)
@given(batches=BATCHES, lane=LANES, memory=st.integers(100, 900))
def test_the_order_follows_sweeping(batches: list[list[Event]], lane: Any, memory: int) -> None:
    """Slates that expire and are swept leave the order and the totals too."""
    workflow = an_app(6, memory, ttl="5us").checked()
    engine = InProcess(workflow, lane=lane)
    for number, batch in enumerate(batches):
        engine.batch([one._replace(ts=one.ts + 40 * number) for one in batch])
        check_order(engine)


def test_what_goes_is_as_if_forgotten() -> None:
    """Its timers do not fire, its row is gone, and the next event finds a fresh slate."""
    app = ms.App("room")
    app.source("in")
    app.output("rang")

    @app.update("in", publishes="rang", keep=1, priority=lambda key, slate: slate["n"])
    def count(event: Any, slate: Any) -> Any:
        slate["n"] = slate.get("n", 0) + event.value
        yield ms.timer(after="5us")

    @count.on_timer
    def ring(timer: Any, slate: Any) -> Any:
        yield ms.emit(value=slate["n"])

    engine = InProcess(app.checked(), shards=1)
    engine.batch([Event("in", 1, "light", 1), Event("in", 1, "heavy", 9)])
    assert keys(engine, "count") == {"heavy"}
    assert not [row for _, row in all_rows(engine) if b"light" in row]
    engine.batch([Event("in", 50, "heavy", 1)])
    assert [(one.key, one.value) for one in engine.streams["rang"]] == [("heavy", 9)]
    engine.batch([Event("in", 51, "light", 20)])
    engine.batch([Event("in", 99, "light", 1)])
    assert engine.streams["rang"][-1][2:] == ("light", 20), "of the 1 from before nothing is left"
    assert by_function(engine.progress.functions, "evicted") == {"count": 2}


def test_without_a_priority_the_last_update_decides() -> None:
    """The slates that were updated longest ago are evicted; among equal times, the first by key."""
    engine = InProcess(an_app(2, ranked=False).checked(), shards=1)
    engine.batch([event(5, "a"), event(3, "b"), event(4, "c"), event(4, "d")])
    assert keys(engine) == {"a", "d"}
    engine.batch([event(6, "d"), event(6, "b")])
    assert keys(engine) == {"b", "d"}


@pytest.mark.parametrize("bad", [None, "text", float("nan"), float("inf"), 10**400, "raise"])
def test_a_priority_that_fails_stops_nothing(bad: Any) -> None:
    """Its slate is the least important; that is counted, told with its key, and nothing is lost."""
    app = ms.App("room", on_error="fail")
    app.source("in")

    def priority(key: str, slate: Any) -> Any:
        if key == "odd":
            return bad if bad != "raise" else slate["missing"]
        return -1e308

    @app.update("in", keep=2, priority=priority)
    def count(event: Any, slate: Any) -> None:
        slate["n"] = slate.get("n", 0) + 1

    engine = InProcess(app.checked(), shards=1)
    engine.batch([Event("in", 9, "odd", 0), Event("in", 1, "a", 0)])
    assert keys(engine, "count") == {"odd", "a"}
    engine.batch([Event("in", 9, "odd", 0), Event("in", 2, "b", 0)])
    assert keys(engine, "count") == {"a", "b"}
    told = engine.progress.counts("count").unranked
    assert told is not None
    assert (told.count, told.key, told.batch) == (2, "odd", 1)
    assert ("missing" if bad == "raise" else "priority must give") in told.error or bad == 10**400
    assert by_function(engine.progress.functions, "processed") == {"count": 4}
    assert by_function(engine.progress.functions, "failed") == {}


def test_one_slate_stays_even_if_it_is_too_large() -> None:
    """The most important slate of a shard stays, over the share of the memory or not."""
    engine = InProcess(an_app(memory=10).checked(), shards=1)
    engine.batch([event(1, "a", 1, 60), event(2, "b", 2, 60), event(3, "c", 0)])
    assert keys(engine) == {"b"}
