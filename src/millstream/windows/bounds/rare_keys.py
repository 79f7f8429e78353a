"""Limits on the amount of a key that is in few drawn panes, or in none.

For any set of panes that hold a key, the number of them that are drawn is a sum of hypergeometric
counts. Its mean m is the sum of the sampled shares of their strata. The number is k or less with a
probability of at most P(Poisson(m) <= k) (Hoeffding 1956, for k <= m - 1). So if a key was drawn k
times, the shares of its panes add up to at most the Poisson limit (`tails.poisson_upper`), except
with the chosen probability. Its drawn panes are part of that sum. The rest are missing panes, in
the worst case those with the most records for their share. For a key that was never drawn the
probability is known exactly and is used instead: the probability that no pane of a set was drawn is
a product of hypergeometric terms, one for each stratum.

A missing pane may have as much of the key as it has records, times the most that a record adds. If
its number of records is not known, that of the largest received pane is assumed. If it is not known
what a record may add, the greatest amount of the key in a received pane is assumed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from math import log

from millstream.windows.bounds.strata import Stratum, Unit
from millstream.windows.bounds.stratified_sample import Drawn
from millstream.windows.bounds.tails import poisson_upper
from millstream.windows.panes.message import PaneManifest


class Rare:
    """The panes of a window that were left out at random, prepared for many keys."""

    def __init__(
        self,
        strata: Sequence[Stratum],
        received: frozenset[Unit],
        manifests: Mapping[Unit, PaneManifest],
    ) -> None:
        self._strata = strata
        largest = max((manifests[unit].records for unit in received), default=0)
        self._missing = [
            sorted(
                (
                    largest if stratum.records is None else stratum.records[unit]
                    for unit in stratum.missing
                ),
                reverse=True,
            )
            for stratum in strata
        ]
        known = all(stratum.records is not None for stratum in strata)
        self.missing_records = sum(map(sum, self._missing)) if known else None
        """The records of all panes that were left out. None: not known."""

    def beyond(
        self, drawn: Drawn, values: Mapping[Unit, float], most: float | None, chance: float
    ) -> float:
        """Returns the most of a key that the missing panes hold, except with probability
        `chance`."""
        left = max(0.0, poisson_upper(drawn.seen, chance) - drawn.chances)
        if most is None:
            return max(0.0, max(values.values(), default=0)) * _most(self._by_panes, left)
        return max(0.0, most) * _most(self._by_records, left)

    def unseen(self, chance: float) -> float:
        """Returns the greatest number of records in a set of panes from which none is drawn with a
        probability of `chance`."""
        steps: list[tuple[float, float]] = []
        for stratum, sizes in zip(self._strata, self._missing, strict=True):
            panes, drawn = len(stratum.units), len(stratum.sample)
            for before, records in enumerate(sizes):
                # The probability that this pane is not drawn either, if `before` others were not.
                rest = panes - before
                none = (rest - drawn) / rest
                steps.append((records, -log(none) if none > 0 else float("inf")))
        return _most(_ordered(steps), -log(chance))

    @cached_property
    def _by_records(self) -> tuple[list[float], list[float]]:
        return _ordered(
            [
                (records, stratum.part)
                for stratum, sizes in zip(self._strata, self._missing, strict=True)
                for records in sizes
            ]
        )

    @cached_property
    def _by_panes(self) -> tuple[list[float], list[float]]:
        return _ordered([(1.0, stratum.part) for stratum in self._strata for _ in stratum.missing])


def _ordered(steps: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Returns the running sums of costs and gains, sorted by gain per cost."""
    steps = sorted(steps, key=lambda step: step[0] / step[1], reverse=True)
    costs = list(accumulate(cost for _, cost in steps))
    return costs, list(accumulate((gain for gain, _ in steps), initial=0.0))


def _most(steps: tuple[list[float], list[float]], budget: float) -> float:
    """Returns an upper bound on the gain within a budget: the last step is counted whole."""
    costs, gains = steps
    return gains[min(len(costs), bisect_left(costs, budget) + 1)]
