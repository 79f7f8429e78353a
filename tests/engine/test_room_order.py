"""The order of slates: numbers as bytes, the mark of a priority, and rows in words."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from engine.in_process import InProcess
from engine.limited_room import all_rows
from engine.room_app import an_app, event
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.engine.cells.priority import mark_of
from millstream.engine.plan import Plan
from millstream.stores.layout import named
from millstream.stores.ranks import sortable

Priority = Callable[[str, Any], Any]


def ranked_by(priority: Priority) -> bytes:
    app = ms.App("room")
    app.source("in")
    app.update("in", keep=1, priority=priority, name="u")(lambda event, slate: None)
    return mark_of(app.checked().update("u"))


def test_marks() -> None:
    """The mark of a priority depends on its code, constants, defaults and closure."""

    def scaled(by: Any) -> Priority:
        return lambda key, slate: slate["n"] * by

    def other(key: str, slate: Any) -> Any:
        return slate["n"] * 2

    marks = [
        ranked_by(one)
        for one in (
            lambda key, slate: slate["n"],
            lambda key, slate: -slate["n"],
            lambda key, slate: slate["m"],
            lambda key, slate, by=1: slate["n"] * by,
            lambda key, slate, by=2: slate["n"] * by,
            scaled(1),
            scaled(2),
            other,
            max,
        )
    ]
    assert len({*marks, mark_of(an_app(2, ranked=False).checked().update("weigh"))}) == 10
    assert ranked_by(scaled(2)) == ranked_by(scaled(2))
    assert ranked_by(scaled(object())) == ranked_by(scaled(object())), "where it lies is nothing"


def test_the_mark_travels_with_the_plan() -> None:
    """A task uses the driver's mark, since a mark computed again might differ in each process."""
    plan = Plan(an_app(3).checked(), 4, frozenset())
    state = plan.__reduce_ex__(2)[2]
    assert state["rooms"] == plan.rooms
    assert pickle.loads(pickle.dumps(plan.rooms)) == plan.rooms


@given(a=st.floats(allow_nan=False), b=st.floats(allow_nan=False))
def test_numbers_sort_as_their_bytes(a: float, b: float) -> None:
    """The bytes of two numbers compare as the numbers do."""
    assert (sortable(a) < sortable(b)) == (a < b)
    assert (sortable(a) == sortable(b)) == (a == b)


def test_rows_in_words() -> None:
    """A damaged row of the order is named with its update and key."""
    engine = InProcess(an_app(3).checked(), shards=1)
    engine.batch([event(1, "a")])
    words = {named(b"\x01" + row) for _, row in all_rows(engine) if row[:2] == b"Pw"}
    assert words == {"the rank of 'weigh', key 'a',", "the totals of the slates of 'weigh'"}


def weighing(weight: int) -> Any:
    def priority(key: str, slate: Any, *, by: int = weight) -> int:
        return by

    return priority


def a_number(by: int, key: str, slate: Any) -> int:
    return by


@dataclass
class Weighing:
    """A priority that is an object."""

    by: int

    def __call__(self, key: str, slate: Any) -> int:
        return self.by

    def method(self, key: str, slate: Any) -> int:
        return self.by


class Another(Weighing):
    """The same class with other code."""

    def __call__(self, key: str, slate: Any) -> int:
        return -self.by

    __repr__ = lambda self: "Weighing(by=1)"  # noqa: E731 - it says the same, too


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (weighing(1), weighing(2)),
        (partial(a_number, 1), partial(a_number, 2)),
        (Weighing(1), Weighing(2)),
        (Weighing(1), Another(1)),
        (Weighing(1).method, Weighing(2).method),
    ],
)
def test_another_priority_has_another_mark(one: Any, other: Any) -> None:
    """A new mark makes the order be built again, also for a callable object and for other
    arguments.

    The same one has the same mark.
    """

    def mark(priority: Any) -> bytes:
        app = ms.App("room")
        app.source("in")
        app.update("in", name="weigh", keep=1, priority=priority)(lambda event, slate: None)
        return mark_of(app.checked().update("weigh"))

    assert mark(one) == mark(one)
    assert mark(one) != mark(other)
