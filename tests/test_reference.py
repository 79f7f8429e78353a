"""The reference interpreter: each rule that its docstring states, through `millstream.testing`."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream import Event
from millstream.codec import encode_value

SECOND = 1_000_000


def an_app(*sources: str, **settings: Any) -> ms.App:
    app = ms.App("reference", **settings)
    for source in sources or ("a",):
        app.source(source)
    return app


def keep(app: ms.App, *streams: str, name: str = "keep") -> None:
    """An update that keeps what it is fed, in order."""

    def kept(event: Event, slate: dict[str, list[Any]]) -> None:
        slate.setdefault("fed", []).append([event.stream, event.ts, event.value])

    app.update(*streams, name=name)(kept)


def fed(run: ms.testing.Run, key: str = "k", name: str = "keep") -> list[Any]:
    slate = run.slate(name, key)
    return [] if slate is None else list(slate["fed"])


# -- order ---------------------------------------------------------------------------------------


def test_events_are_fed_in_order_of_time() -> None:
    """An update sees its key's events by time, whatever order they came in."""
    app = an_app()
    keep(app, "a")
    run = ms.testing.run(app, [("a", 3, "k", "c"), ("a", 1, "k", "a"), ("a", 2, "k", "b")])
    assert fed(run) == [["a", 1, "a"], ["a", 2, "b"], ["a", 3, "c"]]


def test_equal_times_are_ordered_by_stream_then_value() -> None:
    """Ties are broken by the stream's name, then by the value's canonical bytes."""
    app = an_app("b", "a")  # declared the other way round: names decide, not declaration
    keep(app, "b", "a")
    values: list[Any] = [10, 9, "x", None, {"n": 1}, [1], True]
    run = ms.testing.run(app, [(s, 5, "k", v) for v in values for s in ("b", "a")])
    in_bytes = [10, 9, [1], None, True, {"n": 1}, "x"]
    in_bytes.sort(key=encode_value)
    assert fed(run) == [[s, 5, v] for s in ("a", "b") for v in in_bytes]
    assert fed(run)[0][2] == "x", "a quotation mark comes before digits and brackets"


def test_bytes_come_before_json() -> None:
    """Bytes carry a zero in front, so they are the first of equal times."""
    app = an_app()
    order: list[Any] = []
    app.update("a", name="look")(lambda event, slate: order.append(event.value))
    ms.testing.run(app, [("a", 1, "k", "x"), ("a", 1, "k", b"\xff"), ("a", 1, "k", b"\x00")])
    assert order == [b"\x00", b"\xff", "x"]


def order_sensitive() -> ms.App:
    """Two sources, a map, a chain of updates, a cycle and timers: all that order can touch."""
    app = an_app("a", "b")
    app.output("out")

    @app.map("b", publishes="c")
    def shift(event: Event) -> Iterator[object]:
        yield ms.emit(ts=event.ts + event.value % 3 + 1)

    @app.update("a", "c", publishes=("d", "out"), ttl="6us")
    def fold(event: Event, slate: dict[str, Any]) -> Iterator[object]:
        slate["n"] = (slate.get("n", 7) * 31 + event.value) % 1009
        if event.value % 5 == 4:
            raise ValueError("four")
        if event.value % 5 == 0:
            yield ms.timer(after="2us", name=f"t{event.value % 2}")
        if event.value % 7 == 3:
            yield ms.forget()
        yield ms.emit("d", key=f"k{slate['n'] % 3}", value=slate["n"])

    @fold.on_timer
    def fired(timer: ms.Timer, slate: dict[str, Any]) -> Iterator[object]:
        slate["n"] = slate["n"] * 17 % 1009
        yield ms.emit("out", value=[timer.name, slate["n"]])

    @app.update("d", "e", publishes="e", slate=ms.Table)
    def spread(event: Event, slate: ms.Table) -> Iterator[object]:
        slate[str(event.value)] = slate.get(str(event.value), 0) + 1
        if event.value > 500:
            yield ms.emit(key=f"k{event.value % 2}", value=event.value // 2)

    return app


@given(
    st.lists(
        st.tuples(
            st.sampled_from("ab"),
            st.integers(1, 12),
            st.sampled_from(["k0", "k1", "k2"]),
            st.integers(0, 20),
        ),
        max_size=25,
    ),
    st.randoms(),
)
def test_the_order_of_feeding_does_not_matter(events: list[Any], random: Any) -> None:
    """The same events, shuffled, give the same slates, streams and dead letters."""
    shuffled = list(events)
    random.shuffle(shuffled)
    app = order_sensitive()
    one, other = ms.testing.run(app, events), ms.testing.run(app, shuffled)
    for name in ("fold", "spread"):
        assert one.slates(name) == other.slates(name)
    for name in ("a", "b", "c", "d", "e", "out"):
        assert one.stream(name) == other.stream(name)
    assert one.dead_letters == other.dead_letters


# -- emitting ------------------------------------------------------------------------------------


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
    """An emitted time that is not later is an error that says what came and what to do."""
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
        f"test_reference.py:{line}), key 'Walmart': FunctionError: emitted ts 17 must be greater "
        "than its input's 17; leave ts out to get 18"
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
    """What the model forbids makes a dead letter that says why, and nothing is emitted."""
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
    """`return 5` is told what may be returned, and not to yield it."""
    app = an_app()
    app.update("a", name="say")(lambda event, slate: 5)
    (letter,) = ms.testing.run(app, [("a", 5, "k", None)]).dead_letters
    assert letter.error.endswith(
        "must return nothing, or a list of emit(...), timer(...) and forget(); it returned int 5"
    )


def test_maps_have_no_timers_at_run_time_either() -> None:
    """What the check of the text cannot see is refused when it runs."""
    app = an_app()
    app.map("a", name="say")(lambda event: [getattr(ms, "timer")(after="1s")])  # noqa: B009
    (letter,) = ms.testing.run(app, [("a", 5, "k", None)]).dead_letters
    assert "a function may yield emit(...)" in letter.error


def test_an_event_is_emitted_as_it_stands_when_it_is_yielded() -> None:
    """What the function changes after the yield, the slate or the input, is not in the event."""
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


# -- slates --------------------------------------------------------------------------------------


def test_each_update_and_key_has_its_own_slate() -> None:
    """A slate belongs to (update, key)."""
    app = an_app()
    keep(app, "a", name="one")
    keep(app, "a", name="two")
    run = ms.testing.run(app, [("a", 1, "x", 1), ("a", 2, "y", 2)])
    assert fed(run, "x", "one") == fed(run, "x", "two") == [["a", 1, 1]]
    assert fed(run, "y", "one") == [["a", 2, 2]]


def test_a_slate_is_kept_in_its_decoded_form() -> None:
    """Between events a slate is what JSON keeps of it: a tuple comes back as a list."""
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


# -- failing -------------------------------------------------------------------------------------


@dataclass
class Count:
    n: int = 0


def failing() -> ms.App:
    app = an_app()
    app.output("out")

    @app.update("a", publishes="out", slate=ms.Table)
    def table(event: Event, slate: ms.Table) -> Iterator[object]:
        slate["n"] = slate.get("n", 0) + 1
        slate["last"] = event.value
        yield ms.emit(value=["table", event.value])
        yield ms.timer(at=1_000 + event.ts)
        if event.value == ["bad"]:
            event.value.append("changed")
            raise ValueError("no")

    @table.on_timer
    def table_timer(timer: ms.Timer, slate: ms.Table) -> Iterator[object]:
        yield ms.emit(value=["table timer", timer.ts])

    @app.update("a", publishes="out", slate=Count)
    def count(event: Event, slate: Count) -> Iterator[object]:
        slate.n += 1
        yield ms.emit(value=["count", event.value])
        yield ms.timer(after="1ms")
        if event.value == ["bad"]:
            yield ms.forget()
            raise ValueError("no")

    @count.on_timer
    def count_timer(timer: ms.Timer, slate: Count) -> Iterator[object]:
        yield ms.emit(value=["count timer", slate.n, timer.ts])

    return app


def test_an_event_that_fails_leaves_no_trace() -> None:
    """Slates, streams and timers are as if it had not come; the dead letter tells of it."""
    good = [("a", 1, "k", [1]), ("a", 9, "k", [2]), ("a", 9_999, "z", [3])]
    bad = [("a", 5, "k", ["bad"]), ("a", 6, "new", ["bad"])]
    with_bad, without = ms.testing.run(failing(), good + bad), ms.testing.run(failing(), good)
    for name in ("count", "table"):
        assert with_bad.slates(name) == without.slates(name)
    assert with_bad.stream("out") == without.stream("out")
    assert without.dead_letters == []
    assert [
        (d.function, d.stream, d.ts, d.key, d.value, d.error.split(" (")[0], d.timer)
        for d in with_bad.dead_letters
    ] == [
        ("count", "a", 5, "k", ["bad"], "ValueError: no", None),
        ("table", "a", 5, "k", ["bad"], "ValueError: no", None),
        ("count", "a", 6, "new", ["bad"], "ValueError: no", None),
        ("table", "a", 6, "new", ["bad"], "ValueError: no", None),
    ]


def test_an_event_that_fails_does_not_revive_an_expired_slate() -> None:
    """After a failure beyond the ttl, the next event still finds a fresh slate."""
    app = an_app()

    @app.update("a", ttl="10us")
    def count(event: Event, slate: dict[str, int]) -> None:
        slate["n"] = slate.get("n", 0) + 1
        if event.value == "bad":
            raise ValueError

    run = ms.testing.run(app, [("a", 1, "k", 0), ("a", 20, "k", "bad"), ("a", 21, "k", 0)])
    assert run.slate("count", "k") == {"n": 1}


def test_a_slate_that_json_cannot_carry_fails_its_event() -> None:
    """The slate stays as it was before the event that spoilt it."""
    app = an_app()

    @app.update("a")
    def last(event: Event, slate: dict[str, Any]) -> None:
        slate["x"] = float("nan") if event.value == "nan" else event.value

    run = ms.testing.run(app, [("a", 1, "k", "fine"), ("a", 2, "k", "nan")])
    assert run.slate("last", "k") == {"x": "fine"}
    assert run.dead_letters[0].error.startswith("CodecError: a value must be what JSON can carry")


def test_a_slate_that_could_not_be_read_back_fails_its_event() -> None:
    """A field of the wrong type is told at once, not by every later event of the key."""
    app = an_app()

    @app.update("a", slate=Count)
    def last(event: Event, slate: Count) -> None:
        slate.n = event.value

    run = ms.testing.run(app, [("a", 1, "k", 7), ("a", 2, "k", "x"), ("a", 3, "k", 8)])
    assert run.slate("last", "k") == Count(8)
    (letter,) = run.dead_letters
    assert letter.ts == 2
    assert letter.error.startswith("CodecError: slate Count cannot be read back: Expected `int`")


def test_a_map_that_fails_emits_nothing() -> None:
    """What a map yielded before it raised is taken back."""
    app = an_app()
    app.output("out")

    @app.map("a", publishes="out")
    def say(event: Event) -> Iterator[object]:
        yield ms.emit()
        event.value.append(2)
        raise ValueError("no")

    run = ms.testing.run(app, [("a", 1, "k", [1])])
    assert run.stream("out") == []
    assert run.dead_letters[0].value == [1], "the dead letter has the value that came"


def test_a_timer_that_fails_is_spent() -> None:
    """Its slate is untouched, it does not fire again, and the dead letter names it."""
    app = an_app()
    app.output("out")

    @app.update("a", publishes="out")
    def count(event: Event, slate: dict[str, int]) -> Iterator[object]:
        slate["n"] = slate.get("n", 0) + 1
        yield ms.timer(after="5us", name="alarm")

    @count.on_timer
    def fired(timer: ms.Timer, slate: dict[str, int]) -> Iterator[object]:
        slate["n"] = 99
        yield ms.emit()
        raise ValueError("no")

    run = ms.testing.run(app, [("a", 1, "k", 0), ("a", 50, "z", 0)])
    assert run.slate("count", "k") == {"n": 1}
    assert run.stream("out") == []
    (letter,) = run.dead_letters
    assert (letter.function, letter.ts, letter.key, letter.timer) == ("count", 6, "k", "alarm")


def test_a_slate_that_cannot_be_coded_is_found_before_any_event() -> None:
    """It is the application that is wrong, so no event is made a dead letter for it."""

    @dataclass
    class Odd:
        thing: dict[str, list[int] | set[int]] | None = None

    app = an_app()
    app.update("a", slate=Odd, name="odd")(lambda event, slate: None)
    with pytest.raises(ms.DefinitionError, match="slate Odd: its fields must be of types that"):
        ms.testing.run(app)


# -- event timers --------------------------------------------------------------------------------


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


# -- wall timers ---------------------------------------------------------------------------------


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
    """One tick over many timers fires them by time, then update, key and name."""
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
    """It is later than the timer and than every event so far, and each is later than the last."""
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
    """What it emits is processed in the same tick, event timers included."""
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
