"""Slates over the limit: the event is a dead letter with every runner and any batches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from engine.in_process import InProcess
from engine.outcome import of_engine, of_reference
from hypothesis import given
from hypothesis import strategies as st
from progress_counts import by_function

import millstream as ms
from millstream.engine.cells.feeder import CLOSELY
from millstream.engine.horizon import Lane
from millstream.model.event import Event
from millstream.model.workflow import Order
from millstream.stores.function_counts import LARGE_BATCHES, Large

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
Op = tuple[str, str, int]
"""(the operation, its field or entry, the number of characters)."""


@dataclass
class Fields:
    """A dataclass slate."""

    a: str = ""
    b: list[str] = field(default_factory=list)


def put_dict(event: Event, slate: dict[str, Any]) -> Iterator[Any]:
    """Set, add to, or delete an entry of a dict; or forget it."""
    what, name, size = event.value
    if what == "drop":
        slate.pop(name, None)
    elif what == "grow":
        slate.setdefault("list", []).append("x" * size)
    else:
        slate[name] = "x" * size
    yield ms.emit(value=sorted(slate))
    if what == "forget":
        yield ms.forget()


def put_fields(event: Event, slate: Fields) -> Iterator[Any]:
    """The same with a dataclass."""
    what, name, size = event.value
    if what == "drop":
        slate.a, slate.b = "", []
    elif what == "grow" or name == "b":
        slate.b.append("x" * size)
    else:
        slate.a = "x" * size
    yield ms.emit(value=len(slate.b))
    if what == "forget":
        yield ms.forget()


def put_table(event: Event, slate: ms.Table) -> Iterator[Any]:
    """The same with a table, whose entries count one by one."""
    what, name, size = event.value
    if what == "drop":
        slate.discard(name)
    else:
        slate["list" if what == "grow" else name] = "x" * size
    yield ms.emit(value=[entry for entry, _ in slate.scan()])
    if what == "forget":
        yield ms.forget()


def with_timer(update: Any) -> Any:
    """The update, which also asks to do the same again to another field a little later."""

    def timed(event: Event, slate: Any) -> Iterator[Any]:
        yield from update(event, slate)
        yield ms.timer(f"{event.value[1]}:{event.value[2]}", at=event.ts + 7)

    def later(timer: Any, slate: Any) -> Iterator[Any]:
        name, size = timer.name.split(":")
        given = Event("s", timer.ts, timer.key, ("grow", name, int(size)))
        yield from update(given, slate)

    return timed, later


UPDATES = {"dict": (put_dict, dict), "fields": (put_fields, Fields), "table": (put_table, ms.Table)}


def app_of(order: Order, limit: int, *, timers: bool = False, **given: Any) -> ms.App:
    """An application with an update of each kind of slate over one source."""
    app = ms.App("sized", order=order, slate_limit=limit, **given)
    app.source("s", lateness="1d")
    app.output("out")
    for name, (function, slate) in UPDATES.items():
        called, later = with_timer(function) if timers else (function, None)
        app.update("s", name=name, publishes="out", slate=slate, on_timer=later)(called)
    return app


def events_of(ops: list[tuple[str, Op]]) -> list[Event]:
    return [Event("s", 10 * at, key, list(op)) for at, (key, op) in enumerate(ops, 1)]


def run(app: ms.App, events: list[Event], cuts: list[int], lane: Lane) -> InProcess:
    """Run the events in batches that end where the cuts say."""
    engine = InProcess(app.workflow(), lane=lane)
    bounds = [0, *sorted(cut % (len(events) + 1) for cut in cuts), len(events)]
    for start, stop in pairwise(bounds):
        engine.batch(events[start:stop])
    engine.settle(final=True)
    return engine


def check(engine: InProcess, events: list[Event]) -> None:
    """Checks that the engine gives the reference's result, and that events fail only over the
    limit."""
    assert of_engine(engine) == of_reference(engine.workflow, events, engine.shards)
    assert all("slate_limit" in letter["error"] for letter in engine.letters)


keys = st.sampled_from("kl")
orders = st.sampled_from(("arrival", "event-time"))
lanes = st.sampled_from(("one-task", "shuffled"))
batches = st.lists(st.integers(0, 1000), max_size=4)
sizes = st.one_of(st.integers(0, 60), st.integers(0, 700))
whats = st.sampled_from(("put", "put", "grow", "drop", "forget"))
ops = st.tuples(whats, st.sampled_from("ab"), sizes)


@given(st.lists(st.tuples(keys, ops), max_size=25), batches, st.integers(20, 700), orders, lanes)
def test_a_small_limit_is_held_as_the_reference_holds_it(
    given: list[tuple[str, Op]], cuts: list[int], limit: int, order: Order, lane: Lane
) -> None:
    """The same dead letters and slates, whatever the batches, also of slates that shrink again."""
    events = events_of(given)
    check(run(app_of(order, limit), events, cuts, lane), events)


@given(st.lists(st.tuples(keys, ops), max_size=15), batches, st.integers(20, 700), lanes)
def test_timers_that_take_a_slate_over_the_limit_fail(
    given: list[tuple[str, Op]], cuts: list[int], limit: int, lane: Lane
) -> None:
    """The limit holds for slates after timers as it does after events."""
    events = events_of(given)
    check(run(app_of("event-time", limit, timers=True), events, cuts, lane), events)


growing = st.tuples(st.just("grow"), st.just("b"), st.integers(200, 2_500))


@given(
    st.lists(st.tuples(keys, growing), max_size=25),
    batches,
    st.integers(CLOSELY + 1, 9_000),
    orders,
    lanes,
    st.booleans(),
)
def test_a_larger_limit_is_held_for_slates_that_grow(
    given: list[tuple[str, Op]],
    cuts: list[int],
    limit: int,
    order: Order,
    lane: Lane,
    timers: bool,
) -> None:
    """A slate that is looked at only after its last event of a batch has the same verdicts."""
    events = events_of(given)
    app = app_of("event-time" if timers else order, limit, timers=timers)
    check(run(app, events, cuts, lane), events)


def test_the_slate_stays_as_it_was_and_the_letter_says_what_to_do() -> None:
    """The event before counts, the one that is too much does not, the one after does."""
    app = app_of("arrival", 40)
    ran = ms.testing.run(
        app, events_of([("k", ("put", "a", 5)), ("k", ("put", "b", 50)), ("k", ("put", "b", 1))])
    )
    assert ran.slate("dict", "k") == {"a": "xxxxx", "b": "x"}
    assert [letter.error for letter in ran.dead_letters if letter.function == "dict"] == [
        "FunctionError: slate of 70 bytes would be over the limit of 40 bytes (slate_limit); keep "
        "less in it, or use a table"
    ]


def test_a_table_may_be_large_if_its_entries_are_not() -> None:
    """Each entry counts alone."""
    app = app_of("arrival", 40)
    events = events_of([("k", ("put", f"e{n}", 30)) for n in range(20)])
    ran = ms.testing.run(app, events)
    assert len(ran.slate("table", "k")) == 20
    assert not [letter for letter in ran.dead_letters if letter.function == "table"]


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
def test_the_largest_slate_over_the_soft_limit_is_reported(lane: Lane) -> None:
    """One slate is reported for each update, with its key, its bytes and its batch. It is removed
    if it is not seen again."""
    app = app_of("arrival", 100_000, slate_warn=1_000)
    sizes = {"k": 3_000, "l": 5_000, "m": 10}
    events = events_of([(key, ("put", "a", size)) for key, size in sizes.items()])
    engine = run(app, events, [], lane)
    assert by_function(engine.progress.functions, "large") == {
        "dict": Large("l", 5_008, 0),
        "fields": Large("l", 5_015, 0),
        "table": Large("l", 5_002, 0),
    }
    engine.batch(
        [Event("s", 1_000, "l", ["drop", "a", 0]), Event("s", 1_001, "k", ["put", "a", 1])]
    )
    assert set(by_function(engine.progress.functions, "large")) == {"dict", "fields", "table"}
    for _ in range(LARGE_BATCHES):
        engine.batch([])
    assert by_function(engine.progress.functions, "large") == {}
