"""concat: one field, or the key, from several."""

from __future__ import annotations

import re
from typing import Any

import pytest
from elements.example_files import check_page, run_example, told

import millstream as ms
from millstream.elements import Concat
from millstream.errors import DefinitionError

VALUE = {"host": "web1", "port": 80, "load": 0.5, "up": True, "at": {"city": "Bern"}}


def outcome(value: Any = VALUE, **configured: Any) -> ms.testing.Run:
    app = ms.App("concatenating")
    app.source("given")
    app.output("made")
    app.add(Concat(**configured), keys="given", name="concat", publishes="made")
    return ms.testing.run(app, [("given", 1, "k", value)])


@pytest.mark.parametrize(
    ("configured", "text"),
    [
        ({"template": "{host}:{port}"}, "web1:80"),
        ({"template": "{{{at.city}}} {load}/{up}"}, "{Bern} 0.5/true"),
        ({"template": "constant"}, "constant"),
        ({"template": ""}, ""),
        ({"of": ["host", "at.city"]}, "web1 Bern"),
        ({"of": ["port", "up"], "separator": ""}, "80true"),
    ],
)
def test_a_field_or_the_key(configured: dict[str, Any], text: str) -> None:
    """The same text, as a field beside the others or as the key."""
    (event,) = outcome(to="name", **configured).stream("made")
    assert (event.key, event.value) == ("k", {**VALUE, "name": text})
    (event,) = outcome(to="@key", **configured).stream("made")
    assert (event.key, event.value) == (text, VALUE)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"port": 1}, "element 'concat': the value has no field 'host'"),
        ({"host": None}, "field 'host' must be text, a number, true or false; got NoneType None"),
        ({"host": [1]}, "field 'host' must be text, a number, true or false; got list"),
        ("host", "the value has no field 'host'"),
    ],
)
def test_what_cannot_be_text_is_a_dead_letter(value: Any, message: str) -> None:
    """Nothing is made up for a field that is not there."""
    run = outcome(value, to="name", template="{host}!")
    assert run.stream("made") == []
    (letter,) = run.dead_letters
    assert message in letter.error


@pytest.mark.parametrize(
    ("configured", "message"),
    [
        ({"to": "a.b", "template": "x"}, "to must be the name of a field, without a dot"),
        ({"to": "a"}, "template must be given"),
        ({"to": "a", "template": "x", "of": ["b"]}, "template must be given"),
        ({"to": "a", "of": []}, "of must name at least one field"),
        ({"to": "a", "of": ["b."]}, "of must name fields or dotted paths; got 'b.'"),
        ({"to": "a", "template": "{}"}, "template must have fields"),
        ({"to": "a", "template": "{b"}, "template must have fields"),
        ({"to": "a", "template": "b}"}, "template must have fields"),
        ({"to": "a", "template": "{a..b}"}, "template must have fields"),
        ({"to": "a", "template": 5}, "template must be text; got int 5"),
    ],
)
def test_a_wrong_configuration_is_refused(configured: dict[str, Any], message: str) -> None:
    """The error is raised when the element is made."""
    with pytest.raises(DefinitionError, match=f"^element Concat: {re.escape(message)}"):
        Concat(**configured)


def test_the_example_emits_what_the_page_says() -> None:
    """examples/elements/concat.toml over its data gives the lines of docs/elements/concat.md."""
    check_page("concat.md", "concat")
    run = run_example("concat")
    assert [event.value for event in run.stream("titled")] == told("concat.md")
    assert [event.key for event in run.stream("titled")][:1] == ["web1 at 09:00"]
    assert run.dead_letters == []
