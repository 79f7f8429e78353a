"""forward: events on to other streams, under another key, with other fields."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from elements.example_files import check_page, run_example, told
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.elements import Forward
from millstream.errors import DefinitionError

leaves = st.sampled_from([1, "x", None, [1], {}])
inner = st.dictionaries(st.sampled_from("abc"), leaves, max_size=3)
values = st.dictionaries(st.sampled_from("abc"), leaves | inner, max_size=3)
paths = st.sampled_from(["a", "b", "a.b", "b.a", "b.c", "c.c.c"])
names = st.sampled_from("abd")


def app_of(keys: object, **configured: Any) -> ms.App:
    app = ms.App("forwarding")
    app.source("visits")
    app.output("on")
    app.add(Forward(**configured), keys=keys, name="forward", publishes="on")
    return app


def at(value: Any, path: str) -> list[Any]:
    """The field, in a list, or nothing."""
    for step in path.split("."):
        if type(value) is not dict or step not in value:
            return []
        value = value[step]
    return [value]


def defined(value: Any, select: list[str] | None, rename: Any, add: Any) -> Any:
    """The definition of the result for a value."""
    out: Any = deepcopy(value) if select is None else {}
    for path in select or []:
        for found in at(value, path):
            holder = out
            for step in path.split(".")[:-1]:
                holder = holder.setdefault(step, {})
            holder[path.split(".")[-1]] = deepcopy(found)
    for old in rename.values():
        if at(out, old):
            *above, last = old.split(".")
            (holder,) = at(out, ".".join(above)) if above else [out]
            del holder[last]
    for new, old in rename.items():
        for found in at(value, old):
            out[new] = deepcopy(found)
    return out | add


@settings(max_examples=examples(80))
@given(
    value=values,
    select=st.none() | st.lists(paths, max_size=3),
    rename=st.dictionaries(names, paths, max_size=2),
    add=st.dictionaries(names, st.sampled_from([1, "x", True]), max_size=2),
)
def test_fields_as_defined(value: Any, select: Any, rename: Any, add: Any) -> None:
    """Fields are selected, moved and added, in this order. Missing fields are left out."""
    app = app_of("visits", select=select, rename=rename, add=add)
    run = ms.testing.run(app, [("visits", 5, "ann", value)])
    assert [tuple(event) for event in run.stream("on")] == [
        ("on", 6, "ann", defined(value, select, rename, add))
    ]
    assert run.dead_letters == []


@settings(max_examples=examples(60))
@given(value=values, select=st.lists(paths), rename=st.dictionaries(names, paths))
def test_the_input_is_left_as_it_is(value: Any, select: Any, rename: Any) -> None:
    """Other functions get the same event unchanged."""
    before = deepcopy(value)
    for chosen in (select, None):
        element = Forward(select=chosen, rename=rename, add={"new": 1})
        list(element.process_event(ms.Event("visits", 5, "ann", value)))
    assert value == before


@settings(max_examples=examples(60))
@given(value=values | leaves | st.binary())
def test_without_more_it_passes_everything_on(value: Any) -> None:
    """Nothing configured: the same value, of whatever kind, to every stream, under the new key."""
    app = app_of({"visits": "*"})
    run = ms.testing.run(app, [("visits", 5, "ann", value)])
    assert [tuple(event) for event in run.stream("on")] == [("on", 6, "", value)]


def test_a_value_without_fields_is_a_dead_letter() -> None:
    """Where fields are to be selected there must be some."""
    run = ms.testing.run(app_of("visits", select=["a"]), [("visits", 5, "ann", "text")])
    assert run.stream("on") == []
    assert "the value must be an object" in run.dead_letters[0].error


@pytest.mark.parametrize(
    ("configured", "message"),
    [
        ({"select": "a"}, "select must be a list of text; got str 'a'"),
        ({"select": ["a", "b."]}, "select must name fields or dotted paths; got 'b.'"),
        ({"rename": {"a": ""}}, "rename must name fields or dotted paths; got ''"),
        ({"rename": {"a.b": "c"}}, "rename must have names of fields without a dot .* got 'a.b'"),
        ({"add": {"": 1}}, "add must have names of fields without a dot .* got ''"),
        ({"add": {"a": object()}}, "add must hold constants that JSON can"),
        ({"rename": {"a": 1}}, "rename must be a table; got dict"),
    ],
)
def test_a_wrong_configuration_is_refused(configured: dict[str, Any], message: str) -> None:
    """The error is raised when the element is made."""
    with pytest.raises(DefinitionError, match=f"^element Forward: {message}"):
        Forward(**configured)


def test_the_example_emits_what_the_page_says() -> None:
    """examples/elements/forward.toml over its data gives the lines of docs/elements/forward.md."""
    check_page("forward.md", "forward")
    run = run_example("forward")
    assert [event.value for event in run.stream("purchases")] == told("forward.md")
    assert {event.key for event in run.stream("purchases")} <= {"US", "CA", "DE"}
    assert run.dead_letters == []
