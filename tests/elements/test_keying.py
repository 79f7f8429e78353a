"""The keyed attribute: a field, a path, several, none, the event's own, or a function."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.elements import Count
from millstream.elements.event_keys import ALL, OWN, attributes_of, key_of, split_key
from millstream.model.event import Event

SALE = {"shop": {"city": "Ulm", "no": 7}, "item": "pen|red", "count": 3, "paid": 2.5}


def key(attribute: Any, value: Any = SALE) -> str:
    return key_of(attribute, "element 'one'")(Event("sales", 1, "own", value))


def counted(keys: Any, *values: Any) -> ms.testing.Run:
    app = ms.App("shop")
    app.source("sales")
    app.add(Count(), keys=keys, name="count")
    return ms.testing.run(
        app, [Event("sales", ts, "own", value) for ts, value in enumerate(values)]
    )


@pytest.mark.parametrize(
    ("attribute", "found"),
    [
        ("item", "pen|red"),
        ("count", "3"),
        ("shop.city", "Ulm"),
        (("shop.no", "item"), "7|pen\\|red"),
        (("item",), "pen\\|red"),
        (ALL, ""),
        (OWN, "own"),
        (lambda event: event.value["shop"]["no"] % 4, "3"),
    ],
)
def test_the_key_of_an_event(attribute: Any, found: str) -> None:
    """A field, a dotted path, several in one key, no key, the key it has, or a function of it."""
    assert key(attribute) == found


def test_events_reach_the_element_of_their_key() -> None:
    """Each value of the attribute has an element of its own."""
    run = counted({"sales": "item"}, {"item": "pen"}, {"item": "cup"}, {"item": "pen"})
    assert {key: slate.count for key, slate in run.slates("count").items()} == {"pen": 2, "cup": 1}


def test_only_streams_keep_the_key_that_events_have() -> None:
    """With one stream's name, or a list of them, there is no map in front of the element."""
    for keys in ("sales", ["sales"], {"sales": OWN}):
        run = counted(keys, {"item": "pen"}, {"item": "cup"})
        assert list(run.slates("count")) == ["own"]
        assert [one.name for one in run._workflow.functions] == ["count"]


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        (
            "item",
            {"thing": "pen"},
            "element 'count', stream 'sales': the value has no field 'item'",
        ),
        ("shop.city", {"shop": "x"}, "the value has no field 'shop.city'"),
        ("item", 5, "the value has no field 'item'"),
        ("item", {"item": None}, "key must be text or a whole number; got NoneType None"),
        ("item", {"item": 2.5}, "key must be text or a whole number; got float 2.5"),
        ("item", {"item": True}, "key must be text or a whole number; got bool True"),
        (["item", "shop"], {"item": "pen"}, "the value has no field 'shop'"),
    ],
)
def test_an_event_without_its_key_is_a_dead_letter(
    attribute: Any, value: Any, message: str
) -> None:
    """The letter names the element, the stream and the missing field. The other events are
    counted."""
    whole = {"item": "pen", "shop": {"city": "Ulm"}}
    run = counted(
        {"sales": attribute}, value, {**whole, "shop": "x"} if attribute != "shop.city" else whole
    )
    (letter,) = run.dead_letters
    assert message in letter.error
    assert (letter.function, letter.stream, letter.value) == ("count.keys", "sales", value)
    assert sum(slate.count for slate in run.slates("count").values()) == 1


def test_a_function_that_fails_is_blamed_at_its_line() -> None:
    """The dead letter names the user's line."""

    def city(event: Event) -> Any:
        return event.value["shop"]["city"]

    run = counted({"sales": city}, {})
    assert run.dead_letters[0].error.startswith("KeyError: 'shop' (")
    assert "test_keying.py:" in run.dead_letters[0].error


@pytest.mark.parametrize(
    "keys",
    [
        {},
        [],
        None,
        5,
        {"sales": ""},
        {"sales": 5},
        {"sales": []},
        {"sales": ["a", ""]},
        {"sales": "a..b"},
        {"sales": ["a", "b."]},
        {"sales": ["@key", "a"]},
        {"sales": ["a", "*"]},
    ],
)
def test_keys_that_say_nothing_are_refused(keys: Any) -> None:
    """The error shows how it is written."""
    with pytest.raises(ms.DefinitionError, match="element 'one': keys must") as error:
        attributes_of(keys, "element 'one'")
    assert "got " in str(error.value)
    assert "'*'" in str(error.value)


@given(fields=st.lists(st.text("a|\\b", max_size=5), min_size=1, max_size=4))
def test_a_key_of_several_fields_can_be_split(fields: list[str]) -> None:
    """For any values of the fields, `split_key` returns them, so no two lists share a key."""
    value = {str(number): text for number, text in enumerate(fields)}
    assert split_key(key(tuple(value), value)) == fields
