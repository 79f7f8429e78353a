"""The end of event time in the reference: what `--final` brings out, and where it stops."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest
from reference_apps import SECOND, an_app

import millstream as ms
from millstream import Event
from millstream.elements import Join, Sessionise

MINUTE = 60 * SECOND
GAP = 30 * MINUTE


def click_log(users: int, clicks: int, seed: int = 19) -> list[Event]:
    """A made-up log of some hours: users come, click now and then, and go."""
    draw = random.Random(seed)
    found = []
    for number in range(users):
        at = draw.randrange(12 * 60) * MINUTE
        for _ in range(draw.randrange(1, clicks)):
            found.append(Event("clicks", at, f"user{number}", {"user": f"user{number}"}))
            at += draw.choice([SECOND, MINUTE, 20 * MINUTE, GAP, GAP + 1, 2 * GAP])
    return sorted(found, key=lambda event: event.ts)


def sessions_of(events: list[Event]) -> list[tuple[str, int, int, int]]:
    """The definition: a user's clicks in order, cut where the gap is too long."""
    found: list[tuple[str, int, int, int]] = []
    for user in {event.key for event in events}:
        times = sorted(event.ts for event in events if event.key == user)
        first = last = times[0]
        count = 0
        for at in times:
            if at - last > GAP:
                found.append((user, first, last, count))
                first, count = at, 0
            last, count = at, count + 1
        found.append((user, first, last, count))
    return sorted(found)


def an_app_of_sessions() -> ms.App:
    app = ms.App("sessions", order="event-time")
    app.source("clicks")
    app.output("sessions")
    app.add(Sessionise(gap="30m"), keys="clicks", publishes="sessions")
    return app


def told(run: ms.testing.Run, stream: str = "sessions") -> list[tuple[str, int, int, int]]:
    values = [event.value for event in run.stream(stream)]
    return sorted((one["key"], one["from"], one["to"], one["events"]) for one in values)


def test_open_sessions_come_out() -> None:
    """Without an end the sessions that are open are missing; with it every session is there, as a
    plain computation has them, though their timers are moved on by timers only."""
    events = click_log(users=150, clicks=9)
    run = ms.testing.run(an_app_of_sessions(), events)
    expected = sessions_of(events)
    assert 0 < len(told(run)) < len(expected)
    assert told(run.final()) == expected
    assert run.slates("Sessionise") == {}


def test_sessions_of_sessions_come_out() -> None:
    """Events that are emitted at the end set timers in the next function, and these fire too."""
    app = an_app_of_sessions()
    app.output("days")
    app.add(Sessionise(gap="2h"), keys="sessions", publishes="days", name="again")
    events = click_log(users=40, clicks=9)
    run = ms.testing.run(app, events, final=True)
    assert told(run) == sessions_of(events)
    assert sum(one[3] for one in told(run, "days")) == len(sessions_of(events))
    assert run.slates("again") == {}


def test_what_found_no_partner_comes_out() -> None:
    """A join's time-outs follow each other, each set by the one before: all of them fire."""
    app = an_app("a", "b")
    app.output("joined")
    app.add(Join("a", "b", within="10s", how="left"), keys=("a", "b"), publishes="joined")
    given = [("a", at * SECOND, "k", {"at": at}) for at in range(5)]
    run = ms.testing.run(app, given)
    assert run.stream("joined") == []
    assert len(run.final().stream("joined")) == 5


def periodic(every: int, first: int | None = None) -> ms.App:
    """Counts, and says so every so often for ever."""
    app = an_app(order="event-time")
    app.output("out")

    @app.update("a", publishes="out")
    def count(event: Event, slate: dict[str, Any]) -> Iterator[object]:
        slate["n"] = slate.get("n", 0) + 1
        if slate["n"] == 1:
            yield ms.timer(at=event.ts + (first or every))

    @count.on_timer
    def say(timer: ms.Timer, slate: dict[str, Any]) -> Iterator[object]:
        yield ms.emit(value=slate["n"])
        yield ms.timer(at=timer.ts + every)

    return app


@pytest.mark.parametrize("last", [1, 5, 59, 60, 61, 200])
def test_a_periodic_output_comes_once_more(last: int) -> None:
    """A periodic timer fires once more at the end, and not again."""
    events = [("a", 0, "k", None), ("a", last, "k", None)]
    run = ms.testing.run(periodic(60), events)
    before = len(run.stream("out"))
    after = run.final().stream("out")
    assert [event.ts - 1 for event in after[before:]] == [(last // 60 + 1) * 60]
    assert after[-1].value == 2


def test_a_timer_that_waits_fires_however_far_it_is() -> None:
    """Also if a timer function has set it further ahead than any event has."""
    run = ms.testing.run(periodic(1_000, first=1), [("a", 0, "k", None), ("a", 5, "k", None)])
    assert [event.ts for event in run.stream("out")] == [2]
    assert [event.ts for event in run.final().stream("out")] == [2, 1_002]


def test_the_end_is_ended_once() -> None:
    """A second end without an event in between changes nothing. Remaining timers fire when event
    time moves on, before the event that moves it."""
    run = ms.testing.run(periodic(60), [("a", 0, "k", None), ("a", 50, "k", None)], final=True)
    assert [event.ts for event in run.stream("out")] == [61]
    assert run.final().feed([]).stream("out") == run.stream("out")
    run.feed([("a", 130, "k", None)])
    assert [(event.ts, event.value) for event in run.stream("out")] == [(61, 2), (121, 2)]
    assert [(event.ts, event.value) for event in run.final().stream("out")][2:] == [(181, 3)]


def test_timers_that_set_each_other_off_come_to_an_end() -> None:
    """In a cycle a timer emits an event that sets the next timer: without an end it would wait, and
    the end must not chase it for ever."""
    app = an_app(order="event-time")
    app.stream("round", delay="1us")
    app.output("out")

    @app.update("a", "round", publishes=("round", "out"))
    def go(event: Event, slate: dict[str, Any]) -> Iterator[object]:
        slate["n"] = slate.get("n", 0) + 1
        yield ms.timer(at=event.ts + 10)

    @go.on_timer
    def on(timer: ms.Timer, slate: dict[str, Any]) -> Iterator[object]:
        yield ms.emit("round")
        yield ms.emit("out", value=slate["n"])

    run = ms.testing.run(app, [("a", 0, "k", None)])
    assert run.stream("out") == []
    assert [event.value for event in run.final().stream("out")] == [1]


def test_wall_timers_do_not_fire() -> None:
    """The clock of the wall does not end; they fire when it passes them."""
    app = an_app(order="event-time")
    app.output("out")

    @app.update("a", publishes="out")
    def wait(event: Event, slate: dict[str, Any]) -> Iterator[object]:
        yield ms.timer(after="1s", clock="wall")

    @wait.on_timer
    def say(timer: ms.Timer, slate: dict[str, Any]) -> Iterator[object]:
        yield ms.emit()

    run = ms.testing.run(app, [("a", 0, "k", None)], final=True)
    assert run.stream("out") == []
    assert len(run.tick(by="2s").stream("out")) == 1


def test_a_slate_expires_at_the_end_too() -> None:
    """A timer that comes after the ttl of its slate dies, as at any other time."""
    app = an_app(order="event-time")
    app.output("out")

    @app.update("a", publishes="out", ttl="5us")
    def wait(event: Event, slate: dict[str, Any]) -> Iterator[object]:
        yield ms.timer(at=event.ts + event.value)

    @wait.on_timer
    def say(timer: ms.Timer, slate: dict[str, Any]) -> Iterator[object]:
        yield ms.emit()

    run = ms.testing.run(app, [("a", 0, "short", 5), ("a", 0, "long", 6)], final=True)
    assert [event.key for event in run.stream("out")] == ["short"]


def at_the_end(again: bool = False) -> ms.App:
    """Counts, and says so when event time ends; `quick` fires in between."""
    app = an_app(order="event-time")
    app.output("out")

    @app.update("a", publishes="out")
    def count(event: Event, slate: dict[str, Any]) -> Iterator[object]:
        slate["n"] = slate.get("n", 0) + 1
        yield ms.timer(at="end")
        if event.value is not None:
            yield ms.timer(at=event.ts + event.value, name="quick")

    @count.on_timer
    def say(timer: ms.Timer, slate: dict[str, Any]) -> Iterator[object]:
        slate["fired"] = [*slate.get("fired", ()), timer.name]
        yield ms.emit(value=[timer.name, slate["n"]])
        if again:
            yield ms.timer(at="end")

    return app


def said(run: ms.testing.Run) -> list[tuple[int, str, Any]]:
    return sorted((event.ts, event.key, event.value) for event in run.stream("out"))


def test_a_timer_for_the_end_fires_at_the_end() -> None:
    """Once for each key, at the time of the last event of all, however often it was set; and at no
    other time. Event time does not go on by it."""
    events = [("a", at, key, None) for at, key in [(0, "k"), (5, "k"), (60, "l")]]
    run = ms.testing.run(at_the_end(), events)
    assert said(run) == []
    assert said(run.final()) == [(61, "k", ["", 2]), (61, "l", ["", 1])]
    assert said(run.final().feed([("a", 70, "k", None)]))[2:] == []
    assert said(run.final())[2:] == [(71, "k", ["", 3])]


def test_a_timer_for_the_end_fires_after_the_others_of_its_key() -> None:
    """It fires at the time of the last of them, and does not wait for timers that they set."""
    events = [("a", 0, "k", 100), ("a", 50, "l", 5)]
    run = ms.testing.run(at_the_end(), events, final=True)
    assert [(ts, key, value[0]) for ts, key, value in said(run)] == [
        (56, "l", ""),
        (56, "l", "quick"),
        (101, "k", ""),
        (101, "k", "quick"),
    ]
    assert {key: slate["fired"] for key, slate in run.slates("count").items()} == {
        "k": ["quick", ""],
        "l": ["quick", ""],
    }


def test_a_timer_for_the_end_that_sets_itself_fires_once_at_each_end() -> None:
    """Else there would be no end of it."""
    run = ms.testing.run(at_the_end(again=True), [("a", 1, "k", None)], final=True)
    assert said(run) == [(2, "k", ["", 1])]
    assert said(run.feed([("a", 9, "l", None)]).final())[1:] == [
        (10, "k", ["", 1]),
        (10, "l", ["", 1]),
    ]


def test_the_wall_clock_has_no_end() -> None:
    """A timer for the end is of event time."""
    with pytest.raises(ms.FunctionError, match="the wall clock has no end"):
        ms.timer(at="end", clock="wall")


def lengths(record: Any) -> Iterator[tuple[str, int]]:
    yield "all", record["n"]


@pytest.mark.parametrize(("length", "slide"), [("10m", "10m"), ("10m", "2m")])
def test_the_last_windows_come_out_and_none_after_them(length: str, slide: str) -> None:
    """A job over streams: every window that holds a record comes out, with all of its records, and
    no window that begins after the last one. A session with a longer gap beside it changes
    nothing."""
    app = ms.App("logs", order="event-time")
    for node in ("web1", "web2"):
        app.source(node)
    job = ms.windows.Job(map=lengths, combine=ms.algebra.sum(), range=length, slide=slide)
    app.add(job, name="counts", nodes=["web1", "web2"])
    app.output("sessions")
    app.add(Sessionise(gap="3h"), keys="web1", publishes="sessions")
    times = [(node, at * MINUTE) for at in range(0, 47, 3) for node in ("web1", "web2")]
    times.append(("web2", 46 * MINUTE))
    run = ms.testing.run(app, [(node, at, "k", {"n": 1}) for node, at in times], final=True)
    long, step = (int(text[:-1]) * MINUTE for text in (length, slide))
    expected = {
        begin: count
        for begin in range(0, 47 * MINUTE, step)
        if (count := sum(begin <= at < begin + long for _, at in times))
    }
    found = {one.value["from"]: one.value["value"]["sum"] for one in run.stream("counts")}
    assert {begin: found.get(begin) for begin in expected} == expected
    windows = [one.value for one in run.stream("counts.windows")]
    assert max(one["from"] for one in windows) <= 46 * MINUTE
    assert {one["why"] for one in windows} <= {"complete", "time"}
    assert len(run.stream("sessions")) == 1
