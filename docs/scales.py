"""Scales of the charts: from figures to places on the picture, with round ticks.

>>> scale([3, 97], 0, 200).ticks
(0.0, 20.0, 40.0, 60.0, 80.0, 100.0)
>>> scale([3, 97], 0, 200)(50)
100.0
>>> scale([3, 20_000], 0, 200, log=True).ticks
(1.0, 10.0, 100.0, 1000.0, 10000.0, 100000.0)
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

_DETAIL = 1e-9
"""By how much of a step a figure may be off a tick and still be on it."""


@dataclass(frozen=True, slots=True)
class Scale:
    """Figures from the first tick to the last, laid out from `start` to `end` in pixels."""

    ticks: tuple[float, ...]
    start: float
    end: float
    log: bool = False

    @property
    def low(self) -> float:
        return self.ticks[0]

    @property
    def high(self) -> float:
        return self.ticks[-1]

    def __call__(self, value: float) -> float:
        """The place of a figure; outside of the ticks it is outside of `start` to `end`."""
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    @property
    def labels(self) -> list[str]:
        """The ticks in words, all with the decimals that tell them apart."""
        if self.log:
            return [shown(tick) for tick in self.ticks]
        step = self.ticks[1] - self.ticks[0]
        decimals = max(0, -math.floor(math.log10(step) + _DETAIL))
        if step < 1e-4:
            return [f"{tick:.12g}" for tick in self.ticks]
        if round(step, decimals) != float(f"{step:.12g}"):
            decimals += 1  # steps of 2.5
        return [f"{tick + 0.0:,.{decimals}f}" for tick in self.ticks]


def scale(
    values: Iterable[float],
    start: float,
    end: float,
    *,
    log: bool = False,
    zero: bool = False,
    about: int = 5,
) -> Scale:
    """The scale that has room for all values, with about so many round ticks.

    `zero` makes it begin, or end, at zero. ValueError if there is no value, or one that has no
    place.
    """
    given = sorted(values)
    if not given or not all(map(math.isfinite, given)):
        raise ValueError(f"a chart must have figures, each finite; got {given[:3]}")
    if log:
        if given[0] <= 0:
            raise ValueError(f"a figure on a log scale must be over 0; got {given[0]}")
        return Scale(_decades(given[0], given[-1]), start, end, True)
    low, high = given[0], given[-1]
    if zero:
        low, high = min(low, 0.0), max(high, 0.0)
    if high - low <= _DETAIL * max(abs(low), abs(high)):  # as good as equal
        low, high = low - (abs(low) or 1) / 2, high + (abs(high) or 1) / 2
    return Scale(_round_ticks(low, high, about), start, end)


def _round_ticks(low: float, high: float, about: int) -> tuple[float, ...]:
    rough = (high - low) / about
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(power * nice for nice in (1, 2, 2.5, 5, 10) if power * nice >= rough * 0.999)
    first, last = math.floor(low / step + _DETAIL), math.ceil(high / step - _DETAIL)
    return tuple(float(f"{n * step:.12g}") for n in range(first, last + 1))


def _decades(low: float, high: float) -> tuple[float, ...]:
    """Powers of ten around the figures; the 2 and the 5 between them if they are few."""
    first, last = math.floor(math.log10(low) + _DETAIL), math.ceil(math.log10(high) - _DETAIL)
    last = max(last, first + 1)
    if last - first > 2:
        step = math.ceil((last - first) / 8)
        return tuple(10.0**n for n in range(first, last + step, step))
    fine = [10.0**n * nice for n in range(first, last) for nice in (1, 2, 5)] + [10.0**last]
    under = max(n for n, tick in enumerate(fine) if tick <= low * (1 + _DETAIL))
    over = min(n for n, tick in enumerate(fine) if tick >= high * (1 - _DETAIL))
    return tuple(float(f"{tick:.12g}") for tick in fine[under : max(over, under + 1) + 1])


def shown(value: float) -> str:
    """A figure in words.

    >>> [shown(one) for one in (20_000.0, 0.25, 3.0, 12.3456, 0.00001)]
    ['20,000', '0.25', '3', '12.35', '1e-05']
    """
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.2f}" if abs(value) >= 10 else f"{value:.3g}"
