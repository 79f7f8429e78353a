"""Times that jump ahead of those around them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.model.time_jumps import NEIGHBOURS, jumping

HOUR = 3_600


def test_a_single_time_that_is_hours_ahead() -> None:
    """At the start or within; of one at the end nothing shows that it is wrong."""
    plain = list(range(0, 200, 10))
    for at in range(len(plain)):
        assert jumping([*plain[:at], 5 * HOUR, *plain[at:]], HOUR) == [at]
    assert jumping([*plain, 5 * HOUR], HOUR) == []


@pytest.mark.parametrize("wrong", [2, 3, 4])
def test_a_few_of_them_beside_one_another(wrong: int) -> None:
    """A few wrong times in a row do not confirm each other."""
    times = [*range(20), *([5 * HOUR] * wrong), *range(20, 40)]
    assert jumping(times, HOUR) == list(range(20, 20 + wrong))


def test_time_that_goes_on_is_no_jump() -> None:
    """A quiet night, and two days of a log in the wrong order, are taken as they are."""
    assert jumping([*range(20), *range(9 * HOUR, 9 * HOUR + 20)], HOUR) == []
    assert jumping([*range(24 * HOUR, 24 * HOUR + 20), *range(20)], HOUR) == []
    assert jumping([0, 1, 9 * HOUR], HOUR) == []


def test_a_time_that_is_far_behind_is_no_jump_and_makes_none() -> None:
    """Such a record would itself be late, and has no other effect."""
    plain = list(range(9 * HOUR, 9 * HOUR + 20))
    for at in range(len(plain)):
        assert jumping([*plain[:at], 0, *plain[at:]], HOUR) == []


@given(
    times=st.lists(st.integers(0, 5).map(lambda n: n * HOUR), max_size=40),
    cut=st.integers(0, 40),
)
def test_it_is_seen_from_the_neighbours_alone(times: list[int], cut: int) -> None:
    """A part of a file with its neighbours on both sides gives what the whole gives."""
    cut = min(cut, len(times))
    whole = jumping(times, HOUR)
    head = times[: cut + NEIGHBOURS]
    low = max(0, cut - NEIGHBOURS)
    parts = jumping(head, HOUR, 0, cut) + [low + at for at in jumping(times[low:], HOUR, cut - low)]
    assert parts == whole
