"""How far out an interval must reach: quantiles of Student's t and limits of a Poisson mean.

Written out, so that neither the root nor an agent needs a numerical library.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, floor, lgamma, log, sqrt
from statistics import NormalDist

NORMAL = 2_000.0
"""From so many degrees of freedom on, t is taken to be normal: they differ in the fourth digit."""


def two_sided(confidence: float, freedom: float) -> float:
    """The t that a Student's t with so many degrees of freedom (1 or more; they need not be whole)
    is under, either side of zero, with this probability.

    >>> round(two_sided(0.95, 10), 3), round(two_sided(0.95, 1), 2), round(two_sided(0.95, 1e9), 2)
    (2.228, 12.71, 1.96)
    """
    # Rounded down, so that many keys share one search; fewer degrees only make it wider.
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
    """The probability of a t farther from zero."""
    return _incomplete_beta(freedom / (freedom + t * t), freedom / 2, 0.5)


def _incomplete_beta(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction."""
    if x <= 0 or x >= 1:
        return float(x >= 1)
    if x > (a + 1) / (a + b + 2):  # where the fraction of the other end converges quickly
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
    """The mean with which a Poisson count is `seen` or less with this chance: an upper limit on it.

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
