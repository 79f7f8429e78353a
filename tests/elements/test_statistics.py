"""sum, mean, min and max: running aggregates of a number."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from elements.both import check_engine_is_reference, cuttings, lanes
from elements.example_files import check_page, run_example, told
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.app_file.app_file import read_app
from millstream.codec import encode_value
from millstream.elements import STANDARD, Max, Mean, Min, Sum
from millstream.engine.horizon import Lane
from millstream.errors import DefinitionError

NAMES = ("sum", "mean", "min", "max")
EXAMPLES = {"sum": "takings", "mean": "averages", "min": "cheapest", "max": "dearest"}
"""The output stream of each example."""
END = 709
"""A time at which no `every` of these tests ends, nor just after it."""

numbers = (
    st.integers(-5, 5)
    | st.integers(-(10**20), 10**20)
    | st.sampled_from([0.1, 0.2, 0.3, 0.0, -0.0, 1.0, 1e300, -1e300, 5e-324])
    | st.floats(-1e6, 1e6)
)
sales = st.lists(
    st.tuples(
        st.integers(0, 30) | st.integers(0, 600), st.sampled_from(["ann", "bob", ""]), numbers
    ),
    max_size=20,
)
schedules = st.sampled_from([(None, 1), (None, 3), (7, None), (100, 2)])
Sales = list[tuple[int, str, Any]]
Schedule = tuple[int | None, int | None]


def app_of(name: str, schedule: Schedule, of: str | None = "paid.price") -> ms.App:
    every, every_events = schedule
    app = ms.App("adding", order="event-time")
    app.source("sales", lateness="40us")
    app.output("totals")
    app.add(
        STANDARD[name](of=of),  # type: ignore[call-arg]
        keys={"sales": "@key"},
        name="total",
        publishes="totals",
        every=None if every is None else f"{every}us",
        every_events=every_events,
    )
    return app


def events_of(given: Sales) -> list[ms.Event]:
    return [ms.Event("sales", ts, key, {"paid": {"price": price}}) for ts, key, price in given]


def defined(name: str, some: list[Any]) -> dict[str, Any]:
    """The definition of each element's result for some numbers."""
    if name in ("min", "max"):
        return {name: min(some) if name == "min" else max(some)}
    total = sum(map(Fraction, some), Fraction(0))
    shown: int | float = total.numerator if total.denominator == 1 else float(total)
    if isinstance(shown, int) and abs(shown) >= 2**128:
        shown = float(shown)
    if name == "sum":
        return {"sum": shown}
    return {"mean": float(total / len(some)), "count": len(some), "sum": shown}


def totals(name: str, given: Sales, schedule: Schedule) -> list[tuple[int, str, dict[str, Any]]]:
    """The definition of an element's output: (ts, key, value)."""
    every, every_events = schedule
    emitted = []
    for key in {user for _, user, _ in given}:
        mine = sorted(events_of([one for one in given if one[1] == key]), key=_content)
        prices = [event.value["paid"]["price"] for event in mine]
        if every_events is not None:
            for n in range(every_events, len(mine) + 1, every_events):
                emitted.append((mine[n - 1].ts + 1, key, defined(name, prices[:n])))
        if every is not None:
            for end in range(every, END + 1, every):
                before = [p for event, p in zip(mine, prices, strict=True) if event.ts < end]
                if before:
                    emitted.append((end, key, defined(name, before)))
    return emitted


def _content(event: ms.Event) -> tuple[int, bytes]:
    return event.ts, encode_value(event.value)


@settings(max_examples=examples(80))
@given(name=st.sampled_from(NAMES), given=sales, schedule=schedules)
def test_they_say_what_is_defined(name: str, given: Sales, schedule: Schedule) -> None:
    """The elements emit the exact sum, the mean rounded once, the least and the greatest so far."""
    closing = ms.Event("sales", END, "end", {"paid": {"price": 0}})
    run = ms.testing.run(app_of(name, schedule), [*events_of(given), closing])
    emitted = [(e.ts, e.key, dict(e.value)) for e in run.stream("totals") if e.key != "end"]
    assert all(value.pop("key") == key for _, key, value in emitted)
    wanted = totals(name, given, schedule)
    assert len(emitted) == len(wanted)
    for one in wanted:
        emitted.remove(one)
    assert run.dead_letters == []


@settings(max_examples=examples(50))
@given(
    name=st.sampled_from(NAMES),
    given=sales,
    schedule=schedules,
    cuts=cuttings,
    shards=st.integers(1, 5),
    lane=lanes,
)
def test_the_engine_says_what_the_reference_says(
    name: str, given: Sales, schedule: Schedule, cuts: list[int], shards: int, lane: Lane
) -> None:
    """For any batches and shards, in event-time order the engine gives the same bytes."""
    app = app_of(name, schedule)
    check_engine_is_reference(app, events_of(given), cuts, shards, lane)


@settings(max_examples=examples(40))
@given(name=st.sampled_from(NAMES), given=sales)
def test_the_slate_is_that_of_the_aggregate(name: str, given: Sales) -> None:
    """The slate of an element equals that of an aggregate with the same algebra."""
    app = app_of(name, (None, 1))
    built = getattr(ms.algebra, name)
    app.aggregate("sales", algebra=built("paid.price"), name="aggregate")
    run = ms.testing.run(app, events_of(given))
    held = {key: slate.total for key, slate in run.slates("total").items()}
    assert json.dumps(held) == json.dumps(run.slates("aggregate"))


def test_without_of_the_value_itself_is_meant() -> None:
    """A stream of bare numbers needs no field."""
    app = app_of("sum", (None, 2), of=None)
    run = ms.testing.run(app, [("sales", 1, "ann", 2), ("sales", 2, "ann", 0.5)])
    assert [event.value for event in run.stream("totals")] == [{"key": "ann", "sum": 2.5}]


@pytest.mark.parametrize("value", [{}, {"paid": 3}, {"paid": {"price": "3"}}, {"paid": None}])
def test_what_is_no_number_is_a_dead_letter(value: Any) -> None:
    """An event without its number is kept as a dead letter, and changes nothing."""
    run = ms.testing.run(app_of("mean", (None, 1)), [("sales", 1, "ann", value)])
    assert run.stream("totals") == []
    assert run.slates("total") == {}
    (letter,) = run.dead_letters
    assert "mean('paid.price')" in letter.error


@pytest.mark.parametrize("kind", [Sum, Mean, Min, Max])
@pytest.mark.parametrize("of", [5, "", "a..b", ["price"]])
def test_a_field_must_be_named(kind: Any, of: Any) -> None:
    """Another thing than the name of a field is refused when the element is made."""
    with pytest.raises(DefinitionError, match=rf"^element {kind.__name__}: of must be a field"):
        kind(of=of)


def test_a_file_is_told_the_line(tmp_path: Path) -> None:
    """In a file, a wrong property is refused at its line."""
    file = tmp_path / "app.toml"
    file.write_text(
        "[app]\nname = 'x'\n[streams.sales]\nsource = true\n"
        "[elements.total]\nelement = 'sum'\nkeys = { sales = 'shop' }\nof = 5\n"
    )
    with pytest.raises(
        DefinitionError, match=r"app\.toml:8: element 'total': of must be .*; got 5"
    ):
        read_app(file)


@pytest.mark.parametrize("name", NAMES)
def test_the_example_emits_what_the_page_says(name: str) -> None:
    """The example files over their data give the lines of docs/elements/statistics.md."""
    check_page("statistics.md", name)
    run = run_example(name)
    lines = [line for line in told("statistics.md") if name in line]
    if name == "sum":  # the mean's lines have the sum too
        lines = [line for line in lines if "mean" not in line]
    assert [event.value for event in run.stream(EXAMPLES[name])] == lines
    assert run.dead_letters == []
