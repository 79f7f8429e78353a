"""More pushes than MinCost, until reads are fast enough (Feeding Frenzy, 3.3).

Which pulled pairs to push so that latency comes down by so much at the least cost is a knapsack
problem (Lemma 3), and what a pair does for latency is not known beforehand. So the pairs are put in
one order, by queries a second over penalty, and as many of the first as it takes are pushed:
`Adapting` goes up that order while reads are too slow, and back while they are fast, never below
what MinCost pushes. With single pairs, any number of first moves costs the least of all choices of
pairs whose consumers look as often in sum.

The order is made of `Move`s: single pairs, or all pulled pairs of a consumer at once (3.3.2).

*One number.* With per-producer coherency a pair's place is by

    query_rate / (event_rate * H - query_rate * L)  =  1 / (H * event_rate / query_rate - L)

which rises with query_rate / event_rate: the first moves are just the pairs above a threshold that
is lower than H/L. So a live system, which has no list of all pairs, follows the same order by
turning one number: the ratio that its producers decide by (see `costs`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf

from millstream.feeds.options import Strategy
from millstream.feeds.policy import Network, Pair

CALM = 0.8
"""The part of the target below which reads are fast enough to go back."""


@dataclass(frozen=True, slots=True)
class Move:
    """Pairs that turn to push together."""

    pairs: tuple[Pair, ...]
    gain: float
    """Queries a second of the consumers: what stands for the latency that it takes away."""
    penalty: float
    """What it costs a second, over 0."""

    @property
    def rank(self) -> float:
        return self.gain / self.penalty if self.penalty > 0 else inf


def moves_of(network: Network, strategy: Strategy = "per-pair") -> tuple[Move, ...]:
    """All moves that MinCost leaves, the best first; those that are as good, by name."""
    pushed = network.cheapest()
    pulled = [pair for pair in network.pairs if pair not in pushed]
    if strategy == "per-pair":
        groups: Iterable[list[Pair]] = ([pair] for pair in pulled)
    else:
        by_consumer: dict[str, list[Pair]] = {}
        for pair in pulled:
            by_consumer.setdefault(pair.consumer, []).append(pair)
        groups = by_consumer.values()
    moves = [
        Move(tuple(group), group[0].query_rate, sum(map(network.penalty, group)))
        for group in groups
    ]
    return tuple(sorted(moves, key=_order))


@dataclass(frozen=True, slots=True)
class Adapting:
    """How far up the order of moves a network is."""

    network: Network
    moves: tuple[Move, ...]
    done: int = 0

    @classmethod
    def begun(cls, network: Network, strategy: Strategy = "per-pair") -> Adapting:
        """At MinCost."""
        return cls(network, moves_of(network, strategy))

    @property
    def pushed(self) -> frozenset[Pair]:
        """The pairs on push: MinCost's, and those of the first moves."""
        more = (pair for move in self.moves[: self.done] for pair in move.pairs)
        return self.network.cheapest().union(more)

    def adapted(self, latency: float, target: float, step: int = 1) -> Adapting:
        """After reads took so long: `step` moves further up if that is over the target, back if it
        is well below, else the same."""
        if latency > target:
            done = min(len(self.moves), self.done + step)
        elif latency < CALM * target:
            done = max(0, self.done - step)
        else:
            return self
        return self if done == self.done else replace(self, done=done)


def _order(move: Move) -> tuple[float, str, str]:
    return -move.rank, move.pairs[0].consumer, move.pairs[0].producer
