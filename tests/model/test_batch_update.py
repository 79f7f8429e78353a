"""The declaration of updates over many events at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import millstream as ms
from millstream import App, DefinitionError, Event
from millstream.graph.words import describe


def total(events: list[Event], slate: Any) -> None:
    """Adds up the values."""


def emitting(events: list[Event], slate: Any) -> Any:
    return [ms.emit()]


def forgetting(events: list[Event], slate: Any) -> Any:
    return [ms.forget()]


def yielding(events: list[Event], slate: Any) -> Iterator[Any]:
    yield from ()


def one(event: Event, slate: Any) -> None: ...


def tables(events: Any, slates: Any) -> Any: ...


@dataclass
class Plain:
    n: int = 0
    note: str | None = None


@dataclass
class Nested:
    items: list[int] = field(default_factory=list)


@dataclass
class Keyed:
    key: str = ""


@dataclass(frozen=True)
class Frozen:
    n: int = 0


@dataclass
class Empty:
    pass


ACROSS: dict[str, Any] = {"across_keys": True, "slate": Plain}


def declared(function: Callable[..., Any], **options: Any) -> App:
    """An application whose graph with this update has been checked."""
    app = App("sums")
    app.source("numbers")
    app.update("numbers", **{"batch": True, **options})(function)
    app.checked()
    return app


@pytest.mark.parametrize(
    ("function", "options", "message"),
    [
        (total, {"publishes": "sums"}, r"publishes must be left out with batch=True.*got sums"),
        (total, {"on_timer": one}, r"its timer function \(.*\) must be left out with batch=True"),
        (total, {"slate": ms.Table}, r"slate must be dict or a dataclass.*got millstream.Table"),
        (yielding, {}, r"it must change its slates and yield nothing.*leave batch= out"),
        (emitting, {}, r"line \d+: an update with batch=True .* cannot use emit\(\)"),
        (forgetting, {}, r"line \d+: an update with batch=True .* cannot use forget\(\)"),
        (tables, {"across_keys": True}, r"slate must be a dataclass with across_keys.*got dict"),
        (
            tables,
            ACROSS | {"slate": Nested},
            r"slate Nested: every field must be .*'items' is list",
        ),
        (tables, ACROSS | {"slate": Keyed}, r"slate Keyed: a field must not be called 'key'"),
        (tables, ACROSS | {"slate": Frozen}, r"slate Frozen must be a plain dataclass"),
        (tables, ACROSS | {"slate": Empty}, r"slate Empty must have fields"),
        (tables, ACROSS | {"values": dict}, r"values must be a dataclass; got <class 'dict'>"),
        (tables, ACROSS | {"values": Keyed}, r"values Keyed: a field must not be called 'key'"),
        (tables, ACROSS | {"values": Nested}, r"values Nested: every field must be int"),
        (tables, {**ACROSS, "batch": False}, r"across_keys=True must come with batch=True"),
        (total, {"values": Plain}, r"values must come with batch=True, across_keys=True"),
        (lambda events: None, {"name": "f", **ACROSS}, r"must take \(events, slates\)"),
        (lambda events: None, {"name": "f"}, r"must take \(events, slate\); it takes \(events\)"),
    ],
)
def test_what_a_batch_cannot_have_is_refused(
    function: Callable[..., Any], options: dict[str, Any], message: str
) -> None:
    """Effects belong to one event each, so they are refused where the update is declared."""
    with pytest.raises(DefinitionError, match=message):
        declared(function, **options)


def test_a_timer_function_that_is_added_later_is_refused() -> None:
    """@total.on_timer is refused like on_timer=."""
    app = App("sums")
    app.source("numbers")
    handle = app.update("numbers", batch=True)(total)
    with pytest.raises(DefinitionError, match=r"update 'total' .*timer function"):
        handle.on_timer(one)


def test_a_drawing_says_batch() -> None:
    """A drawing tells an update over many events at once from others."""
    assert describe(declared(total).checked().function("total")) == "update, slate dict, batch"
    node = declared(tables, **ACROSS).checked().function("tables")
    assert describe(node) == "update, slate Plain, batch across keys"
