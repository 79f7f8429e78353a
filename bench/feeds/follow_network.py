"""A network of follows in the paper's model: what the sides of its pairs cost, and the least cost.

Section 3.2 of Feeding Frenzy. A running application decides pair by pair (see
millstream.feeds.policy.sides) and has no list of its pairs. Here the same decisions are applied to
a whole network, to compare their cost with that of any other choice.

`high` is H, the cost of pushing one event to one consumer; `low` is L, the cost of pulling from one
producer. Per-producer coherency decides for each pair (Lemma 1), global coherency for each consumer
(Lemma 2). Each decision is local, and together they are MinCost (Theorems 1 and 2). See
`push_adaptation` for more pushes than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Literal

from millstream.feeds.policy.sides import Side, cheaper_side

Coherency = Literal["global", "per-producer"]


def push_cost(event_rate: float, high: float) -> float:
    """The cost a second of pushing a producer to one consumer (Claim 1)."""
    return event_rate * high


def pull_cost(query_rate: float, low: float) -> float:
    """The cost a second of pulling a producer for one consumer (Claim 1)."""
    return query_rate * low


@dataclass(frozen=True, slots=True)
class Pair:
    """A consumer that follows a producer, with the consumer's query rate and the producer's event
    rate."""

    consumer: str
    producer: str
    query_rate: float
    event_rate: float


@dataclass(frozen=True)
class FollowNetwork:
    """Pairs, the costs H and L, and the cost of the pairs' sides in the paper's model.

    With global coherency a query of a feed costs L once, however many producers are pulled. The
    paper shares that cost among the events that are seen (Claim 2), so each producer's part is that
    of its events. One consumer's pull costs thus depend on all of its pairs, which must all be
    here.
    """

    pairs: tuple[Pair, ...]
    high: float = 1.0
    low: float = 1.0
    coherency: Coherency = "per-producer"
    all_events: dict[str, float] = field(init=False, repr=False, compare=False)
    """By consumer: events a second of all producers that it follows."""

    def __post_init__(self) -> None:
        all_events: dict[str, float] = {}
        for pair in self.pairs:
            all_events[pair.consumer] = all_events.get(pair.consumer, 0.0) + pair.event_rate
        object.__setattr__(self, "all_events", all_events)

    def pushing(self, pair: Pair) -> float:
        """The cost a second of the pair on push."""
        return push_cost(pair.event_rate, self.high)

    def pulling(self, pair: Pair) -> float:
        """The cost a second of the pair on pull."""
        whole = pull_cost(pair.query_rate, self.low)
        if self.coherency == "per-producer":
            return whole
        events = self.all_events[pair.consumer]
        return whole * pair.event_rate / events if events else 0.0

    def penalty(self, pair: Pair) -> float:
        """The extra cost of the pair on push over pull; below 0 if push is cheaper (3.3)."""
        return self.pushing(pair) - self.pulling(pair)

    def side(self, pair: Pair) -> Side:
        """The cheaper side, by the lemma of the coherency."""
        by_pair = self.coherency == "per-producer"
        events = pair.event_rate if by_pair else self.all_events[pair.consumer]
        return cheaper_side(pair.query_rate, events, self.high / self.low)

    def cheapest(self) -> frozenset[Pair]:
        """The pairs on push by MinCost: each consumer's and each pair's own decision."""
        return frozenset(pair for pair in self.pairs if self.side(pair) == "push")

    def cost(self, pushed: Set[Pair]) -> float:
        """The cost a second of all pairs with `pushed` on push and the others on pull."""
        return sum(
            self.pushing(pair) if pair in pushed else self.pulling(pair) for pair in self.pairs
        )

    def cost_above(self, threshold: float) -> float:
        """The cost of all pairs if those are on push whose query rate is at least `threshold` times
        their event rate. Figure 6 turns this knob; H/L is its best setting."""
        return self.cost(above(self.pairs, threshold))


def above(pairs: Iterable[Pair], threshold: float) -> frozenset[Pair]:
    """The pairs whose query rate is at least `threshold` times their event rate."""
    return frozenset(
        pair
        for pair in pairs
        if cheaper_side(pair.query_rate, pair.event_rate, threshold) == "push"
    )
