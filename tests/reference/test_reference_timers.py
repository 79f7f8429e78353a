"""Timers in the reference, of event time and of the wall clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from reference_apps import SECOND, an_app, fed, keep

import millstream as ms
from millstream import Event


def timers(log: list[Any], **settings: Any) -> ms.App:
    """An update that does what its event says, and logs events and timers as they come."""
    app = an_app()
    app.output("out")

    @app.update("a", publishes="out", **settings)
    def act(event: Event, slate: dict[str, Any]) -> Iterator[object]:
        log.append(("event", event.ts))
        for arguments in event.value or ():
            yield ms.timer(**arguments)

    @act.on_timer
    def fired(timer: ms.Timer, slate: dict[str, Any]) -> Iterator[object]:
        log.append((timer.name, timer.ts))
        yield ms.emit(value=timer.name)

    return app


def test_a_timer_fires_after_the_events_of_its_time() -> None:
    """A timer at T comes after all events up to T and before the next one."""
    log: list[Any] = []
    events = [("a", 1, "k", [{"at": 5, "name": "t"}]), ("a", 5, "k", None), ("a", 6, "k", None)]
    run = ms.testing.run(timers(log), events)
    assert log == [("event", 1), ("event", 5), ("t", 5), ("event", 6)]
    assert run.stream("out") == [Event("out", 6, "k", "t")]


def test_a_timer_of_the_present_time_fires_after_the_events_of_that_time() -> None:
    """An update may set a timer for its own time."""
    log: list[Any] = []
    now = [{"after": "0s", "name": "now"}]
    ms.testing.run(timers(log), [("a", 1, "k", now), ("a", 1, "k", [])])
    assert log == [("event", 1), ("event", 1), ("now", 1)]


def test_timers_past_the_last_event_do_not_fire() -> None:
    """Time goes only as far as the events; when more come, the timer fires."""
    log: list[Any] = []
    run = ms.testing.run(timers(log), [("a", 1, "k", [{"after": "4us", "name": "t"}])])
    assert log == [("event", 1)]
    run.feed([("a", 4, "z", None)])
    assert ("t", 5) not in log
    run.feed([("a", 5, "z", None)])
    assert log[-1] == ("t", 5)


def test_a_timer_may_be_moved() -> None:
    """Setting a timer of the same name moves it, later or sooner, and back; it fires once."""
    for moves, fires in (([30], 30), ([4], 4), ([30, 10], 10), ([10], 10)):
        log: list[Any] = []
        events: list[Any] = [("a", 1, "k", [{"at": 10, "name": "t"}])]
        events += [("a", 2 + n, "k", [{"at": at, "name": "t"}]) for n, at in enumerate(moves)]
        ms.testing.run(timers(log), [*events, ("a", 99, "z", None)])
        assert [entry for entry in log if entry[0] == "t"] == [("t", fires)]


def test_timers_of_other_names_are_other_timers() -> None:
    """Names tell the timers of a key apart; at the same time they fire in order of name."""
    log: list[Any] = []
    both = [{"at": 5, "name": "b"}, {"at": 5, "name": "a"}, {"at": 3}]
    ms.testing.run(timers(log), [("a", 1, "k", both), ("a", 9, "z", None)])
    assert log == [("event", 1), ("", 3), ("a", 5), ("b", 5), ("event", 9)]


def test_a_timer_may_change_its_clock() -> None:
    """Under one name there is one timer: set on the wall clock, it leaves the event clock."""
    log: list[Any] = []
    first, then = [{"at": 5, "name": "t"}], [{"at": 70, "name": "t", "clock": "wall"}]
    run = ms.testing.run(timers(log), [("a", 1, "k", first), ("a", 2, "k", then), ("a", 9, "z", 0)])
    assert ("t", 5) not in log
    run.tick(70)
    assert log[-1] == ("t", 70)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"at": 4}, "timer at 4 must be at or after the current event time 5"),
        ({"at": 5.5}, "timer at must be whole microseconds or a datetime; got 5.5"),
        ({"at": 9, "after": "1s"}, "timer() takes either at= or after=, one of them"),
        ({}, "timer() takes either at= or after=, one of them"),
        ({"at": 9, "clock": "sun"}, "timer(clock=) must be 'event' or 'wall'; got 'sun'"),
        ({"at": 9, "name": 3}, "timer(name=) must be text; got int 3"),
        ({"after": "soon"}, "timer(after=) must be a duration such as"),
        ({"at": 6, "clock": "wall"}, "timer at 6 must be at or after the current wall time 7"),
    ],
)
def test_timers_that_break_a_rule(arguments: dict[str, Any], error: str) -> None:
    """A timer that cannot be set makes a dead letter that says why."""
    log: list[Any] = []
    run = ms.testing.run(timers(log), [("a", 5, "k", [arguments])], clock=7)
    assert error in run.dead_letters[0].error


def test_a_firing_timer_may_set_itself_again_only_later() -> None:
    """A periodic timer is one that sets itself again; for its own time it would never end."""
    app = an_app()
    app.output("out")

    @app.update("a", publishes="out")
    def start(event: Event, slate: dict[str, int]) -> Iterator[object]:
        slate["every"] = event.value
        yield ms.timer(after="10us")

    @start.on_timer
    def fired(timer: ms.Timer, slate: dict[str, int]) -> Iterator[object]:
        yield ms.emit(value=timer.ts)
        yield ms.timer(at=timer.ts + slate["every"])

    run = ms.testing.run(app, [("a", 1, "k", 10), ("a", 1, "stuck", 0), ("a", 35, "z", 10)])
    assert [event.value for event in run.stream("out")] == [11, 21, 31]
    (letter,) = run.dead_letters
    assert letter.error == (
        "FunctionError: timer at 11 must be later than the current event time 11"
    )


def test_what_a_timer_emits_is_later_than_the_timer() -> None:
    """The rule for emitted times holds for timers, whose own time is the input's."""
    app = an_app()
    app.output("out")

    @app.update("a", publishes="out")
    def start(event: Event, slate: dict[str, int]) -> Iterator[object]:
        slate["ts"] = event.value
        yield ms.timer(at=10)

    @start.on_timer
    def fired(timer: ms.Timer, slate: dict[str, int]) -> Iterator[object]:
        yield ms.emit(ts=slate["ts"])

    run = ms.testing.run(app, [("a", 1, "early", 10), ("a", 1, "fine", 11), ("a", 20, "z", 0)])
    assert run.stream("out") == [Event("out", 11, "fine", None)]
    assert "emitted ts 10 must be greater than its input's 10" in run.dead_letters[0].error


def test_what_a_timer_emits_moves_time_on() -> None:
    """Events that timers emit count as events: they let later timers fire."""
    app = an_app()

    @app.update("a", "b", publishes="b")
    def start(event: Event, slate: dict[str, int]) -> Iterator[object]:
        slate["fed"] = slate.get("fed", 0) + 1
        if event.stream == "a":
            yield ms.timer(after="1us", name="first")
            yield ms.timer(after="50us", name="second")

    @start.on_timer
    def fired(timer: ms.Timer, slate: dict[str, int]) -> Iterator[object]:
        slate[timer.name] = timer.ts
        if timer.name == "first":
            yield ms.emit(ts=60)

    run = ms.testing.run(app, [("a", 1, "k", 0), ("a", 2, "z", 0)])
    assert run.slate("start", "k") == {"fed": 2, "first": 2, "second": 51}
    assert run.slate("start", "z") == {"fed": 2, "first": 3, "second": 52}


def test_wall_timers_fire_when_the_clock_passes_them() -> None:
    """Events do not move the wall clock; ticking does, and each timer fires once."""
    log: list[Any] = []
    wall = [{"after": "10s", "name": "w", "clock": "wall"}]
    run = ms.testing.run(timers(log), [("a", 1, "k", wall), ("a", 10**15, "z", None)], clock=5)
    assert [entry for entry in log if entry[0] == "w"] == []
    run.tick(by="9s")
    assert [entry for entry in log if entry[0] == "w"] == []
    run.tick(by="1s")
    run.tick(by="1h")
    assert [entry for entry in log if entry[0] == "w"] == [("w", 10 * SECOND + 5)]


def test_wall_timers_fire_in_order_of_time() -> None:
    """A tick over many timers fires them by time, then update, key and name."""
    log: list[Any] = []
    events = [
        ("a", 1, "k", [{"at": 30, "name": "late", "clock": "wall"}]),
        ("a", 1, "j", [{"at": 20, "name": "early", "clock": "wall"}]),
        ("a", 1, "i", [{"at": 40, "name": "never", "clock": "wall"}]),
    ]
    run = ms.testing.run(timers(log), events).tick(39)
    assert log[3:] == [("early", 20), ("late", 30)]
    assert run.clock == 39


def test_what_a_wall_timer_emits_is_later_than_all_there_was() -> None:
    """The event is later than the timer and than every event so far. Each event is later than the
    previous one."""
    log: list[Any] = []
    wall = [{"at": 50, "name": "w", "clock": "wall"}, {"at": 60, "name": "x", "clock": "wall"}]
    run = ms.testing.run(timers(log), [("a", 1, "k", wall), ("a", 10, "z", None)]).tick(60)
    assert [(e.ts, e.value) for e in run.stream("out")] == [(51, "w"), (61, "x")]
    run = ms.testing.run(timers(log), [("a", 1, "k", wall), ("a", 1_000, "z", None)]).tick(60)
    assert [(e.ts, e.value) for e in run.stream("out")] == [(1_001, "w"), (1_002, "x")]


def test_a_wall_timer_may_set_itself_again() -> None:
    """A wall timer set while firing counts from the clock; a jump of the clock fires it once."""
    app = an_app()

    @app.update("a")
    def start(event: Event, slate: dict[str, int]) -> Iterator[object]:
        slate["fired"] = 0
        yield ms.timer(after="10s", clock="wall")

    @start.on_timer
    def fired(timer: ms.Timer, slate: dict[str, int]) -> Iterator[object]:
        slate["fired"] += 1
        yield ms.timer(after="10s", clock="wall")

    run = ms.testing.run(app, [("a", 1, "k", 0)])
    for by, count in (("10s", 1), ("9s", 1), ("1s", 2), ("1h", 3), ("9s", 3), ("1s", 4)):
        run.tick(by=by)
        assert run.slate("start", "k") == {"fired": count}


def test_a_wall_timer_of_an_expired_slate_does_not_fire() -> None:
    """Its slate expired when time, by events, went past the ttl."""
    log: list[Any] = []
    wall = [{"at": 8, "name": "w", "clock": "wall"}]
    ms.testing.run(timers(log, ttl="10us"), [("a", 1, "k", wall), ("a", 20, "z", None)]).tick(8)
    assert ("w", 8) not in log
    ms.testing.run(timers(log, ttl="10us"), [("a", 1, "k", wall), ("a", 11, "z", None)]).tick(8)
    assert ("w", 8) in log


def test_a_wall_timer_drives_the_streams_behind_it() -> None:
    """Its events are processed in the same tick, event timers included."""
    app = an_app()

    @app.update("a", publishes="b")
    def start(event: Event, slate: dict[str, int]) -> Iterator[object]:
        yield ms.timer(after="1s", clock="wall")

    @start.on_timer
    def fired(timer: ms.Timer, slate: dict[str, int]) -> Iterator[object]:
        yield ms.emit(key="x", value=1)

    keep(app, "b")
    run = ms.testing.run(app, [("a", 1, "k", 0)]).tick(by="1s")
    assert fed(run, "x") == [["b", SECOND + 1, 1]]


def test_a_function_that_exits_is_a_dead_letter() -> None:
    """sys.exit() in a function stops nothing: it is a failure like any other."""
    app = ms.App("exits")
    app.source("in")

    @app.update("in")
    def leave(event: Event, slate: dict[str, int]) -> None:
        raise SystemExit(3)

    run = ms.testing.run(app, [Event("in", 1, "a", 1)])
    assert [letter.error.split(":")[0] for letter in run.dead_letters] == ["SystemExit"]
