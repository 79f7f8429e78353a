"""Jobs over streams when event time ends: the last windows come out, and none after them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from math import gcd
from typing import Any, Literal

from elements.both import check_engine_is_reference, cuttings, lanes, run_in_batches
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.codec import encode_value
from millstream.engine.horizon import Lane
from millstream.model.event import Event
from millstream.windows import Job
from millstream.windows.span import Axis

NODES = ("a", "b")
logs = st.lists(
    st.tuples(st.sampled_from(NODES), st.integers(0, 60), st.text("xyz", max_size=3)),
    min_size=1,
    max_size=25,
)
sizes = st.sampled_from([(10, 10, None), (20, 10, 5), (15, 5, None), (12, 3, 1), (9, 6, None)])
"""Range, slide and pane in milliseconds, as the times of the logs are."""


def letters(record: Any) -> Iterator[tuple[str, int]]:
    """A pair for each letter."""
    for letter in record["text"]:
        yield letter, 1


def an_app(size: tuple[int, int, int | None], reducers: int = 1) -> ms.App:
    app = ms.App("logs", order="event-time")
    for node in NODES:
        app.source(node)
    length, slide, pane = size
    job = Job(
        map=letters,
        combine=ms.algebra.sum(),
        range=f"{length}ms",
        slide=f"{slide}ms",
        pane=None if pane is None else f"{pane}ms",
        reducers=reducers,
    )
    app.add(job, name="counts", nodes=NODES)
    return app


def events_of(log: list[tuple[str, int, str]]) -> list[Event]:
    return [Event(node, ts * 1_000, "", {"text": text}) for node, ts, text in log]


@given(logs, sizes, st.integers(1, 3))
@settings(max_examples=examples(100), deadline=None)
def test_the_last_windows_come_out(
    log: list[tuple[str, int, str]], size: tuple[int, int, int | None], reducers: int
) -> None:
    """Every window that begins no earlier than the first record's pane and no later than the last
    record comes out once, with all of its records; no other does."""
    length, slide, pane = size
    run = ms.testing.run(an_app(size, reducers), events_of(log), final=True)
    assert run.dead_letters == []
    found: dict[int, Counter[str]] = {}
    for event in run.stream("counts.windows"):
        begin = event.value["from"] // 1_000
        if event.key and begin not in found:
            found[begin] = Counter()
    for event in run.stream("counts"):
        found[event.value["from"] // 1_000][event.key] += event.value["value"]["sum"]
    step = pane or next(n for n in range(slide, 0, -1) if not (slide % n or length % n))
    first = min(ts for _, ts, _ in log) // step * step
    last = max(ts for _, ts, _ in log)
    begins = [begin for begin in range(0, last + 1, slide) if begin >= first]
    assert sorted(found) == begins
    for begin in begins:
        inside = [text for _, ts, text in log if begin <= ts < begin + length]
        assert found[begin] == Counter("".join(inside))


@given(logs, sizes, st.integers(1, 3), cuttings, st.integers(1, 4), lanes)
@settings(max_examples=examples(40), deadline=None)
def test_the_engine_gives_the_same(
    log: list[tuple[str, int, str]],
    size: tuple[int, int, int | None],
    reducers: int,
    cuts: list[int],
    shards: int,
    lane: Lane,
) -> None:
    """This holds for any batches, lanes and shards."""
    check_engine_is_reference(an_app(size, reducers), events_of(log), cuts, shards, lane)


Order = Literal["arrival", "event-time"]
orders: st.SearchStrategy[Order] = st.sampled_from(["arrival", "event-time"])
counted = st.sampled_from([(10, 10, None), (4, 2, None), (6, 3, 1), (3, 3, 1), (5, 5, None)])
"""Range, slide and pane in records or numbers."""


def a_counting_app(
    by: Axis, size: tuple[int, int, int | None], order: Order, reducers: int = 1
) -> ms.App:
    """A job over counts. A third node never has a record."""
    app = ms.App("logs", order=order)
    for node in (*NODES, "c"):
        app.source(node)
    length, slide, pane = size
    job = Job(
        map=letters,
        combine=ms.algebra.sum(),
        range=length,
        slide=slide,
        pane=pane,
        by=by,
        sequence="n" if by == "sequence" else None,
        reducers=reducers,
    )
    app.add(job, name="counts", nodes=[*NODES, "c"])
    return app


def numbered(log: list[tuple[str, int, str]]) -> list[Event]:
    """The log in order of time, which is that of its numbers."""
    return [
        Event(node, number * 1_000, "", {"text": text, "n": at})
        for number, (node, at, text) in enumerate(sorted(log, key=lambda one: one[1]))
    ]


def places_of(log: list[tuple[str, int, str]], by: Axis) -> list[tuple[str, int, str]]:
    """Returns for each record its node, its position on the axis, and its text."""
    seen, found = Counter[str](), list[tuple[str, int, str]]()
    for event in numbered(log):
        size = 1 if by == "records" else len(encode_value(event.value))
        place = event.value["n"] if by == "sequence" else seen[event.stream]
        seen[event.stream] += size
        found.append((event.stream, place, event.value["text"]))
    return found


@given(logs, st.sampled_from(["records", "bytes", "sequence"]), counted, orders, st.integers(1, 3))
@settings(max_examples=examples(150), deadline=None)
def test_windows_that_are_not_full_come_out(
    log: list[tuple[str, int, str]],
    by: Axis,
    size: tuple[int, int, int | None],
    order: Order,
    reducers: int,
) -> None:
    """Over records, bytes or numbers: every window comes out once that begins no earlier than the
    first pane of all and has a pane between the first and the last record of a node, though another
    has no record at all, and says that nothing is missing of it; no other does."""
    size = (size[0] * 30, size[1] * 30, size[2] and size[2] * 30) if by == "bytes" else size
    run = ms.testing.run(a_counting_app(by, size, order, reducers), numbered(log), final=True)
    assert run.dead_letters == []
    length, slide, pane = size
    found: dict[int, Counter[str]] = {}
    for event in run.stream("counts.windows"):
        found.setdefault(event.value["from"], Counter())
        assert event.value["why"] in ("complete", "time")
        assert event.value["coverage"]["missing"] == {}
        assert event.value["completeness"]["records"] == 1.0
    assert len(run.stream("counts.windows")) == len(found) * reducers
    for event in run.stream("counts"):
        found[event.value["from"]][event.key] += event.value["value"]["sum"]
    places = places_of(log, by)
    step = pane or gcd(length, slide)
    ranges = {
        node: ([at // step * step for name, at, _ in places if name == node])
        for node in {node for node, _, _ in places}
    }
    first = min(min(panes) for panes in ranges.values())
    begins = [
        begin
        for begin in range(first, max(at for _, at, _ in places) + 1)
        if begin % slide == 0
        and any(min(panes) < begin + length and begin <= max(panes) for panes in ranges.values())
    ]
    assert sorted(found) == begins
    for begin in begins:
        inside = [text for _, at, text in places if begin <= at < begin + length]
        assert found[begin] == Counter("".join(inside))


@given(
    logs,
    st.sampled_from(["records", "bytes", "sequence"]),
    counted,
    st.integers(1, 3),
    cuttings,
    st.integers(1, 4),
    lanes,
)
@settings(max_examples=examples(40), deadline=None)
def test_the_engine_ends_them_too(
    log: list[tuple[str, int, str]],
    by: Axis,
    size: tuple[int, int, int | None],
    reducers: int,
    cuts: list[int],
    shards: int,
    lane: Lane,
) -> None:
    """This holds for any batches, lanes and shards."""
    app = a_counting_app(by, size, "event-time", reducers)
    check_engine_is_reference(app, numbered(log), cuts, shards, lane)


@given(logs, st.sampled_from(["records", "bytes", "sequence"]), counted, cuttings, lanes)
@settings(max_examples=examples(30), deadline=None)
def test_the_engine_ends_them_in_arrival_order(
    log: list[tuple[str, int, str]],
    by: Axis,
    size: tuple[int, int, int | None],
    cuts: list[int],
    lane: Lane,
) -> None:
    """The same windows with the same values, though their times are those of the batches."""
    app = a_counting_app(by, size, "arrival")
    engine = run_in_batches(app, numbered(log), cuts, 2, lane)
    run = ms.testing.run(app, numbered(log), final=True)
    for stream in ("counts", "counts.windows"):
        found, expected = (
            sorted(
                (one.value["from"], one.key, one.value.get("value", {}).get("sum")) for one in of
            )
            for of in (engine.streams.get(stream, []), run.stream(stream))
        )
        assert found == expected


def test_records_after_the_end_are_late() -> None:
    """Records for the window that the end has closed count as late, and its answer said that there
    may be some. The next window is not affected."""
    app = a_counting_app("records", (4, 4, None), "arrival")
    log = [("a", at, "x") for at in range(6)]
    run = ms.testing.run(app, numbered(log), final=True)
    first, second = (one.value for one in run.stream("counts"))
    assert (first["from"], second["from"]) == (0, 4)
    assert (second["bounds"]["method"], second["bounds"]["final"]) == ("on time", False)
    more = [Event("a", 10_000 + at, "", {"text": "y", "n": at}) for at in range(4)]
    run.feed(more).final()
    answers = [(one.value["from"], one.key) for one in run.stream("counts")]
    assert answers == [(0, "x"), (4, "x"), (8, "y")]
    assert run.stream("counts.windows")[-1].value["completeness"]["late"] > 0


@given(logs, sizes, orders)
@settings(max_examples=examples(60), deadline=None)
def test_a_node_without_a_record_holds_nothing_up(
    log: list[tuple[str, int, str]], size: tuple[int, int, int | None], order: Order
) -> None:
    """Windows of time in either order: all of them come out, with all of their records."""
    length, slide, pane = size
    app = ms.App("logs", order=order)
    for node in (*NODES, "c"):
        app.source(node)
    job = Job(
        map=letters,
        combine=ms.algebra.sum(),
        range=f"{length}ms",
        slide=f"{slide}ms",
        pane=None if pane is None else f"{pane}ms",
    )
    app.add(job, name="counts", nodes=[*NODES, "c"])
    run = ms.testing.run(app, sorted(events_of(log), key=lambda one: one.ts), final=True)
    found = {one.value["from"] // 1_000: Counter[str]() for one in run.stream("counts.windows")}
    for event in run.stream("counts"):
        found[event.value["from"] // 1_000][event.key] += event.value["value"]["sum"]
    step = pane or gcd(length, slide)
    first, last = min(ts for _, ts, _ in log) // step * step, max(ts for _, ts, _ in log)
    begins = [begin for begin in range(0, last + 1, slide) if begin >= first]
    assert sorted(found) == begins
    for begin in begins:
        inside = [text for _, ts, text in log if begin <= ts < begin + length]
        assert found[begin] == Counter("".join(inside))
