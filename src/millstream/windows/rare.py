"""How much there may be of a key that is in few drawn panes, or in none.

Whatever a key's panes are, how many of them are drawn is a sum of hypergeometric counts with mean
m, the parts of their strata summed up. With a chance of at most P(Poisson(m) <= k) it is k or less
(Hoeffding 1956, for k <= m - 1). So a key that was drawn k times has, but for a chance that is
chosen, panes whose parts sum up to no more than the Poisson limit (`tails.poisson_upper`). Its
drawn panes have used up some of that; the rest are missing ones, at worst those with the most
records for their part. If it was never drawn the probability of that is known exactly, and is used
instead: that no pane of a set was drawn is a product of hypergeometric terms, one a stratum.

A missing pane may hold as much of it as it has records, times the most that a record adds. Where
the records of a pane are not known it is taken to have no more than the largest pane that came, and
where the most is not known, no more than the most of the key in one pane that came.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from math import log

from millstream.windows.message import Manifest
from millstream.windows.sampling import Drawn
from millstream.windows.strata import Stratum, Unit
from millstream.windows.tails import poisson_upper


class Rare:
    """The panes of a window that were left out at random, made ready for many keys."""

    def __init__(
        self,
        strata: Sequence[Stratum],
        received: frozenset[Unit],
        manifests: Mapping[Unit, Manifest],
    ) -> None:
        self._strata = strata
        largest = max((manifests[unit]["records"] for unit in received), default=0)
        self._missing = [
            sorted(
                (largest if one.records is None else one.records[unit] for unit in one.missing),
                reverse=True,
            )
            for one in strata
        ]
        known = all(one.records is not None for one in strata)
        self.missing_records = sum(map(sum, self._missing)) if known else None
        """Of all panes that were left out; None: not known."""

    def beyond(
        self, drawn: Drawn, values: Mapping[Unit, float], most: float | None, chance: float
    ) -> float:
        """The most of a key that the missing panes hold, but for this chance."""
        left = max(0.0, poisson_upper(drawn.seen, chance) - drawn.chances)
        if most is None:
            return max(0.0, max(values.values(), default=0)) * _most(self._by_panes, left)
        return max(0.0, most) * _most(self._by_records, left)

    def unseen(self, chance: float) -> float:
        """The most records that a set of panes has of which none was drawn with this chance."""
        steps: list[tuple[float, float]] = []
        for one, sizes in zip(self._strata, self._missing, strict=True):
            panes, drawn = len(one.units), len(one.sample)
            for before, records in enumerate(sizes):
                # The chance that this one is not drawn either, if `before` others were not.
                rest = panes - before
                none = (rest - drawn) / rest
                steps.append((records, -log(none) if none > 0 else float("inf")))
        return _most(_ordered(steps), -log(chance))

    @cached_property
    def _by_records(self) -> tuple[list[float], list[float]]:
        return _ordered(
            [
                (records, one.part)
                for one, sizes in zip(self._strata, self._missing, strict=True)
                for records in sizes
            ]
        )

    @cached_property
    def _by_panes(self) -> tuple[list[float], list[float]]:
        return _ordered([(1.0, one.part) for one in self._strata for _ in one.missing])


def _ordered(steps: list[tuple[float, float]]) -> tuple[list[float], list[float]]:
    """Costs and gains, summed up in the order of what is gained for a cost."""
    steps = sorted(steps, key=lambda step: step[0] / step[1], reverse=True)
    costs = list(accumulate(cost for _, cost in steps))
    return costs, list(accumulate((gain for gain, _ in steps), initial=0.0))


def _most(steps: tuple[list[float], list[float]], budget: float) -> float:
    """An upper bound on what can be gained: the last step is taken whole."""
    costs, gains = steps
    return gains[min(len(costs), bisect_left(costs, budget) + 1)]
