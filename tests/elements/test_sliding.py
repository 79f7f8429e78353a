"""sliding: aggregates over the last so many slots of time."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from elements.both import check_engine_is_reference, cuttings, lanes
from elements.example_files import check_page, run_example, told
from engine.in_process import InProcess
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.app_file.app_file import read_app
from millstream.codec import encode_value
from millstream.elements import Sliding
from millstream.engine.horizon import Lane
from millstream.errors import DefinitionError

END = 1_003
"""A time just after which no `every` of these tests ends."""

AGGREGATES = {
    "serves": {"name": "count", "stream": "serves"},
    "clicks": {"name": "count", "where": {"did": "click"}},
    "spent": {"name": "sum", "of": "price", "stream": "clicks"},
    "dearest": {"name": "max", "of": "price", "where": {"did": "click"}},
}
RATIOS = {"ctr": ["clicks", "serves"], "each": ["spent", "clicks"], "odd": ["serves", "dearest"]}

times = st.integers(0, 60) | st.integers(0, 900)
ads = st.sampled_from(["x", "y"])
serves = st.tuples(st.just("serves"), times, ads, st.just({"did": "serve"}))
clicked = st.builds(lambda price: {"did": "click", "price": price}, st.integers(0, 3))
clicks = st.tuples(st.just("clicks"), times, ads, clicked)
other = st.tuples(st.just("clicks"), times, ads, st.just({"did": "hover", "price": 0}))
"""In no aggregate but the sum of its stream."""
unheard = st.tuples(st.just("moves"), times, ads, st.sampled_from([{"did": 1}, {}, None]))
"""In no aggregate at all."""
inputs = st.lists(serves | clicks | other | unheard, max_size=25)
sizes = st.sampled_from([(10, 1, 1), (10, 4, 1), (10, 4, 2), (20, 24, 1), (1, 12, 6), (50, 3, 3)])
"""The microseconds of a slot, how many are a window, how many there are between outputs."""
Given = list[tuple[str, int, str, Any]]
Size = tuple[int, int, int]


def app_of(size: Size, aggregates: Any = None, order: Any = "event-time", **more: Any) -> ms.App:
    slot, slots, every = size
    app = ms.App("advertising", order=order)
    for stream in ("serves", "clicks", "moves"):
        app.source(stream, lateness="30us")
    app.output("windows")
    element = Sliding(
        slot=f"{slot}us",
        slots=slots,
        aggregates=AGGREGATES if aggregates is None else aggregates,
        ratios=RATIOS if aggregates is None else {},
    )
    keys = dict.fromkeys(("serves", "clicks", "moves"), "@key")
    every_us = f"{slot * every}us"
    app.add(element, keys=keys, name="windows_of", publishes="windows", every=every_us, **more)
    return app


def events_of(given: Given) -> list[ms.Event]:
    return [ms.Event(stream, ts, ad, value) for stream, ts, ad, value in given]


def divided(a: Any, b: Any) -> float | None:
    return a / b if a is not None and b else None


def values(inside: list[tuple[str, Any]]) -> dict[str, Any]:
    """The aggregates of events, as streams and values, by definition."""
    served = sum(stream == "serves" for stream, _ in inside)
    prices = [v["price"] for _, v in inside if v["did"] == "click"]
    spent = sum(v["price"] for stream, v in inside if stream == "clicks")
    dearest = max(prices, default=None)
    return {
        "serves": served,
        "clicks": len(prices),
        "spent": spent,
        "dearest": dearest,
        "ctr": divided(len(prices), served),
        "each": divided(spent, len(prices)),
        "odd": divided(served, dearest),
    }


def windows(given: Given, size: Size) -> list[tuple[int, str, dict[str, Any]]]:
    """The definition of sliding's output: (ts, key, value)."""
    slot, slots, every = size
    emitted = []
    for key in sorted({ad for _, _, ad, _ in given}):
        mine = [(ts, stream, value) for stream, ts, ad, value in given if ad == key]
        for end in range(slot * every, END + 1, slot * every):
            inside, before = (
                [(s, v) for ts, s, v in mine if 0 < to - ts <= slot * slots and s != "moves"]
                for to in (end, end - slot * every)
            )
            if inside or before:
                own = {"key": key, "from": end - slot * slots, "to": end, "late": 0}
                emitted.append((end, key, {**own, **values(inside)}))
    return emitted


@settings(max_examples=examples(50))
@given(given=inputs, size=sizes)
def test_it_emits_the_windows_as_defined(given: Given, size: Size) -> None:
    """At the end of slots it emits the aggregates of the events in the last slots, until empty."""
    closing = ms.Event("moves", END, "end", {})
    run = ms.testing.run(app_of(size), [*events_of(given), closing])
    emitted = [(e.ts, e.key, e.value) for e in run.stream("windows") if e.key != "end"]
    assert sorted(emitted, key=_when) == sorted(windows(given, size), key=_when)
    assert run.dead_letters == []


@settings(max_examples=examples(40))
@given(given=inputs, size=sizes, cuts=cuttings, shards=st.integers(1, 5), lane=lanes)
def test_the_engine_emits_what_the_reference_does(
    given: Given, size: Size, cuts: list[int], shards: int, lane: Lane
) -> None:
    """For any batches and shards, in event-time order the engine gives the same."""
    check_engine_is_reference(app_of(size), events_of(given), cuts, shards, lane)


@settings(max_examples=examples(40))
@given(given=inputs, size=sizes, cuts=cuttings, lane=lanes)
def test_in_order_of_arrival_the_windows_are_the_same(
    given: Given, size: Size, cuts: list[int], lane: Lane
) -> None:
    """If batches come in order of time, what is emitted does not depend on the order asked for."""
    events = sorted(events_of(given), key=lambda event: event.ts)
    events.append(ms.Event("moves", END, "end", {}))
    engine = InProcess(app_of(size, order="arrival").workflow(), lane=lane)
    for first, last in pairwise([0, *sorted(cuts), max(len(events), *cuts, 0)]):
        engine.batch(events[first:last])
    engine.settle(final=False)
    emitted = [(e.ts, e.key, e.value) for e in engine.streams.get("windows", [])]
    assert sorted(emitted, key=_when) == sorted(windows(given, size), key=_when)


def _when(one: tuple[int, str, Any]) -> tuple[int, str]:
    return one[:2]


@settings(max_examples=examples(40))
@given(given=inputs, size=sizes)
def test_it_holds_no_more_than_its_slots(given: Given, size: Size) -> None:
    """A slate has one partial a slot and no slot of before the window, and goes when it is over."""
    slot, slots, every = size
    run = ms.testing.run(app_of(size), events_of(given))
    reached = max((ts for _, ts, _, _ in given), default=0)
    for key, held in run.slates("windows_of").items():
        starts = [int(start) for start in held.partials]
        assert len(starts) == len(set(starts)) <= slots
        assert all(start % slot == 0 for start in starts)
        assert all(start >= held.due - slot * slots for start in starts)
        last = max(ts for _, ts, ad, _ in given if ad == key)
        assert reached - last < slot * (slots + 2 * every)


ARGUMENTS: dict[str, dict[str, Any]] = {
    "count": {},
    "histogram": {"of": "n", "width": 2},
    "quantiles": {"of": "n"},
    "top": {"k": 2, "of": "n"},
}
numbers = st.lists(st.tuples(st.integers(0, 99), st.integers(-3, 9)), min_size=1, max_size=12)


@pytest.mark.parametrize("name", ms.algebra.BUILT_IN)
@settings(max_examples=examples(10))
@given(given=numbers)
def test_every_algebra_of_the_library_can_slide(name: str, given: list[tuple[int, int]]) -> None:
    """Exact algebras emit their answer. Approximate ones emit the answer with its error, without
    their internal state."""
    arguments = ARGUMENTS.get(name, {"of": "n"})
    app = app_of((10, 10, 10), {"it": {"name": name, **arguments}})
    events = [ms.Event("serves", ts, "x", {"n": n}) for ts, n in given]
    run = ms.testing.run(app, [*events, ms.Event("moves", 109, "end", {})])
    algebra = ms.algebra.BUILT_IN[name](**arguments)
    ordered = sorted(events, key=lambda event: (event.ts, encode_value(event.value)))
    whole = algebra.write(reduce(algebra.merge, map(algebra.lift, ordered)))
    (emitted,) = [e.value["it"] for e in run.stream("windows") if e.key == "x"]
    if algebra.error is None:
        assert emitted == whole[name]
    else:
        assert emitted.items() <= whole.items()
        assert name in emitted
        assert not {"sketch", "buckets", "rest"} & set(emitted)


def test_late_events_are_counted_in_their_slot_or_as_late() -> None:
    """In order of arrival: in the window still to come, its slot takes it; else it is late."""
    app = app_of((10, 3, 1), {"n": "count"}, order="arrival")
    engine = InProcess(app.workflow(), shards=1)

    def windows_after(*ts: int) -> list[tuple[int, int, int]]:
        before = len(engine.streams.get("windows", ()))
        engine.batch([ms.Event("serves", one, "x", {}) for one in ts])
        engine.settle(final=False)
        found = engine.streams.get("windows", [])[before:]
        return [(event.value["to"], event.value["n"], event.value["late"]) for event in found]

    assert windows_after(5, 25) == [(10, 1, 0), (20, 1, 0)]
    assert windows_after(15) == []  # it counts in (30, ...): from 0 to 30
    assert windows_after(32) == [(30, 3, 0)]
    assert windows_after(9, 11) == []  # 9 is in no window that is still to come
    assert windows_after(45) == [(40, 4, 1)]
    assert windows_after(95) == [(50, 3, 1), (60, 2, 1), (70, 1, 1), (80, 0, 1)]
    assert engine.letters == []


def test_a_key_that_was_forgotten_begins_anew() -> None:
    """The empty window is emitted once; then nothing, until an event of the key comes again."""
    app = app_of((10, 2, 1), {"n": "count"})
    events = [ms.Event("serves", ts, "x", {}) for ts in (5, 95, 116)]
    run = ms.testing.run(app, events)
    emitted = [(e.value["to"], e.value["n"]) for e in run.stream("windows")]
    assert emitted == [(10, 1), (20, 1), (30, 0), (100, 1), (110, 1)]
    assert set(run.slates("windows_of")) == {"x"}
    assert run.feed([ms.Event("moves", 300, "y", {})]).slates("windows_of").keys() == {"y"}


def test_what_a_condition_means() -> None:
    """All of `where` must hold, as in filter; what no aggregate takes is no dead letter."""
    conditions = {
        "one": {"a": 1},
        "true": {"a": True},
        "both": {"a": 1, "b.c": "x"},
        "some": {"a": {"at_least": 1}, "b": {"present": False}},
    }
    aggregates = {n: {"name": "count", "where": w} for n, w in conditions.items()}
    app = app_of((10, 1, 1), aggregates)
    given = [{"a": 1}, {"a": 1.0, "b": {"c": "x"}}, {"a": True, "b": None}, {"a": [1]}, 5]
    events = [ms.Event("serves", n, "x", value) for n, value in enumerate(given)]
    run = ms.testing.run(app, [*events, ms.Event("moves", 15, "end", {})])
    (emitted,) = [e.value for e in run.stream("windows") if e.key == "x"]
    assert {name: emitted[name] for name in conditions} == {
        "one": 2,
        "true": 1,
        "both": 1,
        "some": 1,
    }
    assert run.dead_letters == []


def test_a_sum_without_its_number_is_a_dead_letter() -> None:
    """An event that one aggregate cannot take changes none of them."""
    app = app_of((10, 1, 1), {"n": "count", "spent": {"name": "sum", "of": "price"}})
    events = [ms.Event("serves", 1, "x", {"price": 2}), ms.Event("serves", 2, "x", {})]
    run = ms.testing.run(app, [*events, ms.Event("serves", 15, "end", {"price": 0})])
    (emitted,) = [e.value for e in run.stream("windows") if e.key == "x"]
    assert (emitted["n"], emitted["spent"]) == (1, 2)
    assert len(run.dead_letters) == 1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"slot": "0s"}, "slot must be a duration over 0; got '0s'"),
        ({"slot": "soon"}, "slot must be a duration such as"),
        ({"slots": 0}, "slots must be a whole number from 1 to 10000; got 0"),
        ({"slots": True}, "slots must be a whole number from 1 to 10000; got True"),
        ({"slots": "24"}, "slots must be a whole number from 1 to 10000; got '24'"),
        ({"aggregates": {}}, "aggregates must be a table of one or more"),
        ({"aggregates": "count"}, "aggregates must be a table of one or more"),
        ({"aggregates": {"n": "coutn"}}, "aggregates must name for 'n' .* did you mean 'count'"),
        ({"aggregates": {"n": {"of": "x"}}}, "aggregates must name for 'n' one of count, "),
        ({"aggregates": {"to": "count"}}, "aggregates must have names other than key, from, to"),
        (
            {"aggregates": {"n": {"name": "count", "of": "x"}}},
            r"the arguments of count \(stream, where",
        ),
        (
            {"aggregates": {"n": {"name": "sum", "of": 5}}},
            r"the arguments of sum; sum\(of=\) must be",
        ),
        (
            {"aggregates": {"n": {"name": "top", "k": 0}}},
            r"the arguments of top; top\(k=\) must be",
        ),
        ({"aggregates": {"n": {"name": "count", "stream": 1}}}, "'n' the name of a stream"),
        (
            {"aggregates": {"n": {"name": "count", "where": "x"}}},
            "must select the events of 'n': where must be a table",
        ),
        ({"aggregates": {"n": {"name": "count", "where": {"a": {"belw": 1}}}}}, "mean 'below'"),
        ({"ratios": ["count", "count"]}, "ratios must be a table"),
        ({"ratios": {"r": ["count"]}}, r"ratios must give 'r' two aggregates .*are: count\)"),
        ({"ratios": {"r": ["count", "x"]}}, "ratios must give 'r' two aggregates"),
        ({"ratios": {"count": ["count", "count"]}}, "ratios must have names other than .* count"),
    ],
)
def test_wrong_properties_are_refused(wrong: dict[str, Any], message: str) -> None:
    """Each error is raised when the element is made, and says what is expected and what was
    given."""
    with pytest.raises(DefinitionError, match=f"^element Sliding: .*{message}"):
        Sliding(**{"slot": "1h", "slots": 24, **wrong})


def test_a_ratio_is_of_numbers() -> None:
    """An answer that is no number is no part of a ratio."""
    aggregates = {"n": "count", "users": {"name": "distinct", "of": "user"}}
    with pytest.raises(DefinitionError, match=r"ratios must give 'r' two .*\(there are: n\)"):
        Sliding(slot="1h", slots=24, aggregates=aggregates, ratios={"r": ["n", "users"]})


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"every": "15m"}, "every must be the slot, 10m, or a multiple of it up to the window"),
        ({"every": "0s"}, "every must be the slot"),
        ({"every": "40m"}, "every must be the slot, 10m, .* window, 3 slots; got '40m'"),
        ({"every": "soon"}, "every must be a duration"),
        ({"every_events": 5}, "every_events must be left out"),
        ({"clock": "wall"}, "clock must be 'event'"),
        ({"ttl": "39m"}, "ttl must be as long as the window and every together or longer"),
        ({"keys": {"clicks": "ad"}}, "aggregates must be of streams that keys names"),
        ({"keys": None}, "keys must name the key's field for each stream"),
    ],
)
def test_wrong_placing_is_refused(wrong: dict[str, Any], message: str) -> None:
    """Windows are given out at the end of slots, over streams that it takes."""
    element = Sliding(slot="10m", slots=3, aggregates={"n": {"name": "count", "stream": "serves"}})
    app = ms.App("x")
    with pytest.raises(DefinitionError, match=f"^element 'rates': .*{message}"):
        app.add(element, **{"keys": {"serves": "ad"}, "name": "rates", **wrong})


def test_a_file_is_told_the_line(tmp_path: Path) -> None:
    """In a file, what is wrong is refused at its line."""
    file = tmp_path / "app.toml"
    file.write_text(
        "[app]\nname = 'x'\n[streams.serves]\nsource = true\n[elements.rates]\n"
        "element = 'sliding'\nkeys = { serves = 'ad' }\nslot = '1h'\nslots = 24\nevery = '90m'\n"
    )
    with pytest.raises(DefinitionError, match=r"app\.toml:10: element 'rates': every must be "):
        read_app(file)
    file.write_text(file.read_text().replace("'90m'", "'2h'").replace("24", "0"))
    with pytest.raises(DefinitionError, match=r"app\.toml:9: element 'rates': slots must be "):
        read_app(file)


def test_the_example_emits_what_the_page_says() -> None:
    """examples/elements/sliding.toml over its data gives the lines of docs/elements/sliding.md."""
    check_page("sliding.md", "sliding")
    run = run_example("sliding")
    assert [event.value for event in run.stream("rates")] == told("sliding.md")
    assert run.dead_letters == []
