"""Totals from a sample of panes: stratified, with panes as clusters (Cochran, Sampling Techniques).

A pane is drawn as a whole, so the sampled unit is the pane's total, and its records may depend on
each other. In a stratum of N panes of which n were drawn, the total is estimated as N times the
mean of the sample, with the variance N²(1 - n/N)s²/n of simple random sampling without replacement
(ch. 5). The variances of strata add up. s² has n - 1 degrees of freedom, the sum those of
Satterthwaite. These would be right for normal totals. Totals of panes have long tails, with a
kurtosis excess of about 2, which doubles the variance of s². So half of the degrees are counted
(`TAILS`).

The number of records is often known of every pane, since records of panes that were given up are
counted too. Then the estimate is corrected by the difference between the records of the sample and
those of all panes: the combined regression estimator (7.10), with one slope for all strata. It is
exact for values proportional to the records, and never much worse than no correction. The slope is
an estimate too: it costs one degree of freedom and adds its own variance. With fewer than
`LEAST_FREEDOM` degrees of freedom there is no correction.

Strata with a single drawn pane have no s². They are collapsed into one (5A.12), which overstates
the variance and never understates it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

from millstream.windows.bounds.strata import Stratum, Unit

TAILS = 2
"""Degrees of freedom are divided by this."""
LEAST_FREEDOM = 8
"""The least degrees of freedom with which a slope is estimated."""


@dataclass(frozen=True, slots=True)
class Drawn:
    """An estimated total over the strata."""

    value: float
    variance: float
    freedom: float
    seen: int
    """The number of drawn panes in which the value is not zero."""
    chances: float
    """The sampled shares of the strata of these panes, summed up."""


@dataclass(frozen=True, slots=True)
class _Sizes:
    """The numbers of panes of a stratum, and statistics of the records in its sample."""

    panes: int
    drawn: int
    weight: float
    """The variance is this times a sum of squared distances."""
    mean: float = 0.0
    spread: float = 0.0
    """The sum of squared distances of the records from their mean. 0: not known, or all are
    equal."""
    gap: float = 0.0
    """The records of all panes, minus the estimate from the sample."""


class Sampling:
    """The strata of a window, prepared for many totals. The time for a total grows with the number
    of strata and of panes in which it is not zero, not with the number of all panes."""

    def __init__(self, strata: Sequence[Stratum]) -> None:
        self._sizes = [_sizes(stratum) for stratum in strata]
        self._places = {
            unit: (
                index,
                0.0 if stratum.records is None else stratum.records[unit] - self._sizes[index].mean,
            )
            for index, stratum in enumerate(strata)
            for unit in stratum.sample
        }
        """For each drawn pane its stratum, and its records minus their mean."""
        sloped = [sizes for sizes in self._sizes if sizes.spread > 0]
        self._freedom = sum(sizes.drawn - 1 for sizes in sloped)
        self._scale = sum(sizes.weight * sizes.spread for sizes in sloped)
        self._gap = sum(sizes.gap for sizes in sloped)
        self.drawn = len(self._places)

    def total(self, values: Mapping[Unit, float]) -> Drawn:
        """Estimates the total of a value over all panes of the strata. A pane that is not in
        `values` has the value 0. Panes that were not drawn are ignored."""
        sums: dict[int, list[float]] = {}
        for unit, value in values.items():
            place = self._places.get(unit)
            if place is None or not value:
                continue
            index, deviation = place
            if index not in sums:
                sums[index] = [0.0, 0.0, 0.0, 0]
            moments = sums[index]
            moments[0] += value
            moments[1] += value * value
            moments[2] += value * deviation
            moments[3] += 1
        slope = self._slope(sums)
        estimate, seen, chances = slope * self._gap, 0, 0.0
        for index, moments in sums.items():
            part = self._sizes[index].drawn / self._sizes[index].panes
            estimate += moments[0] / part
            seen += int(moments[3])
            chances += moments[3] * part
        variance, freedom = self._variance(sums, slope)
        return Drawn(estimate, variance, freedom, seen, chances)

    def _slope(self, sums: Mapping[int, list[float]]) -> float:
        if self._freedom < LEAST_FREEDOM:
            return 0.0
        along = sum(
            self._sizes[index].weight * moments[2]
            for index, moments in sums.items()
            if self._sizes[index].spread > 0
        )
        return along / self._scale

    def _variance(self, sums: Mapping[int, list[float]], slope: float) -> tuple[float, float]:
        parts: list[tuple[float, int]] = []
        slope_spread = 0.0
        inflation = self._freedom / (self._freedom - 1) if slope else 1.0
        for index, size in enumerate(self._sizes):
            if size.drawn < 2:
                continue
            total, squares, along, _ = sums.get(index, (0.0, 0.0, 0.0, 0))
            apart = squares - total * total / size.drawn
            apart = 0.0 if apart < 1e-12 * squares else apart
            if size.spread > 0 and slope:
                apart -= 2 * slope * along - slope * slope * size.spread
                apart = max(0.0, apart if apart > 1e-12 * squares else 0.0) * inflation
                slope_spread += size.weight**2 * size.spread * apart / (size.drawn - 1)
            parts.append((size.weight * apart, size.drawn - 1))
        parts.append(self._of_singles(sums))
        variance = sum(part for part, _ in parts)
        below = sum(part * part / freedom for part, freedom in parts if part)
        freedom = variance * variance / below / inflation / TAILS if below else inf
        if slope:
            variance += self._gap**2 * slope_spread / self._scale**2
        return variance, freedom

    def _of_singles(self, sums: Mapping[int, list[float]]) -> tuple[float, int]:
        """Returns the variance and the degrees of freedom of the collapsed strata with one drawn
        pane each."""
        singles = [index for index, size in enumerate(self._sizes) if size.drawn == 1]
        if len(singles) < 2:  # `layout` never leaves exactly one
            return 0.0, 1
        totals = {index: self._sizes[index].panes * sums.get(index, [0.0])[0] for index in singles}
        mean = sum(totals.values()) / sum(self._sizes[index].panes for index in singles)
        apart = sum((totals[index] - mean * self._sizes[index].panes) ** 2 for index in singles)
        return apart * len(singles) / (len(singles) - 1), len(singles) - 1


def _sizes(stratum: Stratum) -> _Sizes:
    panes, drawn = len(stratum.units), len(stratum.sample)
    if drawn < 2:
        return _Sizes(panes, drawn, 0.0)
    weight = panes**2 * (1 - drawn / panes) / (drawn * (drawn - 1))
    if stratum.records is None:
        return _Sizes(panes, drawn, weight)
    # In the order of the panes: a set's order, and so the last digits, differ between processes.
    records = [stratum.records[unit] for unit in stratum.units if unit in stratum.sample]
    mean = sum(records) / drawn
    spread = sum((count - mean) ** 2 for count in records)
    gap = sum(stratum.records.values()) - panes * mean
    return _Sizes(panes, drawn, weight, mean, spread, gap)
