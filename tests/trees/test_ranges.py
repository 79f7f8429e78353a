"""Sets of numbers as few ranges."""

from __future__ import annotations

from itertools import pairwise
from math import inf

from hypothesis import given
from hypothesis import strategies as st

from millstream.trees.ranges import Ranges

PLACES = st.integers(-20, 20)


@given(st.lists(st.tuples(PLACES, PLACES)), PLACES, PLACES)
def test_ranges_are_the_set_of_their_numbers(
    added: list[tuple[int, int]], first: int, until: int
) -> None:
    """For any additions it answers as a set does, with as few ranges as possible."""
    ranges, numbers = Ranges(), set[int]()
    for low, high in added:
        ranges.add(low, high)
        numbers |= set(range(low, high))
    asked = set(range(first, until))
    assert ranges.covers(first, until) == (asked <= numbers)
    assert ranges.meets(first, until) == bool(asked & numbers)
    assert (first in ranges) == (first in numbers)
    kept = list(ranges)
    assert sum(high - low for low, high in kept) == len(numbers)
    assert all(one[1] < other[0] for one, other in pairwise(kept))


def test_all_before_a_number_can_be_in_it() -> None:
    """Minus infinity is before all."""
    ranges = Ranges()
    ranges.add(-inf, 5)
    assert ranges.covers(-(10**9), 5)
    assert not ranges.covers(4, 6)


def test_too_many_ranges_become_fewer() -> None:
    """The lowest are joined with what is between them; the highest stay exact."""
    ranges = Ranges(most=3)
    for place in (0, 10, 20, 30):
        ranges.add(place, place + 1)
    assert list(ranges) == [(0, 11), (20, 21), (30, 31)]


def test_ranges_that_forget_claim_nothing() -> None:
    """The lowest is dropped, and what is between ranges is never in the set."""
    ranges = Ranges(most=2, forgets=True)
    for place in (0, 10, 20):
        ranges.add(place, place + 1)
    assert list(ranges) == [(10, 11), (20, 21)]
