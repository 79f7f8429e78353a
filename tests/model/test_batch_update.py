"""The declaration of updates over many events at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def declared(function: Callable[..., Any], **options: Any) -> App:
    """An application whose graph with this update has been checked."""
    app = App("sums")
    app.source("numbers")
    app.update("numbers", batch=True, **options)(function)
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
