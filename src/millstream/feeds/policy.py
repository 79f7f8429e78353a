"""Push or pull: the decisions of Feeding Frenzy, section 3, as pure functions.

`high` is H, the cost to push one event to one consumer; `low` is L, the cost to pull from one
producer. Rates are in events or queries a second, costs in any unit that is the same for both.

Per-producer coherency decides for each pair (Lemma 1), global coherency for each consumer
(Lemma 2). Each decision is local, and all of them together are MinCost (Theorems 1 and 2). Lemma 2
is for stores where a look costs the same however many producers are pulled from; here it costs L
for each. So an application goes by Lemma 1 with either coherency, unless it says otherwise.

`Network` has these decisions for a whole network of pairs: what they cost in the model, and the
least that any choice of sides costs. See `adapting` for more pushes than that.
"""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import dataclass, field
from typing import Literal

Side = Literal["push", "pull"]
Coherency = Literal["global", "per-producer"]


def push_cost(event_rate: float, high: float) -> float:
    """What pushing a producer to one consumer costs a second (Claim 1)."""
    return event_rate * high


def pull_cost(query_rate: float, low: float) -> float:
    """What pulling a producer for one consumer costs a second (Claim 1)."""
    return query_rate * low


def side_of_pair(query_rate: float, event_rate: float, ratio: float) -> Side:
    """Lemma 1: push if the consumer looks often for how often the producer writes.

    `ratio` is H/L.

    >>> side_of_pair(6.0, 2.0, 3.0), side_of_pair(5.9, 2.0, 3.0)
    ('push', 'pull')
    """
    return "push" if query_rate >= ratio * event_rate else "pull"


def side_of_consumer(query_rate: float, all_events: float, ratio: float) -> Side:
    """Lemma 2: the same for all producers of a consumer, whose events come at `all_events`.

    L is here what pulling for one look costs, from all producers together. Where that is as many
    pulls as there are producers, the ratio is so many times lower.

    >>> side_of_consumer(6.0, 2.0, 3.0), side_of_consumer(6.0, 4.0, 3.0)
    ('push', 'pull')
    """
    return "push" if query_rate >= ratio * all_events else "pull"


def held(before: Side, query_rate: float, event_rate: float, ratio: float, band: float) -> Side:
    """The same, changed only when a rate is past the threshold by the factor `band`.

    >>> held("pull", 7.0, 2.0, 3.0, 1.5), held("pull", 9.0, 2.0, 3.0, 1.5)
    ('pull', 'push')
    """
    moved = ratio * band if before == "pull" else ratio / band
    return side_of_pair(query_rate, event_rate, moved)


@dataclass(frozen=True, slots=True)
class Pair:
    """A consumer that follows a producer, and how often the one looks and the other writes."""

    consumer: str
    producer: str
    query_rate: float
    event_rate: float


@dataclass(frozen=True)
class Network:
    """Pairs, the costs H and L, and what the sides of the pairs cost in the paper's model.

    With global coherency a look at a feed costs L once, however many producers are pulled: the
    paper shares that cost among the events that are seen (Claim 2), each producer's part being that
    of its events. So one consumer's pull costs depend on all of its pairs, which must all be here.
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
        """What the pair costs a second on push."""
        return push_cost(pair.event_rate, self.high)

    def pulling(self, pair: Pair) -> float:
        """What the pair costs a second on pull."""
        whole = pull_cost(pair.query_rate, self.low)
        if self.coherency == "per-producer":
            return whole
        events = self.all_events[pair.consumer]
        return whole * pair.event_rate / events if events else 0.0

    def penalty(self, pair: Pair) -> float:
        """What the pair costs more on push than on pull; below 0 if push is the cheaper (3.3)."""
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
        """What all pairs cost a second with these on push and the others on pull."""
        return sum(
            self.pushing(pair) if pair in pushed else self.pulling(pair) for pair in self.pairs
        )

    def cost_above(self, threshold: float) -> float:
        """What all pairs cost with those on push whose query rate is at least `threshold` times
        their event rate: Figure 6 turns this knob; H/L is its best setting."""
        return self.cost(above(self.pairs, threshold))


def above(pairs: Iterable[Pair], threshold: float) -> frozenset[Pair]:
    """The pairs whose query rate is at least so many times their event rate."""
    return frozenset(
        pair
        for pair in pairs
        if side_of_pair(pair.query_rate, pair.event_rate, threshold) == "push"
    )
