"""Past its limit an update drops, diverts or throttles; every delivery is accounted for.

`InProcess.batch` checks after each batch that what was taken in is processed, dropped, diverted,
waiting, a dead letter or late, for every function.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from engine.disturbed import Retried
from engine.folding import (
    LANES,
    ORDERS,
    as_events,
    batches,
    field_of,
    folding,
    meant,
    queues_of,
    run,
    slates,
    sum_of,
)
from engine.in_process import InProcess
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.driver.startup.compatibility import check_continues
from millstream.engine.horizon import Lane, is_due, pressure_of
from millstream.engine.intake import Intake
from millstream.engine.layers import Task
from millstream.errors import StoreError
from millstream.model.event import Event
from millstream.model.workflow import Order
from millstream.stores.function_counts import FunctionCounts
from millstream.stores.home import Home


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
        found = {key: sum_of(data) for key, data in slates(engine, update).items()}
        assert found == {k: sum_of(v) for (u, k), v in wanted.items() if u == update}
    assert engine.progress.pending.held == engine.progress.waiting == 0
    assert queues_of(engine) == []


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
    assert len(dropped) == engine.progress.counts("fold").dropped
    for event in dropped:
        events.remove(event._replace(stream="in", ts=event.ts - 1))
    wanted = meant(app, events)
    found = {key: sum_of(data) for key, data in slates(engine, "fold").items()}
    assert found == {k: sum_of(v) for (u, k), v in wanted.items() if u == "fold"}


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
    assert len(overflow) == engine.progress.counts("fold").diverted
    counted = sum(field_of(data, "count") for data in slates(engine, "degraded").values())
    assert counted == len(overflow)
    main = engine.progress.counts("fold")
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
    counted = sum(field_of(data, "count") for data in slates(engine, "flood").values())
    assert counted == 10_001


def test_pressure_rises_with_what_waits() -> None:
    """The fuller the room for throttled events, the less a batch takes: at four batches' worth,
    nothing."""
    app = folding("arrival", 10)
    engine = InProcess(app.checked(), shards=1)
    engine.batch([Event("in", n, "k", {"n": 1, "ts": n}) for n in range(30)])
    assert engine.progress.pending.pressure == pytest.approx(20 / 40)
    engine.batch([Event("in", n, "k", {"n": 1, "ts": n}) for n in range(30, 90)])
    assert engine.progress.pending.pressure == 1.0
    engine.settle(final=False)
    assert engine.progress.pending.pressure == 0.0


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
    assert progress.pending.pressure == 1.0
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
    assert engine.progress.pending.pressure == pytest.approx(20 / 400)


def test_conservation_holds_for_a_function_that_is_added() -> None:
    """Late and invalid records from before a function existed are not among its deliveries."""
    app = ms.App("grows", order="event-time")
    app.source("in", key="k", ts="ts", unit="us", idle="1h")

    @app.update("in")
    def first(event: ms.Event, slate: dict[str, int]) -> None:
        slate["count"] = slate.get("count", 0) + 1

    engine = WithRefused(app.checked(), shards=1)
    for ts in (100, 200, 5):
        engine.batch([Event("in", ts, "k", {})])
    first_counts = FunctionCounts(taken=6, processed=2, refused=3, late=1)
    assert outcomes(engine.progress.counts("first")) == outcomes(first_counts)

    @app.update("in")
    def second(event: ms.Event, slate: dict[str, int]) -> None:
        slate["count"] = slate.get("count", 0) + 1

    more = WithRefused(
        app.checked(), shards=1, store=engine.store, progress=engine.progress, clock=engine.clock
    )
    more.batch([Event("in", 300, "k", {})])
    second_counts = FunctionCounts(taken=2, processed=1, refused=1)
    assert outcomes(more.progress.counts("second")) == outcomes(second_counts)


def outcomes(counts: FunctionCounts) -> tuple[int, ...]:
    """The deliveries that a function was owed, and what became of them."""
    return (
        *(counts.taken, counts.processed, counts.dropped, counts.diverted, counts.undecided),
        *(counts.dead_letters, counts.late, counts.retried, counts.residual),
    )


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
    assert engine.progress.pending.held == 2
    assert engine.store is not None
    home = Home.make(tmp_path / "store", "changed", 1, {})
    home.know_functions(["work"])
    check_continues(build("update").checked(), home, engine.store, engine.progress, {})
    with pytest.raises(StoreError, match="events wait for 'work'"):
        check_continues(build("map").checked(), home, engine.store, engine.progress, {})


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ({"limit": 0}, "limit must be a whole number of events, 1 or more; got 0"),
        ({"overload": "drop"}, "limit must say past how many events it is to drop"),
        ({"limit": 5, "overload": "burn"}, "overload must be one of drop, divert, throttle"),
        ({"limit": 5, "overload": "divert"}, "overflow must name the stream"),
        ({"limit": 5, "overflow": "x"}, "overflow must be left out"),
        ({"limit": 5, "immediate": True}, "limit must be left out: an immediate update holds no"),
        ({"immediate": 1}, "immediate must be True or False; got 1"),
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
    """An event that an update could not take must not reach it again on any path."""
    app = ms.App("round")
    app.source("in")

    @app.update("in", "again", limit=5, overload="divert", overflow="too_many")
    def count(event: ms.Event, slate: dict[str, int]) -> None: ...

    @app.map("too_many", publishes="again")
    def back(event: ms.Event) -> Any:
        yield ms.emit()

    with pytest.raises(ms.DefinitionError, match="its overflow 'too_many' leads back to it"):
        app.checked()
