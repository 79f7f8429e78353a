"""How the reference treats emitted events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from reference_apps import an_app, fed, keep

import millstream as ms
from millstream import Event


def test_what_emit_leaves_out_is_taken_from_the_input() -> None:
    """Stream, key, value and time have their defaults; None is a value, not a default."""
    app = an_app()
    app.output("out")

    @app.map("a", publishes="out")
    def say(event: Event) -> Iterator[object]:
        yield ms.emit()
        yield ms.emit(key="other", value=None, ts=event.ts + 9)

    run = ms.testing.run(app, [("a", 5, "k", [1])])
    assert run.stream("out") == [Event("out", 6, "k", [1]), Event("out", 14, "other", None)]


def test_effects_may_be_returned_as_a_list() -> None:
    """A function may return a list (or any iterable) of effects instead of yielding them."""
    app = an_app()
    app.output("out")
    app.map("a", publishes="out", name="say")(lambda event: [ms.emit(value=1), ms.emit(value=2)])
    assert [e.value for e in ms.testing.run(app, [("a", 1, "k", 0)]).stream("out")] == [1, 2]


@pytest.mark.parametrize("ts", [16, 17])
def test_an_emitted_event_is_later_than_its_input(ts: int) -> None:
    """An emitted time that is not later is an error with the given time and what to do."""
    app = an_app()
    app.output("out")
    app.map("a", publishes="out", name="say")(lambda event: [ms.emit(ts=ts)])
    run = ms.testing.run(app, [("a", 17, "k", None)])
    (letter,) = run.dead_letters
    assert letter.error == (
        f"FunctionError: emitted ts {ts} must be greater than its input's 17; "
        "leave ts out to get 18"
    )
    assert run.stream("out") == []


def test_under_fail_the_message_says_where_and_which_key() -> None:
    """on_error="fail" stops at the first failure, with the function, its line and the key."""
    app = an_app(on_error="fail")
    app.output("out")

    def count(event: Event, slate: Any) -> list[object]:
        return [ms.emit(ts=17)]

    app.update("a", publishes="out")(count)
    with pytest.raises(ms.FunctionError) as raised:
        ms.testing.run(app, [("a", 17, "Walmart", None)])
    line = count.__code__.co_firstlineno
    assert str(raised.value).startswith("update 'count' (")
    assert str(raised.value).endswith(
        f"test_reference_emitting.py:{line}), key 'Walmart': FunctionError: emitted ts 17 must be "
        "greater than its input's 17; leave ts out to get 18"
    )


def test_a_delay_is_the_least_step_in_time() -> None:
    """On a stream with a delay the default is the input's time plus it, and less is an error."""
    app = an_app()
    app.output("out")
    app.stream("out", delay="10us")
    app.map("a", publishes="out", name="say")(
        lambda event: [ms.emit(ts=None if event.value is None else event.value)]
    )
    run = ms.testing.run(app, [("a", 5, "k", None), ("a", 5, "k", 20), ("a", 5, "k", 14)])
    assert [event.ts for event in run.stream("out")] == [15, 20]
    (letter,) = run.dead_letters
    assert letter.error == (
        "FunctionError: emitted ts 14 must be at least 15, its input's 5 plus the delay of stream "
        "'out'; leave ts out to get 15"
    )


@pytest.mark.parametrize(
    ("effect", "error"),
    [
        (ms.emit("elsewhere"), "emitted to stream 'elsewhere', which it does not publish"),
        (ms.emit("out", key=5), "emitted key must be text; got int 5"),
        (ms.emit("out", key=None), "emitted key must be text; got NoneType None"),
        (ms.emit("out", key="\ud800"), "emitted key '\\ud800' is not valid Unicode"),
        (ms.emit("out", ts=9.5), "emitted ts must be whole microseconds; got float 9.5"),  # type: ignore[arg-type]
        (ms.emit("out", ts=True), "emitted ts must be whole microseconds; got bool True"),
        (ms.emit("out", value=float("nan")), "a value must be what JSON can carry"),
        (ms.emit("out", value=object()), "a value must be what JSON can carry"),
        (ms.emit(), "emit() without a stream needs a function that publishes exactly one"),
        ("out", "a function may yield emit(...), timer(...) or forget(), or return a list"),
        (None, "a function may yield emit(...), timer(...) or forget(), or return a list"),
        (ms.timer(after="1s"), "set a timer, but the update has no on_timer function"),
    ],
)
def test_effects_that_break_a_rule(effect: object, error: str) -> None:
    """An effect that breaks a rule of the model makes a dead letter that says why, and nothing is
    emitted."""
    app = an_app()
    app.output("out")
    app.output("more")
    app.update("a", publishes=("out", "more"), name="say")(
        lambda event, slate: [ms.emit("out", key="fine"), effect]
    )
    run = ms.testing.run(app, [("a", 5, "k", None)])
    (letter,) = run.dead_letters
    assert error in letter.error
    assert run.stream("out") == []
    assert run.slate("say", "k") is None


@pytest.mark.parametrize("effect", [ms.emit("out"), ms.forget(), ms.timer(after="1s")])
def test_a_lone_effect_that_is_returned_is_refused(effect: object) -> None:
    """`return ms.forget()` must not be lost: the error says to yield."""
    app = an_app()
    app.output("out")
    app.update("a", publishes="out", name="say", on_timer=lambda timer, slate: None)(
        lambda event, slate: effect
    )
    (letter,) = ms.testing.run(app, [("a", 5, "k", None)]).dead_letters
    assert "must yield its effects or return a list of them; it returned" in letter.error
    assert letter.error.endswith("write 'yield' in place of 'return'")


def test_what_is_no_effect_must_not_be_returned() -> None:
    """The error for `return 5` says what may be returned."""
    app = an_app()
    app.update("a", name="say")(lambda event, slate: 5)
    (letter,) = ms.testing.run(app, [("a", 5, "k", None)]).dead_letters
    assert letter.error.endswith(
        "must return nothing, or a list of emit(...), timer(...) and forget(); it returned int 5"
    )


def test_maps_have_no_timers_at_run_time_either() -> None:
    """A timer that the check of the source text cannot see is refused at run time."""
    app = an_app()
    app.map("a", name="say")(lambda event: [getattr(ms, "timer")(after="1s")])  # noqa: B009
    (letter,) = ms.testing.run(app, [("a", 5, "k", None)]).dead_letters
    assert "a function may yield emit(...)" in letter.error


def test_an_event_is_emitted_as_it_stands_when_it_is_yielded() -> None:
    """Later changes of the slate or the input do not change the event."""
    app = an_app()
    app.output("out")

    @app.update("a", publishes="out")
    def count(event: Event, slate: dict[str, int]) -> Iterator[object]:
        for number in range(3):
            slate["n"] = number
            yield ms.emit(value=slate)
        event.value.append("late")

    run = ms.testing.run(app, [("a", 1, "k", [])])
    assert [event.value for event in run.stream("out")] == [{"n": 0}, {"n": 1}, {"n": 2}]
    assert run.stream("a") == [Event("a", 1, "k", [])]


def test_a_value_left_out_is_the_one_that_came() -> None:
    """emit() without a value passes on the input, even after the function has changed its copy."""
    app = an_app()
    app.output("out")

    @app.update("a", publishes="out")
    def count(event: Event, slate: dict[str, int]) -> Iterator[object]:
        event.value.append("changed")
        yield ms.emit()
        yield ms.emit(value=event.value)

    run = ms.testing.run(app, [("a", 1, "k", [1])])
    assert [event.value for event in run.stream("out")] == [[1, "changed"], [1]]


def test_each_subscriber_has_its_own_copy_of_an_event() -> None:
    """A function that changes its event's value changes nobody else's."""
    app = an_app()
    keep(app, "a", name="z_keep")

    @app.map("a")
    def spoil(event: Event) -> None:
        event.value.clear()

    run = ms.testing.run(app, [("a", 1, "k", [1, 2])])
    assert fed(run, name="z_keep") == [["a", 1, [1, 2]]]


def test_a_stream_of_the_source_may_be_published_into() -> None:
    """A function may emit into its own input stream: a cycle that time drives forward."""
    app = an_app()

    @app.map("a", publishes="a")
    def halve(event: Event) -> Iterator[object]:
        if event.value > 1:
            yield ms.emit(value=event.value // 2)

    run = ms.testing.run(app, [("a", 1, "k", 8)])
    assert [(e.ts, e.value) for e in run.stream("a")] == [(1, 8), (2, 4), (3, 2), (4, 1)]


def test_a_cycle_with_a_delay_meets_what_comes_in_between() -> None:
    """Feedback takes its place in time: what comes before it arrives is fed before it."""
    app = an_app()
    app.stream("again", delay="10us")
    seen: list[tuple[str, int]] = []

    @app.update("a", "again", publishes="again")
    def echo(event: Event, slate: dict[str, int]) -> Iterator[object]:
        seen.append((event.stream, event.ts))
        if event.stream == "a" and event.value == "echo":
            yield ms.emit()

    ms.testing.run(app, [("a", 5, "k", "echo"), ("a", 15, "k", None), ("a", 16, "k", None)])
    assert seen == [("a", 5), ("a", 15), ("again", 15), ("a", 16)]
