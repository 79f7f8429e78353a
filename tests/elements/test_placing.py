"""Where an element is placed: its streams, when `output` is called, how long it lives."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from elements.both import check_engine_is_reference, cuttings, lanes
from elements.told import Told, out, placed, refused, sale
from engine.in_process import InProcess
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.elements import Count, Top
from millstream.engine.horizon import Lane
from millstream.model.event import Event
from millstream.model.function import Map, Update

SECOND = 1_000_000


def test_a_memoryless_element_is_a_map() -> None:
    """No fields, no schedule, no timers: no shuffle; it emits under its key, or another."""

    class Shout(ms.Element):
        def process_event(self, event: Event) -> Iterator[Any]:
            yield ms.emit(value=[self.key, event.key, self.time])
            yield ms.emit(key="all", value=event.value["n"])

    app = placed(Shout(), publishes="out")
    (function,) = app.checked().functions
    assert isinstance(function, Map)
    run = ms.testing.run(app, [sale(5, n=1)])
    assert [(e.key, e.value) for e in run.stream("out")] == [("all", 1), ("pen", ["pen", "pen", 5])]


def test_a_wrong_key_is_not_taken_for_the_elements_own() -> None:
    """A map that emits a key that is no text is a dead letter, as everywhere."""

    class Numbers(ms.Element):
        def process_event(self, event: Event) -> Iterator[Any]:
            yield ms.emit(key=5)

    run = ms.testing.run(placed(Numbers(), publishes="out"), [sale(1)])
    assert "emitted key must be text; got int 5" in run.dead_letters[0].error


def test_a_keyless_element_takes_all_events() -> None:
    """With "*" there is one, whose key is empty."""
    run = ms.testing.run(
        placed(Told(), keys={"sales": "*"}), [sale(1, "pen"), sale(2, "cup"), sale(3, "hat")]
    )
    assert {key: len(slate.heard) for key, slate in run.slates("one").items()} == {"": 3}


def test_several_event_types_each_with_its_own_attribute() -> None:
    """The element sees the stream that it named, whichever attribute the key came from."""
    keys = {"sales": "item", "returns": ["shop", "thing"], "views": "@key", "visits": "*"}
    app = placed(Told(), sources="sales returns views visits", keys=keys)
    events = [
        sale(1, "pen", "a"),
        Event("returns", 2, "", {"shop": 1, "thing": "pen", "n": "b"}),
        Event("views", 3, "pen", {"n": "c"}),
        Event("visits", 4, "", {"n": "d"}),
    ]
    slates = ms.testing.run(app, events).slates("one")
    assert {key: slate.heard for key, slate in slates.items()} == {
        "": ["visits d"],
        "1|pen": ["returns b"],
        "pen": ["sales a", "views c"],
    }


def test_output_every_so_often() -> None:
    """At the end of each slot of time, also of one without new events, and before the next one's
    events; a key has none before its first event."""
    app = placed(Told(), every="10s", publishes="out")
    at = [1 * SECOND, 9 * SECOND, 10 * SECOND - 1, 35 * SECOND]
    run = ms.testing.run(app, [sale(ts, n=n) for n, ts in enumerate(at)])
    told = [(time // SECOND, [one[-1] for one in heard]) for _, time, heard in out(run)]
    assert told == [(10, ["0", "1"]), (20, ["0", "1", "2"]), (30, ["0", "1", "2"])]
    assert {event.ts for event in run.stream("out")} == {10 * SECOND, 20 * SECOND, 30 * SECOND}


def test_times_before_1970() -> None:
    """Slots are counted on both sides of zero, and zero is a time like another."""
    app = placed(Told(), every="10s", publishes="out")
    run = ms.testing.run(app, [sale(ts * SECOND) for ts in (-15, -5, 1, 11)])
    assert [time // SECOND for _, time, _ in out(run)] == [-10, 0, 10]
    assert [len(heard) for _, _, heard in out(run)] == [1, 2, 3]


def test_output_every_so_many_events() -> None:
    """The events are counted by key. With 1, each event triggers it. `time` is the event's."""
    events = [sale(ts, item) for ts, item in enumerate(["pen", "cup", "pen", "pen", "pen", "cup"])]
    run = ms.testing.run(placed(Told(), every_events=2, publishes="out"), events)
    assert [(key, time, len(heard)) for key, time, heard in out(run)] == [
        ("pen", 3, 2),
        ("pen", 5, 4),
        ("cup", 6, 2),
    ]
    run = ms.testing.run(placed(Told(), every_events=1, publishes="out"), events)
    assert len(out(run)) == 6


def test_output_after_fewer_events_than_a_key_has_had() -> None:
    """every_events may be made less between runs: a key that has had more gives out at its next."""
    first = InProcess(placed(Told(), every_events=5, publishes="out").checked(), shards=1)
    first.batch([sale(ts) for ts in range(4)])
    second = InProcess(
        placed(Told(), every_events=2, publishes="out").checked(),
        shards=1,
        store=first.store,
        progress=first.progress,
    )
    second.attempts = 100
    second.batch([sale(ts) for ts in range(4, 7)])
    assert [len(event.value[2]) for event in second.streams["out"]] == [5, 7]


def test_output_by_time_and_by_events() -> None:
    """Both may be asked for."""
    app = placed(Told(), every="10s", every_events=2, publishes="out")
    run = ms.testing.run(app, [sale(ts * SECOND) for ts in (1, 2, 3, 11)])
    assert [len(heard) for _, _, heard in out(run)] == [2, 3, 4]


def test_output_by_the_wall_clock() -> None:
    """Counted from the key's first event, with no new events too; `time` is the clock's."""
    app = placed(Told(), every="10s", clock="wall", publishes="out")
    run = ms.testing.run(app, [sale(1)], clock=100 * SECOND)
    run.tick(by="9s")
    assert out(run) == []
    run.tick(by="1s").tick(by="10s").tick(by="3s")
    assert [time // SECOND for _, time, _ in out(run)] == [110, 120]


@pytest.mark.parametrize("clock", ["event", "wall"])
def test_an_output_that_fails_is_called_again(clock: Any) -> None:
    """The failure is a dead letter; the schedule goes on with the key's next event, or with the
    clock."""
    app = placed(Told(), every="10s", clock=clock, publishes="out")
    run = ms.testing.run(app, [sale(1 * SECOND, n="bad")])
    for ts in (21, 31):
        run.tick(by="10s").feed([sale(ts * SECOND, n="good")])
    run.tick(by="10s")
    assert [letter.timer for letter in run.dead_letters] == [":output"]
    assert "ValueError: bad (" in run.dead_letters[0].error
    assert "in output)" in run.dead_letters[0].error
    counts = [len(heard) for _, _, heard in out(run)]
    assert counts == ([2] if clock == "event" else [2, 3])


def test_time_to_live() -> None:
    """An element that hears nothing for so long is gone, its outputs with it."""
    app = placed(Told(), every="10s", ttl="15s", publishes="out")
    run = ms.testing.run(app, [sale(ts * SECOND, n=ts) for ts in (1, 100)])
    assert [time // SECOND for _, time, _ in out(run)] == [10]
    assert run.slate("one", "pen").heard == ["sales 100"]


def test_own_timers() -> None:
    """Timers that a method sets are handled by `on_timer`, besides the timer of `output`."""

    @dataclass
    class Alarm(Count):
        def process_event(self, event: Event) -> Iterator[Any]:
            self.count += 1
            yield ms.timer(after="3s", name="alarm")

        def on_timer(self, timer: ms.Timer) -> Iterator[Any]:
            yield ms.emit(value=[timer.name, self.key, self.time, self.count])
            self.count = 0

    app = placed(Alarm(), every="10s", publishes="out")
    run = ms.testing.run(app, [sale(ts * SECOND) for ts in (1, 2, 11)])
    assert out(run) == [["alarm", "pen", 5 * SECOND + 1, 2], {"key": "pen", "count": 0}]


def test_forget() -> None:
    """An element may end itself; the next event of its key finds a new one."""

    @dataclass
    class Twice(Count):
        def output(self) -> Iterator[Any]:
            yield ms.emit(value=self.count)
            yield ms.forget()

    run = ms.testing.run(
        placed(Twice(), every_events=2, publishes="out"), [sale(n) for n in range(5)]
    )
    assert out(run) == [2, 2]
    assert run.slate("one", "pen").count == 1


def test_publish_goes_to_an_output() -> None:
    """`publish=` declares the output that `self.publish` puts values into, under the key."""

    @dataclass
    class Publishes(Count):
        def output(self) -> Iterator[Any]:
            yield self.publish(self.count)
            yield ms.emit("out", value="emitted")

    app = placed(Publishes(), every_events=1, publish="store", publishes="out")
    run = ms.testing.run(app, [sale(1), sale(2)])
    assert app.checked().outputs == ("out", "store")
    assert [(event.key, event.value) for event in run.stream("store")] == [("pen", 1), ("pen", 2)]
    assert out(run) == ["emitted"] * 2


def test_what_an_update_can_be_told_an_element_can() -> None:
    """Its limits and its room are those of the update that it is."""
    app = placed(Count(), limit=10, overload="drop", keep=5, memory="1MiB", ttl="1h")
    update = app.checked().update("one")
    assert isinstance(update, Update)
    assert (update.limit, update.overload, update.keep) == (10, "drop", 5)
    assert (update.memory, update.ttl) == (1 << 20, 3600 * SECOND)


def test_the_name_is_the_class_unless_it_is_given() -> None:
    """And the streams of its keys are named after it."""
    app = ms.App("shop")
    app.source("sales")
    app.add(Count(), keys={"sales": "item"})
    assert [one.name for one in app.checked().functions] == ["Count.keys", "Count"]
    assert "Count.sales" in app.checked().streams


@pytest.mark.parametrize(
    ("element", "made"), [(Count(), "one.sales"), (Top(), "one.items"), (Top(), "one.lists")]
)
def test_the_streams_that_it_makes_are_its_own(element: Any, made: str) -> None:
    """A source or another function of that name would feed it events that are not for it."""
    message = f"element 'one' makes the stream {made!r}, which exists already; give the element"
    assert message in refused(element, sources=f"sales {made}")
    app = ms.App("shop")
    app.source("sales")
    app.map("sales", publishes=made, name="other")(lambda event: None)
    with pytest.raises(ms.DefinitionError, match=re.escape(message)):
        app.add(element, keys={"sales": "item"}, name="one")


def test_two_elements_do_not_share_a_stream() -> None:
    """Dots in names could make the same name of two: then the second is refused."""
    app = ms.App("shop")
    app.source("b.c")
    app.source("c")
    app.add(Count(), keys={"b.c": "item"}, name="a")
    with pytest.raises(ms.DefinitionError, match=r"element 'a\.b' makes the stream 'a\.b\.c'"):
        app.add(Count(), keys={"c": "item"}, name="a.b")


@dataclass
class Moody(Told):
    """Fails now and then, ends itself, and sets timers of its own."""

    def process_event(self, event: Event) -> Iterator[Any]:
        super().process_event(event)
        match event.value["n"]:
            case 0:
                raise ValueError("zero")
            case 1:
                yield ms.emit(value="one")
            case 2:
                yield ms.timer(after="3us", name="own")
            case 3:
                yield ms.forget()

    def output(self) -> Iterator[Any]:
        if len(self.heard) % 5 == 4:
            raise ValueError("four")
        yield ms.emit(value=[self.key, self.time, len(self.heard)])

    def on_timer(self, timer: ms.Timer) -> Iterator[Any]:
        self.heard.append("timer")
        yield ms.emit(value=[timer.name, self.time])


events = st.lists(
    st.builds(
        sale,
        ts=st.integers(-5, 60),
        item=st.sampled_from(["pen", "cup"]),
        n=st.integers(0, 6),
        stream=st.sampled_from(["sales", "returns"]),
    ),
    max_size=25,
)


@settings(max_examples=examples(60))
@given(
    events=events,
    every=st.sampled_from([None, "2us", "7us", "10us"]),
    every_events=st.sampled_from([None, 1, 3]),
    ttl=st.sampled_from([None, "12us"]),
    keyless=st.booleans(),
    cuts=cuttings,
    shards=st.integers(1, 4),
    lane=lanes,
)
def test_the_engine_gives_what_the_reference_gives(
    events: list[Event],
    every: str | None,
    every_events: int | None,
    ttl: str | None,
    keyless: bool,
    cuts: list[int],
    shards: int,
    lane: Lane,
) -> None:
    """With any schedule, time-to-live, failures, timers and forgetting; any batches, shards and
    lane."""
    app = placed(
        Moody(),
        order="event-time",
        sources="sales returns",
        keys={"sales": "*" if keyless else "item", "returns": "item"},
        every=every,
        every_events=every_events,
        ttl=ttl,
        publishes="out",
    )
    check_engine_is_reference(app, events, cuts, shards, lane)


def test_a_wrong_clock_does_not_call_output_for_ever() -> None:
    """After a thousand slots without an event `output` rests; the next event wakes it."""
    app = ms.App("rests")
    app.source("clicks", ts="ts", unit="s")
    app.output("counts")
    app.add(ms.elements.Count(), name="n", keys="clicks", every="1s", publishes="counts")
    run = ms.testing.run(app, {"clicks": [{"ts": 0}, {"ts": 10**9}, {"ts": 10**9 + 5}]})
    ends = [event.ts // 1_000_000 for event in run.stream("counts")]
    late = [10**9 + n for n in range(1, 6)]
    assert ends == [*range(1, 1_002), *late]
