"""Faults that generated cases or reviews once found: each with the smallest application that shows
it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Any

import numpy as np
import pytest
from engine.in_process import InProcess
from engine.outcome import Outcome, of_engine, of_reference
from progress_counts import by_function

import millstream as ms
from millstream.engine.horizon import Lane
from millstream.model.duration import TIME_LIMIT
from millstream.model.workflow import Order

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def event(ts: int, value: Any = None, key: str = "k") -> ms.Event:
    return ms.Event("s", ts, key, value)


def app_of(update: Any, *, order: Order = "event-time", **given: Any) -> ms.App:
    """An application with one update, `u`, over one source, `s`."""
    app = ms.App("one", order=order)
    app.source("s", idle="400d")
    app.update("s", name="u", **given)(update)
    return app


def check(app: ms.App, *batches: list[ms.Event]) -> Outcome:
    """Checks that both lanes give the reference's result, and returns it."""
    workflow, events = app.workflow(), [event for batch in batches for event in batch]
    expected = of_reference(workflow, events, 3)
    lanes: tuple[Lane, ...] = ("one-task", "shuffled")
    for lane in lanes:
        engine = InProcess(workflow, shards=3, lane=lane)
        for batch in batches:
            engine.batch(batch)
        engine.settle(final=True)
        assert engine.late == []
        assert of_engine(engine) == expected
    return expected


@dataclass
class Count:
    count: int = 0


def test_a_tuple_that_is_gone_by_the_end_of_the_batch() -> None:
    """The next event finds a list where a tuple was kept, even if that one takes it out again."""

    def update(event: ms.Event, slate: dict[str, Any]) -> None:
        found = slate.pop("pair", None)
        slate["found"] = type(found).__name__
        if found is None:
            slate["pair"] = (1, 2)

    found = check(app_of(update), [event(1), event(2)])
    assert any(b'"found":"list"' in row for row in found.rows.values())


def test_one_list_under_two_names() -> None:
    """The next event finds two lists where one list was kept under two names."""

    def update(event: ms.Event, slate: dict[str, Any]) -> None:
        if not slate:
            slate["one"] = slate["two"] = []
        slate["one"].append(event.ts)

    found = check(app_of(update), [event(1), event(2)])
    assert any(b'"two":[1]' in row for row in found.rows.values())


def test_a_nan_that_is_gone_by_the_end_of_the_batch() -> None:
    """An event that leaves NaN in the slate fails, even if the next would have taken it out."""

    def update(event: ms.Event, slate: dict[str, Any]) -> None:
        slate["x"] = float("nan") if event.ts == 1 else 0.5

    assert len(check(app_of(update), [event(1), event(2)]).letters) == 1


def test_a_value_that_was_changed_before_the_failure() -> None:
    """A key that is fed again gets its events as they came, not as the first try left them."""

    def update(event: ms.Event, slate: dict[str, Any]) -> None:
        if "tried" not in event.value:
            event.value["tried"] = True
            raise ValueError("the first time")
        slate["n"] = slate.get("n", 0) + 1

    assert len(check(app_of(update), [event(1, {}), event(2, {"tried": 1})]).letters) == 1


@pytest.mark.parametrize("kind", [dict, ms.Table])
def test_an_event_that_fails_after_its_slate_expired(kind: type) -> None:
    """The old slate is left as if the event had not come."""

    def update(event: ms.Event, slate: Any) -> None:
        slate["ts"] = event.ts
        if event.value:
            raise ValueError("no")

    found = check(app_of(update, slate=kind, ttl="5us"), [event(1), event(20, "fail")])
    assert len(found.rows) == (1 if kind is dict else 2)


def test_forgetting_a_slate_that_could_not_be_written() -> None:
    """A slate that is forgotten is not written, so whatever it holds is no failure."""

    def update(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
        slate["x"] = object()
        if event.ts == 1:
            raise ValueError("so that the key goes the careful way")
        yield ms.forget()

    assert len(check(app_of(update), [event(1), event(2)]).letters) == 1


def test_a_lone_forget_is_refused() -> None:
    """An effect that is returned, not yielded, is an error and is not lost without a word."""

    def update(event: ms.Event, slate: dict[str, Any]) -> Any:
        slate["n"] = 1
        return ms.forget()

    assert len(check(app_of(update), [event(1)]).letters) == 1


def test_a_slate_that_cannot_be_read_back() -> None:
    """The event that puts text into a number's field fails; the later ones of its key do not."""

    def update(event: ms.Event, slate: Count) -> None:
        slate.count = "text" if event.value else slate.count + 1  # type: ignore[assignment]

    found = check(app_of(update, slate=Count), [event(1, "bad")], [event(2)], [event(3)])
    assert len(found.letters) == 1


def test_a_stored_slate_that_does_not_fit_its_class() -> None:
    """Events of a key whose stored slate cannot be read (its class was changed) are dead letters;
    the application goes on, and the slate stays as it is."""

    def first(event: ms.Event, slate: dict[str, Any]) -> None:
        slate["count"] = "text"

    def second(event: ms.Event, slate: Count) -> None:
        slate.count += 1

    before = InProcess(app_of(first, order="arrival").workflow())
    before.batch([event(1, key="a")])
    after = InProcess(app_of(second, order="arrival", slate=Count).workflow(), store=before.store)
    after.progress, stored = before.progress, of_engine(before).rows
    after.batch([event(2, key="a"), event(3, key="a"), event(4, key="b")])
    assert [letter["ts"] for letter in after.letters] == [2, 3]
    assert of_engine(after).rows.items() > stored.items()


def test_a_placed_map_is_counted_once() -> None:
    """A map that emits along a feedback edge counts each of its events once."""
    app = ms.App("loop", order="event-time")
    app.source("s", idle="400d")

    @app.map("s", "again", publishes="again")
    def loop(event: ms.Event) -> Iterator[Any]:
        if event.value < 3:
            yield ms.emit(value=event.value + 1)

    app.stream("again", delay="1us")
    engine = InProcess(app.workflow())
    engine.batch([event(1, 0)])
    engine.settle(final=True)
    assert by_function(engine.progress.functions, "processed") == {"loop": 4}


@dataclass
class Note:
    text: str = ""
    n: int = 0


@pytest.mark.parametrize("slate", [dict, Note])
@pytest.mark.parametrize("bad", [{"text": "\ud800"}, {"n": 10**5_000}, {"\ud800": 1}])
def test_what_cannot_be_written_and_is_replaced(slate: type, bad: dict[str, Any]) -> None:
    """An event that leaves text or a number that JSON cannot carry has failed, even if the next one
    of its key and batch replaces it."""

    def update(event: ms.Event, slate: Any) -> None:
        fields = slate if isinstance(slate, dict) else vars(slate)
        fields.pop("\ud800", None)
        fields.update(bad if event.ts == 2 else {"text": "é", "n": fields.get("n", 0) % 1000 + 1})

    found = check(app_of(update, slate=slate), [event(1), event(2), event(3)])
    assert len(found.letters) == (0 if slate is Note and "\ud800" in bad else 1)


@dataclass
class Reading:
    n: int = 0
    x: float = 0.0
    note: str = ""
    more: list[Any] = field(default_factory=list)


@pytest.mark.parametrize("on_timer", [None, lambda timer, slate: None])
@pytest.mark.parametrize("x", [{"not": "a number"}, float("nan"), 1, "text", list(range(100))])
@pytest.mark.parametrize("slate", [Reading, dict])
def test_a_slate_that_was_large_once(slate: type, x: Any, on_timer: Any) -> None:
    """An event that puts what a field cannot take has failed, while the slate is large, and when it
    is small again; however it came to be large."""

    def update(event: ms.Event, slate: Any) -> None:
        fields = slate if isinstance(slate, dict) else vars(slate)
        fields["n"] = fields.get("n", 0) + 1
        fields["seen"] = type(fields.get("x")).__name__
        if not isinstance(slate, dict):
            fields["note"] = fields.pop("seen")
        fields["x"] = x if event.value == "odd" else 0.5
        fields["more"] = list(range(200)) if event.value == "large" else []

    given = [None, "large", "odd", None, "odd", "large", None, "odd", None]
    events = [event(ts, value) for ts, value in enumerate(given)]
    found = check(app_of(update, slate=slate, on_timer=on_timer), events)
    fails = x != x if slate is dict else x != 1
    assert len(found.letters) == (3 if fails else 0)


@pytest.mark.parametrize("on_timer", [None, lambda timer, slate: None])
@pytest.mark.parametrize("bad", [(1, 2), {1}, "\ud800", object(), {5: 5}])
def test_a_dict_that_was_large_once(bad: Any, on_timer: Any) -> None:
    """The same for what JSON changes or refuses, in one of a few entries or, once the slate is
    small again, deeper inside."""

    def update(event: ms.Event, slate: dict[str, Any]) -> None:
        slate["n"] = slate.get("n", 0) + 1
        slate["seen"] = f"{slate.get('bad')!r:.20}"
        slate["bad"] = {"odd": bad, "in": [bad]}.get(event.value)
        slate["more"] = ["x" * 50] * (10 if event.value == "large" else 1)

    given = ["large", None, "odd", None, "in", "large", None, "in", None, None]
    events = [event(ts, value) for ts, value in enumerate(given)]
    check(app_of(update, on_timer=on_timer), events)
    check(app_of(update, on_timer=on_timer), events[:1], events[1:4], events[4:])


def test_an_entry_that_is_not_unicode() -> None:
    """A table's entry is named by text that UTF-8 can carry; else the event fails, not the task."""

    def update(event: ms.Event, slate: ms.Table) -> None:
        slate[event.value or "\ud800"] = 1

    assert len(check(app_of(update, slate=ms.Table), [event(1), event(2, "é")]).letters) == 1


def test_a_timer_whose_name_is_not_unicode() -> None:
    """A timer is named by text that UTF-8 can carry; else the event fails, not the task."""

    def update(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
        yield ms.timer(at=99, name=event.value or "\ud800")

    found = check(app_of(update, on_timer=lambda timer, slate: None), [event(1), event(2, "é")])
    assert len(found.letters) == 1


@pytest.mark.parametrize("ts", [TIME_LIMIT, 1 << 63, 1 << 80, -(1 << 80)])
def test_a_time_that_cannot_be_stored(ts: int) -> None:
    """A timer or event beyond what is stored of a time is an error of the function."""

    def timed(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
        slate["n"] = 1
        yield ms.timer(at=ts)

    def emits(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
        slate["n"] = 1
        yield ms.emit(ts=ts)

    on_timer = lambda timer, slate: None  # noqa: E731
    assert len(check(app_of(timed, on_timer=on_timer), [event(1)]).letters) == 1
    assert len(check(app_of(emits, publishes="out"), [event(1)]).letters) == 1


@pytest.mark.parametrize("given", [{}, {"key": "k", "value": 1}])
@pytest.mark.parametrize(
    ("delay", "ahead"), [(None, 1), ("30s", 1), ("30s", 30_000_000), ("1000000d", 1)]
)
def test_a_time_left_out_that_cannot_be_stored(
    delay: str | None, ahead: int, given: dict[str, Any]
) -> None:
    """The time that follows from the input's and the stream's delay has the same limit."""

    def update(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
        slate["n"] = slate.get("n", 0) + 1
        yield ms.emit(**given)

    app = app_of(update, publishes="out")
    if delay is not None:
        app.stream("out", delay=delay)
    app.output("out")
    found = check(app, [event(TIME_LIMIT - ahead - 1), event(TIME_LIMIT - ahead)])
    assert len(found.letters) == (2 if ahead == 1 and delay else 1)


def test_a_value_left_out_is_the_input_as_it_came() -> None:
    """A function may change its event's value; an emit without a value does not see it."""

    def update(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
        event.value.append(2)
        yield ms.emit()

    found = check(app_of(update, publishes="out"), [event(1, [1])])
    assert found.streams["out"] == [(2, "k", b"[1]")]


@pytest.mark.parametrize("on_timer", [None, lambda timer, slate: None])
def test_a_large_slate_that_expires_after_it_was_spoiled(on_timer: Any) -> None:
    """The event that spoiled it has failed, though the slate is gone by the end of the batch."""

    def update(event: ms.Event, slate: dict[str, Any]) -> None:
        slate["padding"] = "x" * 1_000
        if event.ts == 2:
            slate["bad"] = object()

    app = app_of(update, ttl="5us", on_timer=on_timer)
    assert len(check(app, [event(1), event(2), event(20)]).letters) == 1


def test_a_large_slate_that_is_forgotten_after_it_was_spoiled() -> None:
    """The event that spoiled it has failed; the one that forgets it has not."""

    def update(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
        slate["padding"] = "x" * 1_000
        if event.ts == 2:
            slate["bad"] = object()
        if event.ts == 3:
            yield ms.forget()

    app = app_of(update, on_timer=lambda timer, slate: None)
    assert len(check(app, [event(1), event(2), event(3), event(4)]).letters) == 1


def test_text_and_numbers_of_a_subclass() -> None:
    """NumPy's text is a str, but of a subclass, which no encoder takes; so are members of an
    enumeration. Keys, streams, times, entries, and names of timers may be such."""

    class Colour(StrEnum):
        RED = "red"

    class Late(IntEnum):
        AT = 40

    def update(event: ms.Event, slate: ms.Table) -> Iterator[ms.Effect]:
        slate[np.str_("entry")] = event.ts
        yield ms.timer(at=Late.AT, name=np.str_("one"), clock=np.str_("event"))  # type: ignore[arg-type]
        yield ms.emit(np.str_("out"), key=np.str_("key"), ts=Late.AT)
        yield ms.emit(key=Colour.RED)

    def on_timer(timer: ms.Timer, slate: ms.Table) -> Iterator[ms.Effect]:
        yield ms.emit(key=timer.name)

    app = app_of(update, slate=ms.Table, publishes="out", on_timer=on_timer)
    app.update("out", name="reader")(lambda event, slate: slate.update(ts=event.ts))
    found = check(app, [event(1), event(2)], [event(5), event(30)])
    assert found.letters == []
    readers = {row for _, row in found.rows if row.startswith(b"Sreader")}
    assert readers == {b"Sreader\x00key", b"Sreader\x00red", b"Sreader\x00one"}
    app.changes("u")
    engine = InProcess(app.workflow())
    engine.batch([event(1)])
    engine.settle(final=True)
    assert engine.changes["u.changes"].entries == ["entry"]


class Mute(Exception):
    """An error without a message: asking for it raises another one."""

    def __str__(self) -> str:
        raise AttributeError("response")


def test_an_error_that_has_no_message() -> None:
    """It makes a dead letter like any other, with its type."""

    def update(event: ms.Event, slate: dict[str, Any]) -> None:
        raise Mute

    app = app_of(update)
    check(app, [event(1)])
    (letter,) = ms.testing.run(app, [event(1)]).dead_letters
    assert letter.error.startswith("Mute, whose message cannot be shown (")
