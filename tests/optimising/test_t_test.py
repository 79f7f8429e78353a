"""The paired t-test of examples/optimising, against tables and closed forms."""

from __future__ import annotations

import doctest
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.optimising import t_test
from examples.optimising.t_test import critical, incomplete_beta, p_value, paired

SLEEP = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
"""Hours of sleep that ten patients gained by one drug more than by another (Student, 1908)."""


def test_the_examples_of_the_module_hold() -> None:
    """Its doctests."""
    found = doctest.testmod(t_test)
    assert (found.failed, found.attempted > 0) == (0, True)


@pytest.mark.parametrize(
    ("p", "freedom", "table"),
    [
        (0.1, 1, 6.314),
        (0.1, 10, 1.812),
        (0.05, 1, 12.706),
        (0.05, 2, 4.303),
        (0.05, 5, 2.571),
        (0.05, 30, 2.042),
        (0.05, 120, 1.980),
        (0.01, 1, 63.657),
        (0.01, 5, 4.032),
        (0.01, 10, 3.169),
        (0.001, 20, 3.850),
    ],
)
def test_critical_values_are_those_of_the_tables(p: float, freedom: int, table: float) -> None:
    """The two-sided critical values of the printed tables, to their last digit."""
    assert round(critical(p, freedom), 3) == table


@given(st.floats(-1e4, 1e4))
def test_p_is_the_closed_form(t: float) -> None:
    """With one and with two degrees of freedom the distribution has a closed form."""
    one = 1 - 2 / math.pi * math.atan(abs(t))
    two = 1 - abs(t) / math.sqrt(2 + t * t)
    assert p_value(t, 1) == pytest.approx(one, abs=1e-7)
    assert p_value(t, 2) == pytest.approx(two, abs=1e-7)


@given(st.floats(0.5, 50), st.floats(0.5, 50), st.floats(0.001, 0.999))
def test_the_two_sides_of_the_incomplete_beta_are_one(a: float, b: float, x: float) -> None:
    """I_x(a, b) and I_(1-x)(b, a) make 1, and I_x(a, 1) is x to the a."""
    assert incomplete_beta(a, b, x) + incomplete_beta(b, a, 1 - x) == pytest.approx(1, abs=1e-9)
    assert incomplete_beta(a, 1, x) == pytest.approx(x**a, abs=1e-9)


def test_students_own_example() -> None:
    """The sleep of ten patients: t 4.0621 with 9 degrees of freedom, p 0.002833."""
    found = paired(SLEEP)
    assert (round(found.mean, 2), round(found.t, 4), round(found.p, 6)) == (1.58, 4.0621, 0.002833)


def test_differences_without_spread() -> None:
    """The same difference each time leaves no doubt, unless it is none."""
    assert paired([0.0, 0.0, 0.0]).p == 1
    assert paired([-2.0, -2.0]) == t_test.Paired(-2.0, -math.inf, 0.0)
