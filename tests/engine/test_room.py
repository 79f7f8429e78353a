"""Limited room: the least important slates go, exactly those, and nothing else changes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from case_counter import count_case
from engine.disturbed import Crashing, CrashingStore, Retried
from engine.in_process import InProcess
from engine.limited_room import all_rows, check_batch, check_order, plain
from engine.outcome import of_engine, of_reference
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.engine.priority import mark_of
from millstream.engine.room import Share, share_of
from millstream.model.event import Event
from millstream.stores.layout import slates_of
from millstream.stores.memory import MemoryStore

KEYS = ("a", "b", "c", "d", "e", "", "a\x00b", "é", "k" * 600)
LANES: Any = st.sampled_from(["one-task", "shuffled"])


def by_weight(key: str, slate: Any) -> Any:
    """The weight of the last event; a word of it has no number."""
    return slate["w"]


def by_entries(key: str, table: Any) -> Any:
    return sum(value for _, value in table.scan()) % 5


def an_app(
    keep: int | None = None,
    memory: int | None = None,
    *,
    order: Any = "arrival",
    ranked: bool = True,
    ttl: str | None = None,
) -> ms.App:
    """Weights with timers, and behind them a table of what they were; both have limited room."""
    limited = keep is not None or memory is not None
    app = ms.App("room", order=order)
    app.source("in", lateness="25us", idle="1h")

    @app.update(
        "in",
        publishes="out",
        keep=keep,
        memory=memory,
        ttl=ttl,
        priority=by_weight if ranked and limited else None,
    )
    def weigh(event: Any, slate: Any) -> Any:
        slate["w"] = event.value["w"]
        slate["text"] = "x" * event.value["long"]
        if event.value["do"] == "fail":
            raise ValueError("poison")
        if event.value["do"] == "forget":
            yield ms.forget()
        if event.value["do"] == "timer":
            yield ms.timer(after="7us", name=str(event.value["long"] % 2))
        yield ms.emit(key=event.key[:1], value=[event.key, event.value["long"]])

    @weigh.on_timer
    def ring(timer: Any, slate: Any) -> Any:
        slate["rang"] = slate.get("rang", 0) + 1

    @app.update(
        "out",
        slate=ms.Table,
        keep=keep,
        memory=memory,
        ttl=ttl,
        priority=by_entries if ranked and limited else None,
    )
    def tables(event: Any, table: Any) -> Any:
        name, number = event.value
        if number % 7 == 3:
            yield ms.forget()
        table[name] = number
        table.discard(str(number % 3))
        table[str(number % 4)] = number

    return app


WEIGHTS: Any = st.one_of(
    st.integers(-3, 3), st.sampled_from([0.5, -0.0, 1e300, 10**400, "heavy", None, -1e-300])
)
EVENTS: Any = st.lists(
    st.builds(
        lambda key, ts, w, long, do: Event("in", ts, key, {"w": w, "long": long, "do": do}),
        st.sampled_from(KEYS),
        st.integers(0, 30),
        WEIGHTS,
        st.integers(0, 60),
        st.sampled_from(["", "", "timer", "timer", "forget", "fail"]),
    ),
    max_size=12,
)
BATCHES: Any = st.lists(EVENTS, max_size=6)


def later(batches: list[list[Event]]) -> list[list[Event]]:
    """Each batch ten microseconds after the last."""
    return [[e._replace(ts=e.ts + 10 * n) for e in batch] for n, batch in enumerate(batches)]


def event(ts: int, key: str, w: Any = 0, long: int = 1, do: str = "") -> Event:
    return Event("in", ts, key, {"w": w, "long": long, "do": do})


def keys(engine: InProcess, update: str = "weigh") -> set[str]:
    prefix = slates_of(update)
    return {row[len(prefix) :].decode() for _, row in all_rows(engine) if row.startswith(prefix)}


@settings(max_examples=150, deadline=None)
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


@settings(max_examples=60, deadline=None)
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
    assert engine.progress.evicted == {}
    events = [one for batch in given for one in batch]
    assert of_engine(engine) == of_reference(app.checked(), events, shards)
    check_order(engine)
    count_case("room against reference")


@settings(max_examples=60, deadline=None)
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
    """Whatever is repeated or rolled back, every row and every count is as without it."""
    workflow = an_app(keep, memory).checked()
    engines = [
        InProcess(workflow, lane=lane),
        Retried(workflow, lane=lane, share=share),
        Crashing(workflow, lane=lane, commits=commits, store=CrashingStore(MemoryStore(4))),
    ]
    for batch in later(batches):
        for engine in engines:
            engine.batch(batch)
    first, *others = [(all_rows(one), one.progress.evicted, of_engine(one)) for one in engines]
    assert all(other == first for other in others)


@settings(max_examples=60, deadline=None)
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
    assert engine.progress.evicted == {"count": 2}


def test_without_a_priority_the_last_update_decides() -> None:
    """Those that were updated longest ago go; of the same time, the first by key."""
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
    told = engine.progress.unranked["count"]
    assert (told.count, told.key, told.batch) == (2, "odd", 1)
    assert ("missing" if bad == "raise" else "priority must give") in told.error or bad == 10**400
    assert engine.progress.processed == {"count": 4}
    assert engine.progress.failed == {}


def test_one_slate_stays_even_if_it_is_too_large() -> None:
    """The most important slate of a shard stays, over the share of the memory or not."""
    engine = InProcess(an_app(memory=10).checked(), shards=1)
    engine.batch([event(1, "a", 1, 60), event(2, "b", 2, 60), event(3, "c", 0)])
    assert keys(engine) == {"b"}


def test_shares() -> None:
    """A limit is divided among the shards, upwards."""
    update = an_app(5, 1_000).checked().update("weigh")
    share = share_of(update, 4)
    assert share == Share(2, 250, mark_of(update))
    assert [share.fits(*one) for one in [(2, 250), (3, 9), (2, 251), (1, 999)]] == [
        *(True, False, False, True)
    ]
    assert share_of(an_app().checked().update("weigh"), 4) is None


def weighing(weight: int) -> Any:
    def priority(key: str, slate: Any, *, by: int = weight) -> int:
        return by

    return priority


def a_number(by: int, key: str, slate: Any) -> int:
    return by


@dataclass
class Weighing:
    """A priority that is an object."""

    by: int

    def __call__(self, key: str, slate: Any) -> int:
        return self.by

    def method(self, key: str, slate: Any) -> int:
        return self.by


class Another(Weighing):
    """The same, but for what it does."""

    def __call__(self, key: str, slate: Any) -> int:
        return -self.by

    __repr__ = lambda self: "Weighing(by=1)"  # noqa: E731 - it says the same, too


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (weighing(1), weighing(2)),
        (partial(a_number, 1), partial(a_number, 2)),
        (Weighing(1), Weighing(2)),
        (Weighing(1), Another(1)),
        (Weighing(1).method, Weighing(2).method),
    ],
)
def test_another_priority_has_another_mark(one: Any, other: Any) -> None:
    """So that the order is made anew: also where it is no plain function, or by what it is given.

    The same one has the same mark.
    """

    def mark(priority: Any) -> bytes:
        app = ms.App("room")
        app.source("in")
        app.update("in", name="weigh", keep=1, priority=priority)(lambda event, slate: None)
        return mark_of(app.checked().update("weigh"))

    assert mark(one) == mark(one)
    assert mark(one) != mark(other)


@settings(max_examples=40, deadline=None)
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
