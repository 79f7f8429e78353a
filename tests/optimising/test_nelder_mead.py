"""The simplex search by comparisons, on functions without noise."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict

import msgspec
import pytest
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from examples.optimising.nelder_mead import Point, Search, answer, begin, question

Function = Callable[[Point], float]


def axes(*starts: float, low: float = -10, high: float = 10) -> dict[str, dict[str, float]]:
    return {
        f"x{n}": {"low": low, "high": high, "start": start, "step": 1.5}
        for n, start in enumerate(starts)
    }


def least(function: Function, search: Search, most: int = 5_000) -> Search:
    """The search for the least value, each comparison without error."""
    while not search.finished:
        assert search.asked < most
        one, other = function(question(search)[0]), function(question(search)[1])
        search = answer(search, (one < other) - (one > other))
    return search


@settings(max_examples=examples(30))
@given(st.lists(st.floats(-8, 8), min_size=1, max_size=4))
def test_it_finds_the_least_of_a_quadratic(centre: Point) -> None:
    """In one to four dimensions, wherever the least is."""

    def bowl(point: Point) -> float:
        parts = zip(point, centre, strict=True)
        return sum((n + 1) * (x - c) ** 2 for n, (x, c) in enumerate(parts))

    found = least(bowl, begin(axes(*[3.0] * len(centre)), small=1e-5))
    assert found.best == pytest.approx(centre, abs=1e-3)


def test_it_follows_a_bent_valley() -> None:
    """Rosenbrock's function from its usual start, to its least at (1, 1)."""

    def rosenbrock(point: Point) -> float:
        return (1 - point[0]) ** 2 + 100 * (point[1] - point[0] ** 2) ** 2

    found = least(rosenbrock, begin(axes(-1.2, 1.0), small=1e-6))
    assert found.best == pytest.approx([1, 1], abs=1e-4)


def test_the_best_may_be_at_a_bound() -> None:
    """A function that falls for ever is least in the corner."""
    found = least(lambda point: -point[0] - 2 * point[1], begin(axes(0.0, 4.0), small=1e-5))
    assert found.best == pytest.approx([10, 10], abs=1e-3)


@given(st.lists(st.sampled_from([-1, 0, 1]), max_size=300), st.integers(1, 3))
def test_whatever_the_answers_it_stays_within_bounds(answers: list[int], dimensions: int) -> None:
    """Wrong answers too: points within bounds, n+1 vertices, and JSON there and back at each."""
    search = begin(axes(*[9.0] * dimensions), small=0.01, rounds=3)
    for verdict in answers:
        if search.finished:
            break
        for point in (*question(search), *search.vertices):
            assert all(-10 <= part <= 10 for part in point)
        assert len(search.vertices) == dimensions + 1
        written = json.dumps(asdict(search))
        assert msgspec.json.decode(written, type=Search) == search
        search = answer(search, verdict)


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_where_all_is_equal_it_ends_where_it_began(dimensions: int) -> None:
    """If no difference is ever found, the search ends, and its best is the start."""
    start = [2.0] * dimensions
    found = least(lambda point: 0.0, begin(axes(*start), small=0.05), most=200)
    assert found.best == start
