"""Streams that come after others: their delays, orders that cannot be, and what functions see."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from elements.both import check_engine_is_reference, cuttings, lanes
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from model.graphs_of import Graph

import millstream as ms
from millstream.engine.horizon import Lane
from millstream.model.event import Emit, Event

CHAIN: Graph = [
    ("map", "split", ("orders",), ("a", "behind")),
    ("update", "count", ("a",), ("b",)),
    ("map", "between", ("b",), ("c",)),
    ("update", "join", ("c", "behind"), ("d",)),
]


def an_app(graph: Graph, **after: str) -> ms.App:
    """An application whose functions emit what they get to all their streams."""
    app = ms.App("shop", order="event-time")
    app.source("orders", ts="ts", lateness="5us", idle="10000s")
    for kind, name, subscribes, publishes in graph:
        declare = app.map if kind == "map" else app.update
        function = passing(publishes) if kind == "map" else passing_update(publishes)
        declare(*subscribes, publishes=publishes, name=name)(function)
    for stream, other in after.items():
        app.stream(stream, after=other)
    return app


def passing(streams: tuple[str, ...]) -> Any:
    def passed(event: Event) -> Iterator[Emit]:
        for stream in streams:
            yield ms.emit(stream)

    return passed


def passing_update(streams: tuple[str, ...]) -> Any:
    def passed(event: Event, slate: dict[str, int]) -> Iterator[Emit]:
        slate["n"] = slate.get("n", 0) + 1
        for stream in streams:
            yield ms.emit(stream)

    return passed


def test_a_stream_comes_after_the_way_to_another() -> None:
    """Each function on the way takes a microsecond, or the delay of its stream. A delay that is
    longer than the way stands. A step of the horizon is not meant by it."""
    app = an_app(CHAIN, behind="c")
    assert app.checked().delays == {"behind": 4}
    assert app.checked().step is None
    app.stream("b", delay="7us")
    assert app.checked().delays == {"behind": 10, "b": 7}
    app.stream("behind", delay="8us", after="a")
    assert app.checked().delays == {"behind": 8, "b": 7}


def test_the_longest_way_counts() -> None:
    """Of two ways to a stream the longer one counts, also if it goes over a stream that itself
    comes after another."""
    graph: Graph = [
        ("map", "split", ("orders",), ("a", "x", "behind")),
        ("map", "one", ("a",), ("b",)),
        ("map", "two", ("b",), ("c",)),
        ("map", "short", ("x", "c"), ("goal",)),
    ]
    assert an_app(graph, behind="goal").checked().delays == {"behind": 5}
    assert an_app(graph, behind="goal", x="c").checked().delays == {"x": 4, "behind": 6}


def test_a_way_that_goes_round_is_refused() -> None:
    """Nothing can come after all that a cycle may lead to."""
    graph: Graph = [*CHAIN[:2], ("map", "between", ("b",), ("c", "a")), CHAIN[3]]
    with pytest.raises(ms.DefinitionError, match="goes round in a cycle through"):
        an_app(graph, behind="c").checked()


def test_what_comes_around_belongs_to_a_later_event() -> None:
    """A way does not lead through the publisher again, nor over the stream that waits."""
    graph: Graph = [*CHAIN, ("map", "again", ("d",), ("orders",))]
    assert an_app(graph, behind="c").checked().delays == {"behind": 4}


@pytest.mark.parametrize(
    ("after", "error"),
    [
        ({"behind": "d"}, None),
        ({"behind": "behind"}, "after must name a stream to which its publisher's input leads"),
        ({"behind": "nothing"}, "got 'nothing'"),
        ({"b": "behind"}, "got 'behind'"),
        ({"orders": "c"}, "got 'c'"),
        (
            {"behind": "a", "a": "behind"},
            "cannot come after each other: 'behind' after 'a' after 'behind'",
        ),
    ],
)
def test_an_order_that_cannot_be(after: dict[str, str], error: str | None) -> None:
    """A stream can only come after what its publisher's input leads to."""
    app = an_app(CHAIN, **after)
    if error is None:
        assert app.checked().delays == {"behind": 5}
        return
    with pytest.raises(ms.DefinitionError, match=error):
        app.checked()


def test_an_explicit_time_keeps_to_the_order() -> None:
    """An event that is emitted with a time before its turn fails, as it does before a delay."""
    app = ms.App("shop", order="event-time")
    app.source("orders", ts="ts", unit="us")

    @app.map("orders", publishes=["a", "behind"])
    def split(event: Event) -> Iterator[Emit]:
        yield ms.emit("a")
        yield ms.emit("behind", ts=event.ts + 2)

    @app.map("a", publishes=["b"])
    def on(event: Event) -> Iterator[Emit]:
        yield ms.emit("b")

    @app.update("b", "behind")
    def seen(event: Event, slate: dict[str, int]) -> None:
        slate[event.stream] = event.ts

    app.stream("behind", after="b")
    (letter,) = ms.testing.run(app, {"orders": [{"ts": 10}]}).dead_letters
    assert "emitted ts 12 must be at least 13" in letter.error


@st.composite
def waiting(draw: st.DrawFn) -> Graph:
    """Functions without a cycle, from `split`, which also publishes `behind`, to the stream `goal`,
    and `see`, which reads both."""
    count = draw(st.integers(1, 5))
    graph: Graph = []
    for number in range(count):
        before = [stream for *_, publishes in graph for stream in publishes]
        reads = draw(st.lists(st.sampled_from(before), min_size=1, unique=True)) if before else []
        ends = number == count - 1
        streams = (f"t{number}", *(("goal",) if ends or draw(st.booleans()) else ()))
        kind = draw(st.sampled_from(["map", "update"]))
        reads = [stream for stream in reads if stream not in ("goal", "behind")] or [
            f"t{number - 1}" if number else "orders"
        ]
        graph.append((kind, f"f{number}", tuple(reads), streams))
    kind, name, reads, streams = graph[0]
    return [(kind, name, reads, (*streams, "behind")), *graph[1:]]


@settings(max_examples=examples(60))
@given(
    waiting(),
    st.lists(st.sampled_from((0, 0, 0, 1, 3)), min_size=5, max_size=5),
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from("ab")), min_size=1, max_size=12),
    cuttings,
    st.integers(1, 3),
    lanes,
)
def test_it_is_fed_after_all_that_it_waits_for(
    graph: Graph,
    delays: list[int],
    orders: list[tuple[int, str]],
    cuts: list[int],
    shards: int,
    lane: Lane,
) -> None:
    """When a function is fed an event of the stream, it has been fed all that the same input, and
    all earlier ones, led to on the other one: in the engine as in the reference."""
    app = an_app(graph, behind="goal")
    for number in range(1, len(graph)):
        app.stream(f"t{number}", delay=f"{delays[number]}us")

    @app.update("goal", "behind", publishes="wrong")
    def see(event: Event, slate: dict[str, int]) -> Iterator[Emit]:
        at = event.value["at"]
        if event.stream == "behind":
            slate["waited"] = max(at, slate.get("waited", -1))
        elif at <= slate.get("waited", -1):
            yield ms.emit("wrong")

    for stream in ("wrong", *(f"t{number}" for number in range(len(graph)))):
        app.output(stream)
    events = [Event("orders", ts, key, {"at": ts}) for ts, key in orders]
    engine = check_engine_is_reference(app, events, cuts, shards, lane)
    assert engine.streams.get("wrong", []) == []
