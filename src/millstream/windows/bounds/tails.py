"""Quantiles of Student's t and limits of a Poisson mean, for the width of intervals.

They are implemented here so that neither the root nor an agent needs a numerical library.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, floor, lgamma, log, sqrt
from statistics import NormalDist

NORMAL = 2_000.0
"""From this many degrees of freedom on, t is treated as normal: they differ in the fourth digit."""


def two_sided(confidence: float, freedom: float) -> float:
    """Returns the limit that the absolute value of Student's t stays under with probability
    `confidence`. `freedom` is 1 or more and need not be whole.

    >>> round(two_sided(0.95, 10), 3), round(two_sided(0.95, 1), 2), round(two_sided(0.95, 1e9), 2)
    (2.228, 12.71, 1.96)
    """
    # Rounded down, so that many keys share one search. Fewer degrees only make an interval wider.
    steps = 10 if freedom < 20 else 1
    return _two_sided(confidence, max(1.0, floor(min(freedom, NORMAL) * steps) / steps))


@lru_cache(maxsize=8_192)
def _two_sided(confidence: float, freedom: float) -> float:
    if freedom >= NORMAL:
        return NormalDist().inv_cdf((1 + confidence) / 2)
    low, high = 0.0, 1.0
    while _outside(high, freedom) > 1 - confidence:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        if _outside(middle, freedom) > 1 - confidence:
            low = middle
        else:
            high = middle
    return high


def _outside(t: float, freedom: float) -> float:
    """Returns the probability of a t farther from zero."""
    return _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """Computes the regularised incomplete beta function by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # here the fraction for 1 - x converges faster
        return 1 - _incomplete_beta(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x)) / a
    tiny, c, fraction = 1e-300, 1.0, 1.0
    d = 1 / (1 - (a + b) * x / (a + 1) or tiny)
    fraction = d
    for step in range(1, 500):
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            d = 1 / (1 + term * d or tiny)
            c = 1 + term / c or tiny
            fraction *= c * d
        if abs(c * d - 1) < 1e-13:
            break
    return front * fraction


@lru_cache(maxsize=1_024)
def poisson_upper(seen: int, chance: float) -> float:
    """Returns the mean for which a Poisson count is `seen` or less with probability `chance`: an
    upper limit on the mean.

    >>> round(poisson_upper(0, 0.05), 3), round(poisson_upper(3, 0.05), 3)
    (2.996, 7.754)
    """
    low, high = 0.0, seen + 10 * sqrt(seen + 1) - 2 * log(chance)
    for _ in range(60):
        middle = (low + high) / 2
        term = total = exp(-middle)
        for count in range(1, seen + 1):
            term *= middle / count
            total += term
        low, high = (middle, high) if total > chance else (low, middle)
    return high
