"""split: a text into its words."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from elements.example_files import check_page, run_example, told
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.elements import Split
from millstream.errors import DefinitionError

texts = st.lists(
    st.sampled_from(["The", "the", "cat", "don't", "'tis", "1st", "É", "é", ",", "-", "a.b"]),
    max_size=8,
).map(" ".join) | st.text(max_size=20)


def app_of(**configured: Any) -> ms.App:
    app = ms.App("splitting")
    app.source("quotes")
    app.output("words")
    app.add(Split(**configured), keys={"quotes": "*"}, name="split", publishes="words")
    return app


@settings(max_examples=examples(80))
@given(
    given=st.lists(st.tuples(st.integers(0, 5), texts), max_size=5),
    lower=st.booleans(),
    pattern=st.sampled_from([None, r"\S+", "(t)(h)e", "x*"]),
)
def test_it_splits_as_defined(given: Any, lower: bool, pattern: str | None) -> None:
    """There is an event for each different word of each text, keyed by the word, with its number of
    occurrences."""
    configured = {"lower": lower} | ({} if pattern is None else {"pattern": pattern})
    run = ms.testing.run(
        app_of(**configured), [("quotes", ts, "k", {"text": text}) for ts, text in given]
    )
    words = []
    for ts, text in given:
        shown = text.lower() if lower else text
        found = [one[0] for one in re.finditer(pattern or r"\w+(?:['’]\w+)*", shown)]  # noqa: RUF001
        counts = Counter(word for word in found if word != "")
        words += [(ts + 1, word, {"word": word, "count": n}) for word, n in counts.items()]
    emitted = [(event.ts, event.key, event.value) for event in run.stream("words")]
    assert sorted(emitted, key=repr) == sorted(words, key=repr)
    assert run.dead_letters == []


def test_a_field_within_a_field() -> None:
    """`of` is a dotted path."""
    run = ms.testing.run(app_of(of="a.b"), [("quotes", 1, "", {"a": {"b": "Hi hi"}})])
    assert [event.value for event in run.stream("words")] == [{"word": "hi", "count": 2}]


@pytest.mark.parametrize("value", [{}, {"text": 5}, {"text": None}, "text", None])
def test_what_is_no_text_is_a_dead_letter(value: Any) -> None:
    """An event without its text is kept as a dead letter."""
    run = ms.testing.run(app_of(), [("quotes", 1, "", value)])
    assert run.stream("words") == []
    (letter,) = run.dead_letters
    assert re.search("no field 'text'|field 'text' must be text", letter.error)


@pytest.mark.parametrize(
    ("configured", "message"),
    [
        ({"of": ""}, "of must name a field or a dotted path; got ''"),
        ({"of": 5}, "of must be text; got int 5"),
        ({"pattern": "("}, "pattern must be a regular expression; got '\\('"),
        ({"lower": "no"}, "lower must be true or false; got str 'no'"),
    ],
)
def test_a_wrong_configuration_is_refused(configured: dict[str, Any], message: str) -> None:
    """The error is raised when the element is made."""
    with pytest.raises(DefinitionError, match=f"^element Split: {message}"):
        Split(**configured)


def test_the_example_emits_what_the_page_says() -> None:
    """examples/elements/split.toml over its data gives the lines of docs/elements/split.md."""
    check_page("split.md", "split")
    run = run_example("split")
    assert [event.value for event in run.stream("words")] == told("split.md")
    assert run.dead_letters == []
