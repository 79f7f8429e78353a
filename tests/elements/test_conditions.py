"""Conditions on an event's fields: their meaning, and the definitions that are refused."""

from __future__ import annotations

import pickle
import re
from typing import Any

import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from millstream.elements.conditions import WORDS, conditions
from millstream.errors import DefinitionError

scalars = st.sampled_from(["", "a", "ab", "b", 0, 1, 2, 1.5, 1.0, True, False])
numbers_or_text = scalars.filter(lambda one: not isinstance(one, bool))
said = st.one_of(
    st.tuples(st.sampled_from(["is", "is_not", "contains"]), scalars),
    st.tuples(st.sampled_from(["at_least", "above", "at_most", "below"]), numbers_or_text),
    st.tuples(st.sampled_from(["one_of", "none_of"]), st.lists(scalars, min_size=1, max_size=3)),
    st.tuples(st.just("matches"), st.sampled_from(["^a", "b$", "", "a|1"])),
    st.tuples(st.just("present"), st.booleans()),
)
fields = scalars | st.none() | st.lists(scalars, max_size=3)
values = st.dictionaries(
    st.sampled_from("xyz"), fields | st.dictionaries(st.sampled_from("xy"), fields)
)
tables = st.dictionaries(
    st.sampled_from(["x", "y", "x.y", "x.x"]),
    scalars | st.lists(said, min_size=1, max_size=2).map(dict),
    min_size=1,
    max_size=3,
)


def equal(one: Any, other: Any) -> bool:
    """Equal as JSON is: true is not 1."""
    return (type(one) is bool) == (type(other) is bool) and bool(one == other)


def defined(found: Any, word: str, operand: Any) -> bool:
    """True if a condition holds for a field, by definition. None is a missing field."""
    text = type(found) is str and type(operand) is str
    number = type(found) in (int, float) and type(operand) in (int, float)
    match word:
        case "is" | "is_not":
            return equal(found, operand) == (word == "is")
        case "one_of" | "none_of":
            return any(equal(found, one) for one in operand) == (word == "one_of")
        case "present":
            return operand == (found is not None)
        case "matches":
            return text and re.search(operand, found) is not None
        case "contains":
            listed = type(found) is list and any(equal(one, operand) for one in found)
            return listed or (text and operand in found)
    if not (text or number):
        return False
    by_order: dict[str, bool] = {
        "at_least": found >= operand,
        "above": found > operand,
        "at_most": found <= operand,
        "below": found < operand,
    }
    return by_order[word]


def holds(value: dict[str, Any], table: dict[str, Any]) -> bool:
    """True if a whole table of conditions holds, by definition."""
    results = []
    for path, words in table.items():
        found: Any = value
        for step in path.split("."):
            found = found.get(step) if type(found) is dict else None
        some = words if type(words) is dict else {"is": words}
        results += [defined(found, word, operand) for word, operand in some.items()]
    return all(results)


@settings(max_examples=examples(120))
@given(value=values, table=tables)
def test_they_hold_as_defined(value: dict[str, Any], table: dict[str, Any]) -> None:
    """Every word means what it says, of fields of any type, and nothing fails."""
    assert conditions(table, "here: where").hold(value) == holds(value, table)


@given(value=scalars | st.none() | st.lists(scalars))
def test_a_value_without_fields_has_none(value: Any) -> None:
    """A value that is no object is as one without the field."""
    assert not conditions({"x": {"present": True}}, "here: where").hold(value)
    assert conditions({"x": {"present": False}}, "here: where").hold(value)


def test_all_words_are_tried_above() -> None:
    """The definition knows every word that there is."""
    tried = {"is", "is_not", "contains", "at_least", "above", "at_most", "below"}
    assert set(WORDS) == tried | {"one_of", "none_of", "matches", "present"}


def test_they_can_be_sent() -> None:
    """Conditions can be pickled, as Spark does on the way to its workers."""
    table = {"x": {"matches": "^a", "one_of": ["a"]}, "y": {"above": 3}}
    built = conditions(table, "here: where")
    assert pickle.loads(pickle.dumps(built)) == built


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "must be a table of fields"),
        ("x", "must be a table of fields"),
        ({"": 1}, "must name fields or dotted paths; got ''"),
        ({"a..b": 1}, "must name fields or dotted paths; got 'a..b'"),
        ({"x": {}}, "must give 'x' a condition"),
        ({"x": [1]}, r"must give 'x' a constant .* one_of"),
        ({"x": {"atleast": 1}}, "got 'atleast'; did you mean 'at_least'?"),
        ({"user": {"bot": False}}, r'within it, in quotes: "user\.bot"\); got \'bot\'; there are:'),
        ({"x": {"at_least": True}}, "must give at_least of 'x' a number or text; got bool True"),
        ({"x": {"below": [1]}}, "must give below of 'x' a number or text; got list"),
        ({"x": {"one_of": "a"}}, "must give one_of of 'x' a list of constants"),
        ({"x": {"none_of": []}}, "must give none_of of 'x' a list of constants"),
        ({"x": {"one_of": [["a"]]}}, "must give one_of of 'x' a list of constants"),
        ({"x": {"present": 1}}, "must give present of 'x' true or false; got int 1"),
        ({"x": {"matches": "("}}, "must give matches of 'x' a regular expression; got '\\('"),
        ({"x": {"matches": 5}}, "must give matches of 'x' a regular expression; got 5"),
        ({"x": {"is": {"a": 1}}}, "must give is of 'x' text, a number, true or false; got dict"),
        ({"x": {"contains": None}}, "must give contains of 'x' text, a number, true or false"),
    ],
)
def test_what_means_nothing_is_refused(table: Any, message: str) -> None:
    """The error is raised when the condition is built, and says what is expected and what was
    given."""
    with pytest.raises(DefinitionError, match=f"^here: where .*{message}"):
        conditions(table, "here: where")
