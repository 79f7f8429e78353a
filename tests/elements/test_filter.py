"""filter: the events that conditions hold for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from elements.example_files import check_page, run_example, told
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.app_file.app_file import read_app
from millstream.elements import Filter
from millstream.errors import DefinitionError

WHERE = {"country": {"one_of": ["US", "CA"]}, "price": {"at_least": 10, "below": 100}}
values = st.fixed_dictionaries(
    {},
    optional={
        "country": st.sampled_from(["US", "CA", "DE", None, 1]),
        "price": st.sampled_from([9, 10, 10.5, 99, 100, "50", None, True]),
    },
)
some_events = st.lists(
    st.tuples(st.integers(0, 20), st.sampled_from(["a", "b"]), values), max_size=20
)


def app_of(keys: object, **configured: Any) -> ms.App:
    app = ms.App("filtering")
    app.source("sales")
    app.output("some")
    app.add(Filter(**configured), keys=keys, name="filter", publishes="some")
    return app


def wanted(value: dict[str, Any]) -> bool:
    """WHERE as plain Python."""
    price = value.get("price")
    return (
        value.get("country") in ("US", "CA") and type(price) in (int, float) and 10 <= price < 100
    )


def as_json(one: object) -> str:
    return json.dumps(one, sort_keys=True)


@settings(max_examples=examples(60))
@given(given=some_events, drop=st.booleans())
def test_it_passes_on_as_defined(given: list[Any], drop: bool) -> None:
    """Events for which the conditions hold are passed on unchanged, a microsecond later. With
    `drop`, the other ones are."""
    run = ms.testing.run(
        app_of("sales", where=WHERE, drop=drop), [("sales", *one) for one in given]
    )
    passed = [(event.ts, event.key, event.value) for event in run.stream("some")]
    wished = [(ts + 1, key, value) for ts, key, value in given if wanted(value) != drop]
    assert sorted(map(as_json, passed)) == sorted(map(as_json, wished))
    assert run.dead_letters == []


def test_it_may_give_another_key() -> None:
    """With a keyed attribute, what passes has that key."""
    app = app_of({"sales": "user.name"}, where={"user.bot": False})
    run = ms.testing.run(app, [("sales", 1, "x", {"user": {"name": "ann", "bot": False}})])
    assert [event.key for event in run.stream("some")] == ["ann"]


def test_it_may_publish_to_several() -> None:
    """Each stream that it publishes gets what passes."""
    app = ms.App("filtering")
    app.source("sales")
    app.output("one")
    app.output("two")
    app.add(Filter(where={"a": 1}), keys="sales", publishes=["one", "two"])
    run = ms.testing.run(app, [("sales", 1, "x", {"a": 1}), ("sales", 2, "x", {"a": 2})])
    assert [e.value for e in run.stream("one")] == [{"a": 1}]
    assert [e.value for e in run.stream("two")] == [{"a": 1}]


@pytest.mark.parametrize(
    ("configured", "message"),
    [
        ({"where": "x"}, "where must be a table; got str 'x'"),
        ({"where": {}}, "where must be a table of fields"),
        (
            {"where": {"x": {"atleast": 1}}},
            "where must use known words for 'x' .*did you mean 'at_least'",
        ),
        ({"where": {"x": 1}, "drop": 1}, "drop must be true or false; got int 1"),
    ],
)
def test_a_wrong_configuration_is_refused(configured: dict[str, Any], message: str) -> None:
    """The error is raised when the element is made."""
    with pytest.raises(DefinitionError, match=f"^element Filter: {message}"):
        Filter(**configured)


def test_it_must_publish() -> None:
    """A filter whose events go nowhere is a mistake, and refused."""
    app = ms.App("filtering")
    app.source("sales")
    with pytest.raises(DefinitionError, match="element 'filter': publishes must name a stream"):
        app.add(Filter(where={"x": 1}), keys="sales", name="filter")


def test_a_file_is_told_the_line(tmp_path: Path) -> None:
    """In a file, a wrong word is refused at its line, with the nearest right one."""
    file = tmp_path / "app.toml"
    file.write_text(
        "[app]\nname = 'x'\n[streams.sales]\nsource = true\n[streams.some]\noutput = true\n"
        "[elements.some_of_them]\nelement = 'filter'\nkeys = 'sales'\npublishes = 'some'\n"
        "where = { price = { at_lest = 5 } }\n"
    )
    with pytest.raises(DefinitionError, match=r"app\.toml:11: .*did you mean 'at_least'\?"):
        read_app(file)


def test_the_example_emits_what_the_page_says() -> None:
    """examples/elements/filter.toml over its data gives the lines of docs/elements/filter.md."""
    check_page("filter.md", "filter")
    run = run_example("filter")
    assert [event.value for event in run.stream("dear")] == told("filter.md")
    assert run.dead_letters == []
