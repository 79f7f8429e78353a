"""Pushes more than MinCost does, until reads are fast enough (Feeding Frenzy, 3.3).

Choosing the pulled pairs to push for a given gain in latency at the least cost is a knapsack
problem (Lemma 3), and a pair's effect on latency is not known beforehand. So the pairs are put in
one order, by queries a second over penalty, and as many of the first as needed are pushed.
`Adapting` moves up that order while reads are too slow, and back while they are fast, but never
below what MinCost pushes. With single pairs, any number of first moves costs the least of all
choices of pairs whose consumers have the same total query rate.

The order consists of `Move`s: single pairs, or all pulled pairs of a consumer at once (3.3.2).

*One number.* With per-producer coherency a pair's rank is

    query_rate / (event_rate * H - query_rate * L)  =  1 / (H * event_rate / query_rate - L)

which rises with query_rate / event_rate: the first moves are exactly the pairs above a threshold
that is lower than H/L. So a live system, which has no list of all pairs, follows the same order by
adjusting one number: the ratio that its producers decide by (see `costs`).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import inf

from bench.feeds.follow_network import FollowNetwork, Pair
from millstream.feeds.options import Strategy

CALM = 0.8
"""Reads below this part of the target are fast enough to move back."""


@dataclass(frozen=True, slots=True)
class Move:
    """Pairs that turn to push together."""

    pairs: tuple[Pair, ...]
    gain: float
    """Queries a second of the consumers, as an estimate of the latency that the move removes."""
    penalty: float
    """The extra cost a second; above 0."""

    @property
    def rank(self) -> float:
        return self.gain / self.penalty if self.penalty > 0 else inf


def moves_of(network: FollowNetwork, strategy: Strategy = "per-pair") -> tuple[Move, ...]:
    """Returns all moves that MinCost leaves, best first. Equally good moves are ordered by name."""
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
    """A network's place in the order of moves."""

    network: FollowNetwork
    moves: tuple[Move, ...]
    done: int = 0

    @classmethod
    def begun(cls, network: FollowNetwork, strategy: Strategy = "per-pair") -> Adapting:
        """Starts at MinCost."""
        return cls(network, moves_of(network, strategy))

    @property
    def pushed(self) -> frozenset[Pair]:
        """The pairs on push: MinCost's, and those of the first moves."""
        more = (pair for move in self.moves[: self.done] for pair in move.pairs)
        return self.network.cheapest().union(more)

    def adapted(self, latency: float, target: float, step: int = 1) -> Adapting:
        """Returns the state after reads took `latency`: `step` moves further up if that is over the
        target, back if it is well below, otherwise unchanged."""
        if latency > target:
            done = min(len(self.moves), self.done + step)
        elif latency < CALM * target:
            done = max(0, self.done - step)
        else:
            return self
        return self if done == self.done else replace(self, done=done)


def _order(move: Move) -> tuple[float, str, str]:
    return -move.rank, move.pairs[0].consumer, move.pairs[0].producer
