"""In which order the reference feeds events."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from reference_apps import an_app, fed, keep

import millstream as ms
from millstream import Event
from millstream.codec import encode_value


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
