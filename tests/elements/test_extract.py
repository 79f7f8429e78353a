"""extract: fields out of a text."""

from __future__ import annotations

import re
from typing import Any

import pytest
from elements.example_files import check_page, run_example, told
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.elements import Extract
from millstream.errors import DefinitionError

PATTERN = r"(?P<a>[a-z]+)( (?P<n>-?\d+))?"


def app_of(**configured: Any) -> ms.App:
    app = ms.App("extracting")
    app.source("lines")
    app.output("found")
    given = {"pattern": PATTERN, **configured}
    app.add(Extract(**given), keys="lines", name="extract", publishes="found")
    return app


@settings(max_examples=examples(80))
@given(
    texts=st.lists(st.text("ab 12-é\n", max_size=8) | st.none(), max_size=5),
    unmatched=st.sampled_from(["drop", "pass"]),
    numbers=st.booleans(),
)
def test_it_extracts_as_defined(texts: list[str | None], unmatched: str, numbers: bool) -> None:
    """The groups of the first match are fields beside the others; what does not match is dropped
    or passed on."""
    configured = {"types": {"n": "int"}} if numbers else {}
    run = ms.testing.run(
        app_of(unmatched=unmatched, **configured),
        [("lines", n, f"k{n}", {"line": text, "a": "old"}) for n, text in enumerate(texts)],
    )
    expected = []
    for n, text in enumerate(texts):
        match = None if text is None else re.search(PATTERN, text)
        value: dict[str, Any] = {"line": text, "a": "old"}
        if match is not None:
            value |= match.groupdict()
            if numbers and value["n"] is not None:
                value["n"] = int(value["n"])
        if match is not None or unmatched == "pass":
            expected.append((n + 1, f"k{n}", value))
    assert [(event.ts, event.key, event.value) for event in run.stream("found")] == expected
    assert run.dead_letters == []


def test_numbers() -> None:
    """Whole ones and others; what is none is a dead letter."""
    app = app_of(pattern=r"(?P<i>\S+) (?P<f>\S+)", types={"i": "int", "f": "float"})
    lines = ["1 2.5", "-7 1e3", "+8 .5", "1_0 2", "1 nan", "1.0 2", "x 2"]
    run = ms.testing.run(app, [("lines", n, "", {"line": text}) for n, text in enumerate(lines)])
    found = [(event.value["i"], event.value["f"]) for event in run.stream("found")]
    assert found == [(1, 2.5), (-7, 1000.0), (8, 0.5)]
    errors = [letter.error for letter in run.dead_letters]
    assert len(errors) == 4
    assert "element 'extract': i must be int; got '1_0'" in errors[0]


@pytest.mark.parametrize("value", [{}, {"line": 5}, "line", None])
def test_what_is_no_text_is_a_dead_letter(value: Any) -> None:
    """An event without its text is kept as a dead letter, whatever happens to the others."""
    run = ms.testing.run(app_of(unmatched="pass"), [("lines", 1, "", value)])
    assert run.stream("found") == []
    (letter,) = run.dead_letters
    assert re.search("no field 'line'|field 'line' must be text", letter.error)


@pytest.mark.parametrize(
    ("configured", "message"),
    [
        ({"of": ""}, "of must name a field or a dotted path; got ''"),
        ({"pattern": "("}, r"pattern must be a regular expression; got '\('"),
        ({"pattern": "a+"}, "pattern must name its groups"),
        ({"unmatched": "keep"}, "unmatched must be one of 'drop', 'pass'; got str 'keep'"),
        ({"types": {"b": "int"}}, "types must name groups of the pattern, a, n; got 'b'"),
        ({"types": {"n": "bool"}}, "types must be a table"),
    ],
)
def test_a_wrong_configuration_is_refused(configured: dict[str, Any], message: str) -> None:
    """The error is raised when the element is made."""
    with pytest.raises(DefinitionError, match=f"^element Extract: {message}"):
        app_of(**configured)


def test_the_example_emits_what_the_page_says() -> None:
    """examples/elements/extract.toml over its data gives the lines of docs/elements/extract.md."""
    check_page("extract.md", "extract")
    run = run_example("extract")
    assert [event.value for event in run.stream("failures")] == told("extract.md")
    assert run.dead_letters == []
