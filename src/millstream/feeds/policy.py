"""Push or pull: the decisions of Feeding Frenzy, section 3, as pure functions.

`high` is H, the cost of pushing one event to one consumer; `low` is L, the cost of pulling from one
producer. Rates are in events or queries a second; costs are in any common unit.

Per-producer coherency decides for each pair (Lemma 1), global coherency for each consumer (Lemma
2). Each decision is local, and together they are MinCost (Theorems 1 and 2). Lemma 2 applies to
stores where a query costs the same however many producers it pulls from; here it costs L for each.
So an application uses Lemma 1 with either coherency, unless it is configured otherwise.

`FollowNetwork` applies these decisions to a whole network of pairs. It gives their cost in the
model, and the least cost of any choice of sides. See `push_adaptation` for more pushes than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Literal

Side = Literal["push", "pull"]
Coherency = Literal["global", "per-producer"]


def push_cost(event_rate: float, high: float) -> float:
    """The cost a second of pushing a producer to one consumer (Claim 1)."""
    return event_rate * high


def pull_cost(query_rate: float, low: float) -> float:
    """The cost a second of pulling a producer for one consumer (Claim 1)."""
    return query_rate * low


def side_of_pair(query_rate: float, event_rate: float, ratio: float) -> Side:
    """Lemma 1: push if the consumer queries often, relative to how often the producer posts.

    `ratio` is H/L.

    >>> side_of_pair(6.0, 2.0, 3.0), side_of_pair(5.9, 2.0, 3.0)
    ('push', 'pull')
    """
    return "push" if query_rate >= ratio * event_rate else "pull"


def side_of_consumer(query_rate: float, all_events: float, ratio: float) -> Side:
    """Lemma 2: one side for all producers of a consumer, which together post at the rate
    `all_events`.

    Here L is the cost of one query, pulling from all producers together. If a query makes one pull
    for each producer, the ratio is that many times lower.

    >>> side_of_consumer(6.0, 2.0, 3.0), side_of_consumer(6.0, 4.0, 3.0)
    ('push', 'pull')
    """
    return "push" if query_rate >= ratio * all_events else "pull"


def held(before: Side, query_rate: float, event_rate: float, ratio: float, band: float) -> Side:
    """Like `side_of_pair`, but changes side only past the threshold by the factor `band`.

    >>> held("pull", 7.0, 2.0, 3.0, 1.5), held("pull", 9.0, 2.0, 3.0, 1.5)
    ('pull', 'push')
    """
    moved = ratio * band if before == "pull" else ratio / band
    return side_of_pair(query_rate, event_rate, moved)


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
        ratio = self.high / self.low
        if self.coherency == "per-producer":
            return side_of_pair(pair.query_rate, pair.event_rate, ratio)
        return side_of_consumer(pair.query_rate, self.all_events[pair.consumer], ratio)

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
        if side_of_pair(pair.query_rate, pair.event_rate, threshold) == "push"
    )
