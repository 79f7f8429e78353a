"""Past its limit an update drops, diverts or throttles; every delivery is accounted for.

`InProcess.batch` checks after each batch that what was taken in is processed, dropped, diverted,
waiting, a dead letter or late, for every function.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
from engine.disturbed import Retried
from engine.in_process import InProcess
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.engine.horizon import Lane, is_due, pressure_of
from millstream.engine.intake import Intake
from millstream.engine.layers import Task
from millstream.engine.pace import LEAST_SHARE
from millstream.errors import StoreError
from millstream.model.event import Event
from millstream.model.workflow import Order
from millstream.reference import Reference
from millstream.spark.continuing import check_continues
from millstream.stores.deliveries import deliveries_to
from millstream.stores.home import Home
from millstream.stores.layout import queue_directory, slates_of, unpack_slate

LANES: tuple[Lane, ...] = ("one-task", "shuffled")
ORDERS: tuple[Order, ...] = ("arrival", "event-time")


def folding(order: str, limit: int | None, overload: str = "throttle") -> ms.App:
    """A map, a limited update whose slates depend on the order, and one behind it."""
    app = ms.App("folding", order=cast(Order, order))
    app.source("in", ts="ts", unit="us", lateness="20us", idle="1h")
    how: dict[str, Any] = {"limit": limit, "overload": overload}
    if overload == "divert":
        how["overflow"] = "too_many"

    @app.map("in", publishes="numbers")
    def numbers(event: ms.Event) -> Any:
        if event.value["n"] % 17 == 5:
            raise ValueError("poison")
        yield ms.emit()

    @app.update("numbers", publishes="folded", **how)
    def fold(event: ms.Event, slate: dict[str, int]) -> Any:
        slate["hash"] = (slate.get("hash", 7) * 31 + event.value["n"]) % 1_000_003
        slate["sum"] = slate.get("sum", 0) + event.value["n"]
        if event.value["n"] % 13 == 4:
            raise ValueError("poison")
        yield ms.emit(key=f"g{slate['hash'] % 3}", value=slate["hash"])

    @app.update("folded")
    def last(event: ms.Event, slate: dict[str, int]) -> None:
        slate["hash"] = (slate.get("hash", 7) * 31 + event.value) % 1_000_003

    if overload == "divert":

        @app.update("too_many")
        def degraded(event: ms.Event, slate: dict[str, int]) -> None:
            slate["count"] = slate.get("count", 0) + 1

    return app


batches = st.lists(
    st.lists(
        st.builds(
            lambda key, at, n: (key, at, n),
            st.sampled_from("abc"),
            st.integers(0, 40),
            st.integers(0, 50),
        ),
        max_size=25,
    ),
    max_size=5,
)


def as_events(given: list[list[tuple[str, int, int]]]) -> list[list[Event]]:
    """Each batch ten microseconds after the last."""
    return [
        [Event("in", 10 * b + at, key, {"n": n, "ts": 10 * b + at}) for key, at, n in batch]
        for b, batch in enumerate(given)
    ]


def run(app: ms.App, given: list[list[Event]], lane: Lane, **how: Any) -> InProcess:
    kind = how.pop("kind", InProcess)
    engine: InProcess = kind(app.checked(), lane=lane, **how)
    for batch in given:
        engine.batch(batch)
    engine.settle(final=True)
    return engine


def slates(engine: InProcess, update: str) -> dict[str, bytes]:
    """The JSON of every slate of an update."""
    prefix, found = slates_of(update), {}
    assert engine.store is not None
    for number in range(engine.shards):
        with engine.store.shard(number).at(engine.progress.batch) as view:
            for row, value in view.scan(prefix, prefix + b"\xff"):
                found[row[len(prefix) :].decode()] = unpack_slate(value).data
    return found


def meant(app: ms.App, events: list[Event]) -> dict[tuple[str, str], bytes]:
    reference = Reference(app.checked())
    reference.feed(events)
    reference.drain()
    return {owner: slate.data for owner, slate in reference.slates.items()}


@pytest.mark.parametrize("lane", LANES)
@given(batches, st.integers(1, 6), st.integers(1, 3))
def test_throttled_in_event_time_is_exact(
    lane: Lane, given: list[list[tuple[str, int, int]]], limit: int, shards: int
) -> None:
    """Throttling holds the horizon back: the slates, and those behind, are the reference's over
    what was not late, however small the limit."""
    app = folding("event-time", limit)
    engine = run(app, as_events(given), lane, shards=shards)
    events = [event for batch in as_events(given) for event in batch]
    for gone in engine.late:
        events.remove(gone)
    wanted = meant(app, events)
    for update in ("fold", "last"):
        assert slates(engine, update) == {k: v for (u, k), v in wanted.items() if u == update}
    assert engine.progress.waiting == 0


@pytest.mark.parametrize("lane", LANES)
@given(batches, st.integers(1, 6), st.integers(1, 3), st.sampled_from([InProcess, Retried]))
def test_throttled_in_arrival_order_loses_nothing(
    lane: Lane, given: list[list[tuple[str, int, int]]], limit: int, shards: int, kind: type
) -> None:
    """In arrival order the events wait in their shard, first in, first out, at most `limit` pass in
    a batch, and in the end each has been fed once."""
    app = folding("arrival", limit)
    engine = run(app, as_events(given), lane, shards=shards, kind=kind)
    wanted = meant(app, [event for batch in as_events(given) for event in batch])
    for update in ("fold",):
        found = {key: _sum(data) for key, data in slates(engine, update).items()}
        assert found == {k: _sum(v) for (u, k), v in wanted.items() if u == update}
    assert engine.progress.held == engine.progress.waiting == 0
    assert _queues(engine) == []


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("lane", LANES)
@given(batches, st.integers(1, 6))
def test_what_is_dropped_is_counted_and_logged(
    lane: Lane, order: Order, given: list[list[tuple[str, int, int]]], limit: int
) -> None:
    """The slates are the reference's over the events less those in the log of dropped ones."""
    app = folding(order, limit, "drop")
    engine = run(app, as_events(given), lane, shards=2)
    events = [event for batch in as_events(given) for event in batch]
    for gone in engine.late:
        events.remove(gone)
    dropped = [event for name, event in engine.dropped if name == "fold"]
    assert len(dropped) == engine.progress.dropped.get("fold", 0)
    for event in dropped:
        events.remove(event._replace(stream="in", ts=event.ts - 1))
    wanted = meant(app, events)
    found = {key: _sum(data) for key, data in slates(engine, "fold").items()}
    assert found == {k: _sum(v) for (u, k), v in wanted.items() if u == "fold"}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("lane", LANES)
@given(batches, st.integers(1, 6))
def test_what_is_diverted_gets_a_degraded_service(
    lane: Lane, order: Order, given: list[list[tuple[str, int, int]]], limit: int
) -> None:
    """Every event past the limit goes to the overflow stream, with a later time, and is processed
    by the functions there; none goes both ways."""
    app = folding(order, limit, "divert")
    engine = run(app, as_events(given), lane, shards=2)
    overflow = engine.streams.get("too_many", [])
    assert len(overflow) == engine.progress.diverted.get("fold", 0)
    counted = sum(_field(data, "count") for data in slates(engine, "degraded").values())
    assert counted == len(overflow)
    main = deliveries_to(engine.progress, "fold")
    assert main.processed + main.dead_letters + main.diverted == main.taken


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("limit", [None, 700])
def test_ten_thousand_events_into_its_own_input(order: Order, lane: Lane, limit: int) -> None:
    """The paper's deadlock (section 5): an update that emits 10,000 events into the stream that it
    reads. No queue is ever waited for, so it runs through, with a limit too."""
    app = ms.App("flood", order=order)
    app.source("in", ts="ts", unit="us")

    @app.update("in", "own", publishes="own", limit=limit)
    def flood(event: ms.Event, slate: dict[str, int]) -> Any:
        slate["count"] = slate.get("count", 0) + 1
        if event.stream == "in":
            for number in range(10_000):
                yield ms.emit(key=str(number % 7), value=number)

    engine = run(app, [[Event("in", 1, "k", {})]], lane, shards=4)
    counted = sum(_field(data, "count") for data in slates(engine, "flood").values())
    assert counted == 10_001


def test_a_hot_key_waits_in_its_own_lane() -> None:
    """Past its share a hot key's events wait, in order; other keys of its shard pass it, and new
    events of the hot key stand behind the old ones."""
    app = folding("arrival", None)
    engine = InProcess(app.checked(), shards=1)
    slow = 1e9  # microseconds an event: the share is the least there is
    engine.progress.costs = {"fold": slow}
    hot = [Event("in", n, "hot", {"n": 1, "ts": n}) for n in range(3 * LEAST_SHARE)]
    engine.batch([*hot, Event("in", 999, "cool", {"n": 2, "ts": 999})])
    assert _field(slates(engine, "fold")["hot"], "sum") == LEAST_SHARE
    assert _field(slates(engine, "fold")["cool"], "sum") == 2
    assert engine.progress.held == 2 * LEAST_SHARE
    assert engine.progress.waiting_at["fold"] == 2 * LEAST_SHARE
    engine.progress.costs = {"fold": slow}
    engine.batch([Event("in", 5_000, "hot", {"n": 3, "ts": 5_000})])
    assert _field(slates(engine, "fold")["hot"], "sum") == 2 * LEAST_SHARE
    engine.progress.costs = {}  # what is known of its cost is forgotten: nothing waits any more
    engine.settle(final=False)
    assert _field(slates(engine, "fold")["hot"], "sum") == 3 * LEAST_SHARE + 3
    assert engine.progress.held == 0
    assert _queues(engine) == []


@given(batches, st.sampled_from(LANES))
def test_shares_change_when_not_what(given: list[list[tuple[str, int, int]]], lane: Lane) -> None:
    """With shares or without, an update whose result does not depend on order comes to the same."""
    app = folding("arrival", None)
    engine = InProcess(app.checked(), lane=lane, shards=2)
    for batch in as_events(given):
        engine.progress.costs = {"fold": 1e9, "last": 1e9}
        engine.batch([event for event in batch for _ in range(9)])
    engine.settle(final=True)
    events = [event for batch in as_events(given) for event in batch for _ in range(9)]
    wanted = meant(app, events)
    found = {key: _sum(data) for key, data in slates(engine, "fold").items()}
    assert found == {k: _sum(v) for (u, k), v in wanted.items() if u == "fold"}


def test_pressure_rises_with_what_waits() -> None:
    """The fuller the room for throttled events, the less a batch takes: at four batches' worth,
    nothing."""
    app = folding("arrival", 10)
    engine = InProcess(app.checked(), shards=1)
    engine.batch([Event("in", n, "k", {"n": 1, "ts": n}) for n in range(30)])
    assert engine.progress.pressure == pytest.approx(20 / 40)
    engine.batch([Event("in", n, "k", {"n": 1, "ts": n}) for n in range(30, 90)])
    assert engine.progress.pressure == 1.0
    engine.settle(final=False)
    assert engine.progress.pressure == 0.0


def test_an_update_once_thought_dear_is_found_to_be_cheap() -> None:
    """One slow batch (a first import, a pause) makes the share of a key small. With one key only,
    no batch feeds more than that share: it must be enough to learn the cost anew."""
    app = folding("arrival", None)
    engine = InProcess(app.checked(), shards=1)
    engine.progress.costs = {"fold": 1e9}
    engine.batch([Event("in", n, "k", {"n": 1, "ts": n}) for n in range(20 * LEAST_SHARE)])
    assert engine.progress.held == 19 * LEAST_SHARE
    assert engine.progress.costs["fold"] < 0.6e9


def test_sources_are_not_stopped_when_only_they_can_go_on() -> None:
    """Events became due while a source was idle, and fill the room of a throttled update. After a
    start that source is waited for again, so nothing is due without its records: it must not be
    stopped, or a run that takes what is there would end having taken nothing."""
    app = ms.App("two", order="event-time")
    app.source("quiet", ts="ts", unit="us", idle="1s")
    app.source("busy", ts="ts", unit="us", idle="1s")

    @app.update("quiet", "busy", limit=1)
    def count(event: ms.Event, slate: dict[str, int]) -> None:
        slate["count"] = slate.get("count", 0) + 1

    workflow = app.checked()
    engine = InProcess(workflow, shards=1)
    engine.batch([Event("quiet", 10, "k", {}), *(Event("busy", n, "k", {}) for n in range(20, 60))])
    engine.clock += 10_000_000  # both are idle now
    engine.batch([])
    progress, now = engine.progress, engine.clock
    assert progress.pressure == 1.0
    assert pressure_of(workflow, progress, now, started=0) == 1.0  # the run that saw it
    for started in (None, now):  # --available-now, and a start that waits
        assert not is_due(workflow, progress, now, started, final=False)
        assert pressure_of(workflow, progress, now, started) == 0.0


def test_a_few_overdue_events_do_not_stop_the_sources() -> None:
    """Small chunks wait in event-time order: what is counted is their events."""
    app = ms.App("chunks", order="event-time")
    app.source("in", ts="ts", unit="us", lateness="1s", idle="1h")

    @app.update("in", limit=100)
    def count(event: ms.Event, slate: dict[str, int]) -> None:
        slate["count"] = slate.get("count", 0) + 1

    engine = InProcess(app.checked(), shards=1)
    for first in range(0, 120, 10):
        engine.batch([Event("in", n, "k", {}) for n in range(first, first + 10)])
    engine.batch([Event("in", 2_000_000, "k", {})])
    engine.batch([])
    assert engine.progress.waiting == 21
    assert engine.progress.pressure == pytest.approx(20 / 400)


def test_conservation_holds_for_a_function_that_is_added() -> None:
    """What was late or no event before a function was there is not among its deliveries."""
    app = ms.App("grows", order="event-time")
    app.source("in", key="k", ts="ts", unit="us", idle="1h")

    @app.update("in")
    def first(event: ms.Event, slate: dict[str, int]) -> None:
        slate["count"] = slate.get("count", 0) + 1

    engine = WithRefused(app.checked(), shards=1)
    for ts in (100, 200, 5):
        engine.batch([Event("in", ts, "k", {})])
    assert deliveries_to(engine.progress, "first") == (6, 2, 0, 0, 0, 3, 1)

    @app.update("in")
    def second(event: ms.Event, slate: dict[str, int]) -> None:
        slate["count"] = slate.get("count", 0) + 1

    more = WithRefused(
        app.checked(), shards=1, store=engine.store, progress=engine.progress, clock=engine.clock
    )
    more.batch([Event("in", 300, "k", {})])
    assert deliveries_to(more.progress, "second") == (2, 0, 0, 0, 1, 1, 0)


class WithRefused(InProcess):
    """Every batch brings a record, too, that is no event."""

    def _take_in(self, task: Task, beat: Any, events: Sequence[Event]) -> list[Intake]:
        intakes = super()._take_in(task, beat, events)
        intakes[0].take([{"no": "key"}], None, "file", lambda index: index + 1)
        return intakes


def test_a_queue_is_not_left_to_a_map(tmp_path: Path) -> None:
    """A queue is an update's: a map under the name of one would leave its events for ever."""

    def build(function: str) -> ms.App:
        app = ms.App("changed")
        app.source("in", ts="ts", unit="us")
        if function == "update":

            @app.update("in", "again", publishes="again", name="work", limit=1)
            def work(event: ms.Event, slate: dict[str, int]) -> None: ...

        else:

            @app.map("in", "again", publishes="again", name="work")
            def work_over(event: ms.Event) -> None: ...

        return app

    engine = InProcess(build("update").checked(), shards=1)
    engine.batch([Event("in", n, "k", {}) for n in range(3)])
    assert engine.progress.held == 2
    assert engine.store is not None
    home = Home.make(tmp_path / "store", "changed", 1, {})
    home.know_functions(["work"])
    check_continues(build("update").checked(), home, engine.store, engine.progress)
    with pytest.raises(StoreError, match="events wait for 'work'"):
        check_continues(build("map").checked(), home, engine.store, engine.progress)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"limit": 0}, "limit must be a whole number of events, 1 or more; got 0"),
        ({"overload": "drop"}, "limit must say past how many events it is to drop"),
        ({"limit": 5, "overload": "burn"}, "overload must be one of drop, divert, throttle"),
        ({"limit": 5, "overload": "divert"}, "overflow must name the stream"),
        ({"limit": 5, "overflow": "x"}, "overflow must be left out"),
    ],
)
def test_what_does_not_go_together_is_refused(how: dict[str, Any], words: str) -> None:
    """A limit, a policy and an overflow stream are checked when the application is built."""
    app = ms.App("wrong")
    app.source("in")
    with pytest.raises(ms.DefinitionError, match=words):

        @app.update("in", **how)
        def count(event: ms.Event, slate: dict[str, int]) -> None: ...


def test_an_overflow_must_not_lead_back() -> None:
    """What an update could not take must not come to it again, by whatever way."""
    app = ms.App("round")
    app.source("in")

    @app.update("in", "again", limit=5, overload="divert", overflow="too_many")
    def count(event: ms.Event, slate: dict[str, int]) -> None: ...

    @app.map("too_many", publishes="again")
    def back(event: ms.Event) -> Any:
        yield ms.emit()

    with pytest.raises(ms.DefinitionError, match="its overflow 'too_many' leads back to it"):
        app.checked()


def _sum(data: bytes) -> int:
    return _field(data, "sum")


def _field(data: bytes, name: str) -> int:
    import json

    return int(json.loads(data)[name])


def _queues(engine: InProcess) -> list[bytes]:
    """The rows of queues that are left."""
    assert engine.store is not None
    left = []
    for number in range(engine.shards):
        with engine.store.shard(number).at(engine.progress.batch) as view:
            for name in ("fold", "last"):
                start = queue_directory(name)
                left += [row for row, _ in view.scan(start, start + b"\xff")]
    return left
