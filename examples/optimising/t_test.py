"""The dependent t-test for paired measurements, with nothing but the standard library.

Two slices are measured at the same times, so what both have in common (the hour, the weather, the
news) is in both measurements of a pair and not in their difference. The test asks whether the mean
of the differences may be zero.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

_SMALL = 1e-300
_CLOSE = 1e-14


@dataclass(frozen=True, slots=True)
class Paired:
    """The result of n differences: their mean, Student's t, and the probability of a |t| this large
    by chance.

    `p` is of both sides.
    """

    mean: float
    t: float
    p: float


def paired(differences: Sequence[float]) -> Paired:
    """The test of at least two differences.

    >>> said = paired([1.0, 2.0, 3.0])
    >>> said.mean, round(said.t, 4), round(said.p, 4)
    (2.0, 3.4641, 0.0742)
    """
    n = len(differences)
    mean = math.fsum(differences) / n
    variance = math.fsum((difference - mean) ** 2 for difference in differences) / (n - 1)
    if variance == 0:  # all the same: no doubt, unless they are all zero
        return Paired(mean, math.copysign(math.inf, mean), 0.0) if mean else Paired(0.0, 0.0, 1.0)
    t = mean / math.sqrt(variance / n)
    return Paired(mean, t, p_value(t, n - 1))


def p_value(t: float, freedom: int) -> float:
    """The probability that Student's t with so many degrees of freedom is at least so far from 0.

    >>> round(p_value(2.776, 4), 4), round(p_value(-12.706, 1), 4)
    (0.05, 0.05)
    """
    return incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))


def critical(p: float, freedom: int) -> float:
    """The t whose two-sided probability is p: what tables hold.

    >>> round(critical(0.05, 10), 3), round(critical(0.01, 30), 3)
    (2.228, 2.75)
    """
    low, high = 0.0, 1.0
    while p_value(high, freedom) > p:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if p_value(middle, freedom) > p else (low, middle)
    return high


def incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function I_x(a, b), by its continued fraction."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side
        return 1 - incomplete_beta(b, a, 1 - x)
    front = math.exp(
        math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x)
    )
    return front * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    """Lentz's way of working out the continued fraction of the incomplete beta function."""
    c, d = 1.0, 1 / _not_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, 1_000):
        for step in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d, c = 1 / _not_zero(1 + step * d), _not_zero(1 + step / c)
            value *= c * d
        if abs(c * d - 1) < _CLOSE:
            break
    return value


def _not_zero(value: float) -> float:
    return value if abs(value) > _SMALL else _SMALL
