"""Elements that cannot be: wrong configuration, fields without a dataclass, names already taken."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
from elements.one_element import Fraction, placed, refused, sales

import millstream as ms
from millstream.elements import Count


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"least": "2"}, "element Fraction: least must be a whole number; got str '2'"),
        ({"least": True}, "least must be a whole number; got bool True"),
        ({"least": 1.0}, "least must be a whole number; got float 1.0"),
        ({"share": "x"}, "share must be a number; got str 'x'"),
        ({"how": "none"}, "how must be one of 'all', 'some'; got str 'none'"),
        ({"words": "a"}, "words must be a list of text; got str 'a'"),
        ({"words": ["a", 1]}, "words must be a list of text; got list ['a', 1]"),
        ({"rest": {"a": "b"}}, "rest must be a table; got dict {'a': 'b'}"),
    ],
)
def test_a_configuration_of_another_type_is_refused(given: dict[str, Any], message: str) -> None:
    """The error names the element, the property, the expected type and the given value."""
    assert message in refused(Fraction(**{"least": 1, **given}))


def test_a_field_of_the_slate_is_not_set_in_the_prototype() -> None:
    """The value would differ from the class's default, and would be lost when the file is read
    again."""
    message = refused(Fraction(1, seen=5))
    assert (
        "element Fraction: seen must be left out: it belongs to the slate, and begins with"
        in message
    )
    assert "mark it Configured[...]" in message


def test_fields_without_a_dataclass_are_refused() -> None:
    """Else they would be variables of the class, shared by all keys; the user's line is named."""

    class Plain(ms.Element):
        seen: int = 0

        def process_event(self, event: ms.Event) -> None: ...

    message = refused(Plain())
    assert "element Plain (" in message
    assert "test_element_refused.py:" in message
    assert "has fields (seen), so it must be a dataclass: put @dataclass above Plain" in message


def test_a_subclass_with_more_fields_must_be_a_dataclass_too() -> None:
    """A field that only the subclass notes would not be kept, without a word."""

    class Louder(Count):
        volume: int = 0
        shared: ClassVar[int] = 1

    assert "has fields (volume), so it must be a dataclass: put @dataclass above Louder" in refused(
        Louder()
    )

    class Same(Count):
        shared: ClassVar[int] = 1

    run = ms.testing.run(placed(Same()), sales("a", "a"))
    assert run.slate("one", "a").count == 2


def test_slots_and_frozen_are_refused() -> None:
    """A clone takes its fields from the slate, and changes them."""

    @dataclass(slots=True)
    class Slotted(ms.Element):
        seen: int = 0

        def process_event(self, event: ms.Event) -> None: ...

    @dataclass(frozen=True)
    class Frozen(ms.Element):
        seen: int = 0

        def process_event(self, event: ms.Event) -> None: ...

    assert "element Slotted" in refused(Slotted())
    assert "must be a dataclass without slots=True" in refused(Slotted())
    assert "must be a dataclass without frozen=True" in refused(Frozen())
    assert "fields (seen)" in refused(Frozen())


@pytest.mark.parametrize("name", ["key", "time", "output", "publish", "next_output"])
def test_names_that_every_element_has_are_refused(name: str) -> None:
    """Such a field would be overwritten, or hide a method."""
    kind = type("Odd", (ms.Element,), {"__annotations__": {name: int}, name: 0})
    kind.process_event = lambda self, event: None  # type: ignore[attr-defined]
    assert (
        f"a field must not be called {name}: every element has an attribute of that name"
        in refused(dataclass(kind)())
    )


def test_a_field_without_a_default_is_refused() -> None:
    """A new key begins with the defaults; or it was meant to be configured."""

    @dataclass
    class Open(ms.Element):
        seen: int

        def process_event(self, event: ms.Event) -> None: ...

    message = refused(Open(1))
    assert "field 'seen' belongs to the slate, so it must have a default" in message
    assert "if it is configured, mark it Configured[...]" in message


def test_a_type_that_is_not_known_is_refused() -> None:
    """The slate could not be read again."""

    @dataclass
    class Unknown(ms.Element):
        seen: Missing = 0  # type: ignore[name-defined]  # noqa: F821

        def process_event(self, event: ms.Event) -> None: ...

    assert "the types of its fields must be known where the class is: name 'Missing'" in refused(
        Unknown()
    )
