"""Slates in the reference: whose they are, how they go and expire."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from reference_apps import an_app, fed, keep

import millstream as ms
from millstream import Event


def test_each_update_and_key_has_its_own_slate() -> None:
    """A slate belongs to (update, key)."""
    app = an_app()
    keep(app, "a", name="one")
    keep(app, "a", name="two")
    run = ms.testing.run(app, [("a", 1, "x", 1), ("a", 2, "y", 2)])
    assert fed(run, "x", "one") == fed(run, "x", "two") == [["a", 1, 1]]
    assert fed(run, "y", "one") == [["a", 2, 2]]


def test_a_slate_is_kept_in_its_decoded_form() -> None:
    """Between events a slate has the form that JSON gives it: a tuple becomes a list."""
    app = an_app()

    @app.update("a")
    def last(event: Event, slate: dict[str, Any]) -> None:
        slate["types"] = [*slate.get("types", []), type(slate.get("pair")).__name__]
        slate["pair"] = (1, 2)

    run = ms.testing.run(app, [("a", 1, "k", 0), ("a", 2, "k", 0)])
    assert run.slate("last", "k") == {"pair": [1, 2], "types": ["NoneType", "list"]}


def test_forget_deletes_the_slate_and_its_timers() -> None:
    """The next event finds a fresh slate, and no timer of the old one fires."""
    app = an_app()
    app.output("out")

    @app.update("a", publishes="out")
    def count(event: Event, slate: dict[str, int]) -> Iterator[object]:
        slate["n"] = slate.get("n", 0) + 1
        if event.value == "timer":
            yield ms.timer(after="10us")
        if event.value == "forget":
            yield ms.forget()
            yield ms.emit(value=slate["n"])
            slate["n"] = 100

    @count.on_timer
    def fired(timer: ms.Timer, slate: dict[str, int]) -> Iterator[object]:
        yield ms.emit(value="fired")

    run = ms.testing.run(app, [("a", 1, "k", "timer"), ("a", 2, "k", "forget")])
    assert run.slate("count", "k") is None
    assert run.slates("count") == {}
    run.feed([("a", 3, "k", None), ("a", 99, "other", None)])
    assert run.slate("count", "k") == {"n": 1}
    assert [event.value for event in run.stream("out")] == [2]


def test_a_timer_function_may_forget() -> None:
    """forget() in a timer function deletes the slate as well."""
    app = an_app()

    @app.update("a")
    def count(event: Event, slate: dict[str, int]) -> Iterator[object]:
        yield ms.timer(after="1us")

    @count.on_timer
    def fired(timer: ms.Timer, slate: dict[str, int]) -> Iterator[object]:
        yield ms.forget()

    run = ms.testing.run(app, [("a", 1, "k", 0), ("a", 9, "z", 0)])
    assert list(run.slates("count")) == ["z"]


@pytest.mark.parametrize(("gap", "count"), [(10, 2), (11, 1)])
def test_a_slate_expires_when_more_than_its_ttl_has_passed(gap: int, count: int) -> None:
    """Exactly the ttl after the last update the slate still lives; after that it is fresh."""
    app = an_app()

    @app.update("a", ttl="10us")
    def counting(event: Event, slate: dict[str, int]) -> None:
        slate["n"] = slate.get("n", 0) + 1

    run = ms.testing.run(app, [("a", 100, "k", 0), ("a", 100 + gap, "k", 0)])
    assert run.slate("counting", "k") == {"n": count}


def test_every_event_that_updates_a_slate_prolongs_it() -> None:
    """The ttl counts from the greatest time that updated the slate, not from the first."""
    app = an_app()

    @app.update("a", ttl="10us")
    def counting(event: Event, slate: dict[str, int]) -> None:
        slate["n"] = slate.get("n", 0) + 1

    run = ms.testing.run(app, [("a", ts, "k", 0) for ts in (1, 10, 19, 28)])
    assert run.slate("counting", "k") == {"n": 4}
    run.feed([("a", 5, "k", 0), ("a", 38, "k", 0)])  # 5 is old: it does not set the time back
    assert run.slate("counting", "k") == {"n": 6}


def test_timers_die_with_an_expired_slate() -> None:
    """A timer later than the slate's end does not fire, whether or not an event came first."""
    app = an_app()
    app.output("out")

    @app.update("a", publishes="out", ttl="10us")
    def count(event: Event, slate: dict[str, int]) -> Iterator[object]:
        if event.value:
            yield ms.timer(after=event.value)

    @count.on_timer
    def fired(timer: ms.Timer, slate: dict[str, int]) -> Iterator[object]:
        yield ms.emit(value=timer.ts)

    events = [
        ("a", 100, "in_time", "10us"),
        ("a", 100, "too_late", "11us"),
        ("a", 100, "fresh_before", "30us"),
        ("a", 120, "fresh_before", None),
        ("a", 200, "end", None),
    ]
    run = ms.testing.run(app, events)
    assert [(e.key, e.value) for e in run.stream("out")] == [("in_time", 110)]


def test_a_timer_does_not_keep_a_slate_alive() -> None:
    """A timer may change a slate, but the ttl goes on counting from the last event."""
    app = an_app()

    @app.update("a", ttl="10us")
    def count(event: Event, slate: dict[str, int]) -> Iterator[object]:
        slate["n"] = slate.get("n", 0) + 1
        yield ms.timer(after="8us")

    @count.on_timer
    def fired(timer: ms.Timer, slate: dict[str, int]) -> None:
        slate["n"] += 100

    run = ms.testing.run(app, [("a", 1, "k", 0), ("a", 11, "k", 0), ("a", 99, "z", 0)])
    assert run.slate("count", "k") == {"n": 202}, "11 is within 10 of 1, and finds the timer's work"
    run = ms.testing.run(app, [("a", 1, "k", 0), ("a", 12, "k", 0), ("a", 99, "z", 0)])
    assert run.slate("count", "k") == {"n": 101}, "12 is not, though the timer fired at 9"


def test_tables_keep_their_entries() -> None:
    """A table's entries are kept between events, changed and deleted one by one."""
    app = an_app()

    @app.update("a", slate=ms.Table)
    def note(event: Event, slate: ms.Table) -> None:
        for name, value in event.value.items():
            if value is None:
                slate.discard(name)
            else:
                slate[name] = value
        slate["size"] = sum(1 for _ in slate.scan("n", "o"))

    run = ms.testing.run(app, [("a", 1, "k", {"n2": 2, "n1": 1}), ("a", 2, "k", {"n2": None})])
    assert run.slate("note", "k") == {"n1": 1, "size": 1}
