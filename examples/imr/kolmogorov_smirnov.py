"""The Kolmogorov-Smirnov test of two histograms, with nothing but the standard library.

Two samples were counted into the same buckets; may both be of one distribution? The distance is the
greatest difference of the two cumulated shares, and its probability that of Kolmogorov's
distribution, with Stephens' correction for small samples.

Within a bucket nothing is known, so the distance is at most that of the samples themselves: with
few and wide buckets the test rejects less often than its level says, never more often.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True, slots=True)
class Compared:
    """The distance of two histograms, and how likely one so great is if they are of one kind."""

    distance: float
    p: float


def compared(a: Sequence[int], b: Sequence[int]) -> Compared:
    """The test of two histograms over the same buckets; an empty one says nothing.

    >>> compared([10, 0], [0, 10]).distance, compared([3, 5], [6, 10]).p
    (1.0, 1.0)
    >>> compared([], [])
    Compared(distance=0.0, p=1.0)
    """
    of_a, of_b = sum(a), sum(b)
    if not of_a or not of_b:
        return Compared(0.0, 1.0)
    pairs = zip(accumulate(a), accumulate(b), strict=True)
    distance = max(abs(x / of_a - y / of_b) for x, y in pairs)
    root = math.sqrt(of_a * of_b / (of_a + of_b))
    return Compared(distance, above(distance * (root + 0.12 + 0.11 / root)))


def above(value: float) -> float:
    """The probability that Kolmogorov's distribution is over a value.

    >>> [round(above(value), 4) for value in (1.2238, 1.3581, 1.6276)]
    [0.1, 0.05, 0.01]
    """
    if value <= 0:
        return 1.0
    if value < 1.18:  # the series below converges slowly for small values, this one fast
        step = math.pi**2 / (8 * value * value)
        terms = (math.exp(-((2 * k - 1) ** 2) * step) for k in range(1, 8))
        return 1 - math.sqrt(2 * math.pi) / value * math.fsum(terms)
    signed = ((-1) ** (k - 1) * math.exp(-2 * k * k * value * value) for k in range(1, 8))
    return max(0.0, 2 * math.fsum(signed))
