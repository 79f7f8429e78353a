"""The exact algebras against plain definitions: fractions, statistics, sorted lists."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from algebra.merging import in_order, stored
from hypothesis import example, given
from hypothesis import strategies as st

from millstream import algebra

FLOATS = st.floats(allow_nan=False, allow_infinity=False)
NUMBERS = st.one_of(st.integers(-(2**100), 2**100), FLOATS)


def written(one: algebra.Algebra, values: list[Any]) -> Any:
    return one.write(in_order(one, values))


@given(st.lists(FLOATS, max_size=20))
@example([1e308, 1e308, -1e308])
@example([1e16, 1.0, -1e16])
@example([5e-324, 5e-324])
def test_a_sum_of_floats_is_rounded_once(values: list[float]) -> None:
    """The answer is the float nearest to the true sum, or the true sum itself if it is whole."""
    true = sum(map(Fraction, values), Fraction())
    seen = written(algebra.sum(), values)["sum"]
    if true.denominator == 1 and abs(true) < 2**128:
        assert seen == true
        assert type(seen) is int
    else:
        try:
            assert seen == float(true)
        except OverflowError:
            assert seen is None


@given(st.lists(NUMBERS, max_size=20))
def test_a_sum_keeps_all_of_it(values: list[int | float]) -> None:
    """The stored sum is exact: subtracting all of it leaves exactly zero."""
    one = algebra.sum()
    assert one.unmerge is not None
    total = stored(one, in_order(one, values))
    for value in reversed(values):
        total = one.unmerge(total, one.read({"sum": value}))
    assert one.write(total) == {"sum": 0}


@given(st.lists(st.integers(-(2**63), 2**63), max_size=6), st.integers(0, 62))
@example([2**62, 2**62], 0)
@example([-(2**63)], 0)
@example([2**31, 2**31], 0)
def test_many_ints_at_once_do_not_overflow(values: list[int], smaller: int) -> None:
    """Their sum and the sum of their squares are Python's, past what a machine's int holds too."""
    values = [value >> smaller for value in values]
    one = algebra.variance()
    assert one.gather is not None
    found = one.gather(["a", "b", "a", "a", "b", "a"][: len(values)], values)
    for key, keep in (("a", (0, 2, 3, 5)), ("b", (1, 4))):
        own = [value for place, value in enumerate(values) if place in keep]
        if own:
            assert found[key] == (len(own), sum(own), sum(value * value for value in own))


def test_what_a_sum_looks_like() -> None:
    """A whole sum is an int of any size; `exact` is there only when rounding would lose something,
    and null stands for what is past the greatest float."""
    assert written(algebra.sum(), []) == {"sum": 0}
    assert written(algebra.sum(), [2**80, 1]) == {"sum": 2**80 + 1}
    assert written(algebra.sum(), [0.5, 0.25]) == {"sum": 0.75}
    assert written(algebra.sum(), [0.5, 0.5]) == {"sum": 1}
    assert written(algebra.sum(), [1e300]) == {"sum": 1e300}
    assert written(algebra.sum(), [0.1] * 10) == {"sum": 1.0, "exact": "18014398509481985*2**-54"}
    past = written(algebra.sum(), [1e308, 1e308])
    assert past["sum"] is None
    assert int(past["exact"]) == 2 * int(1e308)


@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_a_mean_is_rounded_once(values: list[int | float]) -> None:
    """The answer is the float nearest to the true mean."""
    slate = written(algebra.mean(), values)
    true = sum(map(Fraction, values), Fraction()) / len(values)
    assert slate["mean"] == float(true)
    assert slate["count"] == len(values)


@given(st.lists(st.one_of(st.integers(-(2**60), 2**60), st.floats(-1e150, 1e150)), max_size=20))
@example([1e8 + 0.1, 1e8 + 0.2, 1e8 + 0.3])
def test_a_variance_is_rounded_once(values: list[int | float]) -> None:
    """The answer is the float nearest to the true sample variance, and never below zero. The
    deviation is its root. With fewer than two events there is none."""
    slate = written(algebra.variance(), values)
    if len(values) < 2:
        assert slate["variance"] is None
        assert slate["deviation"] is None
        return
    true = statistics.variance(map(Fraction, values))
    assert slate["variance"] == float(true) >= 0
    assert slate["deviation"] == math.sqrt(slate["variance"])
    assert slate["mean"] == float(statistics.mean(map(Fraction, values)))


def test_what_is_known_of_no_event() -> None:
    """Nothing: null, and no division by zero."""
    assert written(algebra.mean(), []) == {"mean": None, "count": 0, "sum": 0}
    assert written(algebra.min(), []) == {"min": None}
    assert written(algebra.max(), []) == {"max": None}
    assert written(algebra.count(), []) == {"count": 0}
    assert written(algebra.top(2, by="n"), []) == {"top": []}


@given(st.lists(NUMBERS, min_size=1))
def test_the_least_and_the_greatest(values: list[int | float]) -> None:
    """The answers are those of Python's `min` and `max`."""
    assert written(algebra.min(), values) == {"min": min(values)}
    assert written(algebra.max(), values) == {"max": max(values)}


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(0, 6)), max_size=40))
def test_the_top_by_a_number(pairs: list[tuple[str, int]]) -> None:
    """Each item once with its greatest number, the greatest first, ties by name."""
    best: dict[str, int] = {}
    for item, n in pairs:
        best[item] = max(n, best.get(item, n))
    wanted = sorted(best.items(), key=lambda one: (-one[1], one[0]))[:3]
    slate = written(algebra.top(3, "item", "n"), [{"item": item, "n": n} for item, n in pairs])
    assert slate == {"top": [list(one) for one in wanted]}


@given(st.lists(st.sampled_from("abcdefgh"), max_size=60))
def test_the_most_frequent_while_all_are_kept(items: list[str]) -> None:
    """Exact, and it says so."""
    wanted = sorted(Counter(items).items(), key=lambda one: (-one[1], one[0]))
    slate = written(algebra.top(3), items)
    assert slate["top"] == [list(one) for one in wanted[:3]]
    assert slate["count"] == len(items)
    assert slate["error"] == "none: exact"


def test_items_are_of_any_kind() -> None:
    """An item is what its JSON is: 1, 1.0, "1" and true are four; an object's order is nothing."""
    values = [1, 1.0, "1", True, {"a": 1, "b": 2}, {"b": 2, "a": 1}]
    slate = written(algebra.top(10), values)
    assert slate["top"][0] == [{"a": 1, "b": 2}, 2]
    assert [n for _, n in slate["top"]] == [2, 1, 1, 1, 1]
    assert written(algebra.distinct(), values)["distinct"] == 5


@given(st.lists(NUMBERS))
def test_a_histogram_of_named_bins(values: list[int | float]) -> None:
    """A bin has its lower end and not its upper one, and nothing is left out."""
    ends = [-1, 0, 0.5, 10**6]
    slate = written(algebra.histogram(bins=ends), values)
    assert [low for low, _, _ in slate["histogram"]] == [None, *ends]
    assert [high for _, high, _ in slate["histogram"]] == [*ends, None]
    for low, high, n in slate["histogram"]:
        inside = [v for v in values if (low is None or low <= v) and (high is None or v < high)]
        assert n == len(inside)
    assert slate["count"] == len(values)


@pytest.mark.parametrize("width", [1, 7, 0.1, 2.5, 1e-9])
@given(values=st.lists(st.one_of(st.integers(-1000, 1000), st.floats(-1000, 1000)), max_size=50))
def test_a_histogram_of_one_width(width: float, values: list[int | float]) -> None:
    """Every number is in the one bin whose ends, as shown, are around it; bins do not overlap."""
    slate = written(algebra.histogram(width=width), values)
    assert slate["width"] == width
    shown = slate["histogram"]
    for (_, high, _), (low, _, _) in pairwise(shown):
        assert high <= low
    for low, high, n in shown:
        assert n == len([value for value in values if low <= value < high]) > 0
    assert sum(n for _, _, n in shown) == slate["count"] == len(values)


def test_a_width_is_the_decimal_that_is_written() -> None:
    """0.3 starts the fourth bin of width 0.1, as people expect, though 0.3 / 0.1 is below 3."""
    slate = written(algebra.histogram(width=0.1), [0.3, -0.1, 0.25])
    assert slate["histogram"] == [[-0.1, 0, 1], [0.2, 0.3, 1], [0.3, 0.4, 1]]
