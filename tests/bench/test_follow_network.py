"""The theorems of Feeding Frenzy, section 3.2, against brute force: the decisions that a running
application makes pair by pair are the cheapest for a whole network."""

from __future__ import annotations

from follow_networks import choices, networks
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.feeds.follow_network import FollowNetwork, Pair, above

NEAR = 1 + 1e-9
"""Sums are rounded."""


@settings(max_examples=examples(150), deadline=None)
@given(network=networks())
def test_min_cost_is_the_least_of_all_choices(network: FollowNetwork) -> None:
    """Theorems 1 and 2: deciding each pair by itself costs no more than any set of pushes."""
    least = min(network.cost(pushed) for pushed in choices(network.pairs))
    assert network.cost(network.cheapest()) <= NEAR * least


@given(network=networks(most=16))
def test_hybrid_is_never_above_push_all_and_pull_all(network: FollowNetwork) -> None:
    """MinCost is at or under both of the simple policies (Figure 4)."""
    hybrid = network.cost(network.cheapest())
    assert hybrid <= NEAR * network.cost(frozenset(network.pairs))
    assert hybrid <= NEAR * network.cost(frozenset())


@given(network=networks(coherency="global", most=16))
def test_with_global_coherency_a_consumer_has_one_side(network: FollowNetwork) -> None:
    """Lemma 2 never parts the pairs of a consumer, and all its pulls together cost L a look."""
    pushed = network.cheapest()
    for consumer in {pair.consumer for pair in network.pairs}:
        mine = [pair for pair in network.pairs if pair.consumer == consumer]
        assert len({pair in pushed for pair in mine}) == 1
        look = mine[0].query_rate * network.low
        assert look / NEAR <= sum(map(network.pulling, mine)) <= look * NEAR


@given(network=networks(coherency="per-producer", most=16), threshold=st.floats(0.01, 100.0))
def test_the_threshold_is_best_at_the_ratio(network: FollowNetwork, threshold: float) -> None:
    """Figure 6: whatever the threshold of pushing is, H/L costs no more; a higher one pushes
    fewer pairs."""
    ratio = network.high / network.low
    assert above(network.pairs, ratio) == network.cheapest()
    assert network.cost_above(ratio) <= NEAR * network.cost_above(threshold)
    assert above(network.pairs, threshold * 2) <= above(network.pairs, threshold)


def test_no_events_are_pushed_and_no_queries_pulled() -> None:
    """A silent producer costs nothing on push, a consumer that never looks nothing on pull."""
    silent, absent = Pair("c", "p", 1.0, 0.0), Pair("d", "q", 0.0, 1.0)
    for coherency in ("global", "per-producer"):
        network = FollowNetwork((silent, absent), 2.0, 1.0, coherency)
        assert network.cheapest() == {silent}
        assert network.cost(network.cheapest()) == 0.0
