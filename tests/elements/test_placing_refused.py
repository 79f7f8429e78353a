"""Placements that are refused, with what must be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from elements.told import refused

import millstream as ms
from millstream.elements import Count, Filter, RateLimit, Top
from millstream.model.event import Event

SECOND = 1_000_000


class Nothing(ms.Element):
    """An element that does nothing yet."""


class Wrong(ms.Element):
    """Methods that cannot be called."""

    def process_event(self) -> None:  # type: ignore[override]
        """No event."""


@dataclass
class Late(Count):
    """An output that asks for more than it is given."""

    async def process_event(self, event: Event) -> None:  # type: ignore[override]
        """Not a plain function."""


@pytest.mark.parametrize(
    ("element", "options", "message"),
    [
        (
            Count(),
            {"evry": "1s"},
            "element 'one': unknown option 'evry' of add(); did you mean 'ev",
        ),
        (Count, {}, "add() takes a part, such as an Element; got <class"),
        (5, {}, "add() takes a part"),
        (Nothing(), {}, "element 'one': Nothing must have a method process_event(event)"),
        (Wrong(), {}, "must take (event); it takes ()"),
        (Wrong(), {}, "element 'one': process_event ("),
        (Late(), {}, "must be a plain function, not an async one"),
        (Count(), {"keys": {"sale": "item"}}, "did you mean 'sales'?"),
        (Count(), {"keys": {}}, "keys must name the key's field for each stream"),
        (Count(), {"every": "0s"}, "every must be a duration over 0; got '0s'"),
        (Count(), {"every": "1us"}, "every must be 2us or more; got '1us'"),
        (Count(), {"every": "soon"}, "element 'one': every"),
        (Count(), {"every_events": 0}, "every_events must be a whole number, 1 or more; got 0"),
        (Count(), {"every_events": True}, "every_events must be a whole number"),
        (Count(), {"every": "10m", "ttl": "9m"}, "ttl must not be shorter than every, or an"),
        (Count(), {"clock": "moon"}, "clock must be 'event' or 'wall'; got 'moon'"),
        (
            Filter({"n": 1}),
            {"publishes": "out", "overload": "divert", "overflow": "more"},
            "element 'one': overload must be left out: the element has no fields",
        ),
        (Count(), {"name": "a b"}, "element name 'a b' must start with a letter"),
        (Count(), {"publish": "a b"}, "output name 'a b' must start with a letter"),
    ],
)
def test_mistakes(element: Any, options: dict[str, Any], message: str) -> None:
    """Each mistake is found when the application is built, with advice."""
    assert message in refused(element, **options)


@pytest.mark.parametrize("element", [Count(), RateLimit(1, "1s"), Top()])
def test_what_it_publishes_is_streams(element: Any) -> None:
    """Anything else, as a file may hold it, is an error that says so."""
    app = ms.App("shop")
    app.source("sales")
    with pytest.raises(ms.DefinitionError, match=r"publishes must name a stream.*; got 5$"):
        app.add(element, keys="sales", publishes=5)


def test_keys_must_be_said() -> None:
    """Keys have no default."""
    app = ms.App("shop")
    with pytest.raises(
        ms.DefinitionError, match="element 'Count': keys must name the key's field for each stream"
    ):
        app.add(Count())


def test_a_property_among_the_options_is_pointed_out() -> None:
    """Configured fields are arguments of the class."""

    @dataclass
    class Sized(Count):
        size: ms.Configured[int] = 1

    assert "it is configured: Sized(size=...)" in refused(Sized(), size=2)


def test_output_must_be_there_to_be_asked_for() -> None:
    """And a memoryless element has nothing that could live or be limited."""

    class Passes(ms.Element):
        def process_event(self, event: Event) -> Iterator[Any]:
            yield ms.emit()

    assert "Passes must have a method output()" in refused(Passes(), every="1s", publishes="out")
    for option, value in {"ttl": "1h", "keep": 5, "memory": "1k", "limit": 5}.items():
        message = refused(Passes(), publishes="out", **{option: value})
        assert f"element 'one': {option} must be left out: the element has no fields" in message
