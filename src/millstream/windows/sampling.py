"""Totals from a sample of panes: stratified, with panes as clusters (Cochran, Sampling Techniques).

A pane is drawn whole, so what is sampled is the pane's total, whatever its records have in common.
In a stratum of N panes of which n were drawn, the total is estimated as N times the mean of the
sample, with the variance N²(1 - n/N)s²/n of simple random sampling without replacement (ch. 5);
variances of strata add up. s² has n - 1 degrees of freedom, the sum those of Satterthwaite. They
would be right for totals that are normal. Those of panes have long tails, a kurtosis excess of
about 2, with which the variance of s² doubles: half of the degrees are counted (`TAILS`).

How many records every pane has is often known, also of those that were given up: they are counted.
Then the estimate is corrected by how far the records of the sample are from those of all: the
combined regression estimator (7.10), with one slope for all strata. It is exact for what is
proportional to the records and never much worse than none. The slope is estimated too: it costs one
degree of freedom and adds its own variance. With under `LEAST_FREEDOM` of them it is left alone.

Strata with a single drawn pane have no s². They are collapsed into one (5A.12), which makes the
variance greater, never less, than it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from millstream.windows.strata import Stratum, Unit

TAILS = 2
"""What degrees of freedom are divided by."""
LEAST_FREEDOM = 8
"""Degrees of freedom from which on a slope is estimated."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """An estimated total over the strata."""

    value: float
    variance: float
    freedom: float
    seen: int
    """In how many drawn panes it is not zero."""
    chances: float
    """How many of these panes were to be expected in a sample, summed up: their strata's parts."""


@dataclass(frozen=True, slots=True)
class _Sizes:
    """A stratum's panes, and the records of its sample."""

    panes: int
    drawn: int
    weight: float
    """What a sum of squared distances is multiplied with to give the variance."""
    mean: float = 0.0
    spread: float = 0.0
    """The sum of squared distances of the records from their mean; 0: not known, or all equal."""
    gap: float = 0.0
    """The records of all panes, less what the sample would make of them."""


class Sampling:
    """The strata of a window, made ready for many totals: each takes time for the panes in which it
    is not zero and for the strata, not for all panes."""

    def __init__(self, strata: Sequence[Stratum]) -> None:
        self._sizes = [_sizes(one) for one in strata]
        self._of = {
            unit: (at, 0.0 if one.records is None else one.records[unit] - self._sizes[at].mean)
            for at, one in enumerate(strata)
            for unit in one.sample
        }
        sloped = [one for one in self._sizes if one.spread > 0]
        self._freedom = sum(one.drawn - 1 for one in sloped)
        self._scale = sum(one.weight * one.spread for one in sloped)
        self._gap = sum(one.gap for one in sloped)
        self.drawn = len(self._of)

    def total(self, values: Mapping[Unit, float]) -> Drawn:
        """The total of a value over all panes of the strata; panes that are not named have none of
        it, and those that were not drawn are not looked at."""
        sums: dict[int, list[float]] = {}
        for unit, value in values.items():
            place = self._of.get(unit)
            if place is None or not value:
                continue
            at, moved = place
            if at not in sums:
                sums[at] = [0.0, 0.0, 0.0, 0]
            of = sums[at]
            of[0] += value
            of[1] += value * value
            of[2] += value * moved
            of[3] += 1
        slope = self._slope(sums)
        estimate, seen, chances = slope * self._gap, 0, 0.0
        for at, of in sums.items():
            part = self._sizes[at].drawn / self._sizes[at].panes
            estimate += of[0] / part
            seen += int(of[3])
            chances += of[3] * part
        variance, freedom = self._variance(sums, slope)
        return Drawn(estimate, variance, freedom, seen, chances)

    def _slope(self, sums: Mapping[int, list[float]]) -> float:
        if self._freedom < LEAST_FREEDOM:
            return 0.0
        along = sum(
            self._sizes[at].weight * of[2] for at, of in sums.items() if self._sizes[at].spread > 0
        )
        return along / self._scale

    def _variance(self, sums: Mapping[int, list[float]], slope: float) -> tuple[float, float]:
        parts: list[tuple[float, int]] = []
        of_slope = 0.0
        lost = self._freedom / (self._freedom - 1) if slope else 1.0
        for at, size in enumerate(self._sizes):
            if size.drawn < 2:
                continue
            total, squares, along, _ = sums.get(at, (0.0, 0.0, 0.0, 0))
            apart = squares - total * total / size.drawn
            apart = 0.0 if apart < 1e-12 * squares else apart
            if size.spread > 0 and slope:
                apart -= 2 * slope * along - slope * slope * size.spread
                apart = max(0.0, apart if apart > 1e-12 * squares else 0.0) * lost
                of_slope += size.weight**2 * size.spread * apart / (size.drawn - 1)
            parts.append((size.weight * apart, size.drawn - 1))
        parts.append(self._of_singles(sums))
        variance = sum(one for one, _ in parts)
        below = sum(one * one / freedom for one, freedom in parts if one)
        freedom = variance * variance / below / lost / TAILS if below else inf
        if slope:
            variance += self._gap**2 * of_slope / self._scale**2
        return variance, freedom

    def _of_singles(self, sums: Mapping[int, list[float]]) -> tuple[float, int]:
        """The variance of the strata with one drawn pane, collapsed."""
        singles = [at for at, size in enumerate(self._sizes) if size.drawn == 1]
        if len(singles) < 2:  # `layout` leaves no single one
            return 0.0, 1
        totals = {at: self._sizes[at].panes * sums.get(at, [0.0])[0] for at in singles}
        mean = sum(totals.values()) / sum(self._sizes[at].panes for at in singles)
        apart = sum((totals[at] - mean * self._sizes[at].panes) ** 2 for at in singles)
        return apart * len(singles) / (len(singles) - 1), len(singles) - 1


def _sizes(stratum: Stratum) -> _Sizes:
    panes, drawn = len(stratum.units), len(stratum.sample)
    if drawn < 2:
        return _Sizes(panes, drawn, 0.0)
    weight = panes**2 * (1 - drawn / panes) / (drawn * (drawn - 1))
    if stratum.records is None:
        return _Sizes(panes, drawn, weight)
    # In the order of the panes: that of a set, and so the last digits, differ between processes.
    records = [stratum.records[unit] for unit in stratum.units if unit in stratum.sample]
    mean = sum(records) / drawn
    spread = sum((one - mean) ** 2 for one in records)
    gap = sum(stratum.records.values()) - panes * mean
    return _Sizes(panes, drawn, weight, mean, spread, gap)
