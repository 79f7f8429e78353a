"""The Kolmogorov-Smirnov test of examples/imr, against tables and its definition."""

from __future__ import annotations

import doctest
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from examples.imr import kolmogorov_smirnov
from examples.imr.kolmogorov_smirnov import above, compared

counts = st.lists(st.integers(0, 30), min_size=4, max_size=4)


def test_the_examples_of_the_module_hold() -> None:
    """Its doctests."""
    found = doctest.testmod(kolmogorov_smirnov)
    assert (found.failed, found.attempted > 0) == (0, True)


@pytest.mark.parametrize(
    ("p", "table"),
    [
        (0.20, 1.07275),
        (0.15, 1.13795),
        (0.10, 1.22385),
        (0.05, 1.35810),
        (0.025, 1.48021),
        (0.01, 1.62762),
        (0.005, 1.73082),
        (0.001, 1.94947),
    ],
)
def test_kolmogorovs_distribution_is_that_of_the_tables(p: float, table: float) -> None:
    """The asymptotic critical values that textbooks print."""
    assert above(table) == pytest.approx(p, abs=2e-5)


def test_the_distribution_has_no_step() -> None:
    """The two series meet, and the probability only falls."""
    values = [above(n / 1_000) for n in range(0, 3_000)]
    assert values[0] == 1
    assert all(0 <= after <= before <= 1 for before, after in pairwise(values))
    assert above(1.18 - 1e-9) == pytest.approx(above(1.18 + 1e-9), abs=1e-8)


@given(counts, counts)
def test_the_distance_is_the_greatest_gap_of_the_cumulated_shares(
    a: list[int], b: list[int]
) -> None:
    """As defined, from every single value; the same both ways; never for an empty histogram."""
    said = compared(a, b)
    assert said == compared(b, a)
    if not sum(a) or not sum(b):
        assert said.p == 1
        return
    values = [[n for n, count in enumerate(one) for _ in range(count)] for one in (a, b)]
    gaps = [
        abs(sum(v <= at for v in values[0]) / sum(a) - sum(v <= at for v in values[1]) / sum(b))
        for at in range(4)
    ]
    assert said.distance == pytest.approx(max(gaps))


def test_samples_of_one_kind_are_rejected_as_often_as_the_level_says() -> None:
    """At 5%: about so often, with buckets so fine that nothing is hidden in them; and nearly always
    if one of the two is shifted."""
    random, size, rejected, found = Random(3), 200, 0, 0
    for _ in range(400):
        a, b, shifted = ([0] * 1_000 for _ in range(3))
        for _ in range(size):
            a[random.randrange(800)] += 1
            b[random.randrange(800)] += 1
            shifted[200 + random.randrange(800)] += 1
        rejected += compared(a, b).p < 0.05
        found += compared(a, shifted).p < 0.05
    assert 0.02 <= rejected / 400 <= 0.08
    assert found >= 390
