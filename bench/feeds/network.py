"""Networks of follows in the shape of the paper's Table 2, and what happens in them. By seed.

A shape says how many producers, consumers and pairs there are, and how skewed each distribution is:
the one of rank r has a share that falls with r to the power of the Zipf parameter. Who has which
rank is drawn for each of the four anew, so that none says anything of the others. Rates are an
hour's.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Rates = NDArray[np.float64]
HOUR = 3_600.0


@dataclass(frozen=True, slots=True)
class Shape:
    """The size and the skew of a network. The defaults are the paper's."""

    producers: int = 67_921
    consumers: int = 200_000
    pairs: int = 1_020_458
    followers: float = 0.39
    """Zipf parameter of consumers per producer."""
    follows: float = 0.62
    """The skew of the number of producers per consumer."""
    events: float = 0.57
    """The skew of the producers' posting rates."""
    queries: float = 0.62
    """The skew of the consumers' query rates."""
    event_rate: float = 1.0
    """Posts of a producer, on average."""
    query_rate: float = 5.8
    """Looks of a consumer, on average."""

    def scaled(self, part: float) -> Shape:
        """The same with a part of the producers, consumers and pairs."""
        return replace(
            self,
            producers=round(self.producers * part),
            consumers=round(self.consumers * part),
            pairs=round(self.pairs * part),
        )

    def at_ratio(self, ratio: float) -> Shape:
        """Returns the same shape with a given number of queries for each event in total."""
        rate = ratio * self.event_rate * self.producers / self.consumers
        return replace(self, query_rate=rate)


@dataclass(frozen=True, slots=True)
class Network:
    """Pairs, by the numbers of their producer and consumer, and the rates of both."""

    producer: Whole
    consumer: Whole
    event_rates: Rates
    query_rates: Rates

    def pushed(self, threshold: float) -> NDArray[np.bool_]:
        """Returns for each pair whether it is on push by Lemma 1."""
        return self.query_rates[self.consumer] >= threshold * self.event_rates[self.producer]

    def pushed_whole(self, threshold: float) -> frozenset[int]:
        """The consumers that are on push with all of their producers by Lemma 2, if a look costs as
        many pulls as there are producers."""
        count = len(self.query_rates)
        follows = np.bincount(self.consumer, minlength=count)
        events = np.bincount(self.consumer, self.event_rates[self.producer], count)
        is_pushed = (follows > 0) & (self.query_rates * follows >= threshold * events)
        return frozenset(np.flatnonzero(is_pushed).tolist())


@dataclass(frozen=True, slots=True)
class Stretch:
    """The posts of a period in their order, and the views between them."""

    hours: float
    at: Rates
    """When each post is, in hours from the beginning."""
    producer: Whole
    consumer: Whole
    """The consumer of each view."""


def network(shape: Shape, seed: int = 1) -> Network:
    """A network of a shape."""
    random = np.random.default_rng(seed)
    producer, consumer = _pairs(
        _degrees(shape.producers, shape.pairs, shape.followers, random),
        _degrees(shape.consumers, shape.pairs, shape.follows, random),
        random,
    )
    events = rates(shape.producers, shape.event_rate, shape.events, seed + 1)
    queries = rates(shape.consumers, shape.query_rate, shape.queries, seed + 2)
    return Network(producer, consumer, events, queries)


def rates(count: int, mean: float, zipf: float, seed: int) -> Rates:
    """Rates with this mean, in an order that only the seed decides."""
    found = _shares(count, zipf) * (mean * count)
    return np.random.default_rng(seed).permutation(found)


def stretch(of: Network, posts: int, looks: int, seed: int = 7) -> Stretch:
    """Generates a number of posts and views by the rates. The same seed and rates give the same
    ones."""
    random = np.random.default_rng(seed)
    hours = posts / float(of.event_rates.sum())
    return Stretch(
        hours,
        np.sort(random.uniform(0.0, hours, posts)),
        _drawn(random, of.event_rates, posts),
        _drawn(np.random.default_rng(seed + 1), of.query_rates, looks),
    )


def _drawn(random: np.random.Generator, weights: Rates, count: int) -> Whole:
    up_to = np.cumsum(weights)
    found = np.searchsorted(up_to, random.uniform(0.0, up_to[-1], count), side="right")
    return np.minimum(found, len(weights) - 1).astype(np.int64)


def _shares(count: int, zipf: float) -> Rates:
    falling: Rates = np.arange(1, count + 1, dtype=np.float64) ** -zipf
    shares: Rates = falling / falling.sum()
    return shares


def _degrees(count: int, pairs: int, zipf: float, random: np.random.Generator) -> Whole:
    """Draws the number of pairs of each member: at least one each, `pairs` in total."""
    wanted = _shares(count, zipf) * pairs
    whole = np.maximum(1, np.floor(wanted)).astype(np.int64)
    left = pairs - int(whole.sum())
    if left > 0:
        behind = np.argsort(np.floor(wanted) - wanted, kind="stable")
        whole[behind[:left]] += 1
    for _ in range(-left):  # some were given one although their share is less
        whole[int(np.argmax(whole))] -= 1
    return random.permutation(whole)


def _pairs(followers: Whole, follows: Whole, random: np.random.Generator) -> tuple[Whole, Whole]:
    """Draws distinct pairs with these counts. Ends are joined at random, and duplicate pairs
    exchange ends with others."""
    producer = np.repeat(np.arange(len(followers)), followers)
    consumer = random.permutation(np.repeat(np.arange(len(follows)), follows))
    for _ in range(1_000):
        _, first = np.unique(producer * len(follows) + consumer, return_index=True)
        again = np.setdiff1d(np.arange(len(producer)), first, assume_unique=True)
        if not len(again):
            return producer, consumer
        others = random.integers(0, len(producer), len(again))
        moved = np.unique(np.concatenate([again, others]))
        consumer[moved] = consumer[random.permutation(moved)]
    raise ValueError("so many pairs are not to be had of so few producers and consumers")
