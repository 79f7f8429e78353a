"""The adaptive algorithm of Feeding Frenzy, section 3.3, against brute force."""

from __future__ import annotations

from itertools import accumulate, pairwise

import pytest
from follow_networks import choices, networks
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.feeds.follow_network import FollowNetwork, Pair, above
from bench.feeds.push_adaptation import CALM, Adapting, moves_of
from millstream.feeds.options import Strategy

NEAR = 1 + 1e-9
TARGET = 10.0
SLOW, STEADY, FAST = TARGET * 1.01, TARGET * (1 + CALM) / 2, TARGET * CALM * 0.99
STRATEGIES: list[Strategy] = ["per-pair", "per-consumer"]


def gain(network: FollowNetwork, pushed: frozenset[Pair]) -> float:
    """Returns the stand-in for latency: queries a second, over all pairs that are pushed for it."""
    return sum(pair.query_rate for pair in pushed - network.cheapest())


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(network=networks(most=12), latencies=st.lists(st.sampled_from([SLOW, STEADY, FAST])))
def test_never_below_min_cost(
    strategy: Strategy, network: FollowNetwork, latencies: list[float]
) -> None:
    """Whatever the latency of reads, MinCost's pushes stay on push. The cost is MinCost's plus the
    penalties of the moves."""
    adapting = Adapting.begun(network, strategy)
    least = network.cost(network.cheapest())
    for latency in latencies:
        adapting = adapting.adapted(latency, TARGET)
        assert adapting.pushed >= network.cheapest()
        moved = sum(move.penalty for move in adapting.moves[: adapting.done])
        assert network.cost(adapting.pushed) == pytest.approx(least + moved)


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(network=networks(most=12), step=st.integers(1, 3))
def test_up_while_slow_and_back_while_fast(
    strategy: Strategy, network: FollowNetwork, step: int
) -> None:
    """Slow reads lead to all on push, each step to more; fast ones back to MinCost the same way;
    between the two nothing moves; at each end the next step changes nothing."""
    adapting = Adapting.begun(network, strategy)
    way = [adapting]
    while (higher := way[-1].adapted(SLOW, TARGET, step)) is not way[-1]:
        assert higher.pushed > way[-1].pushed
        assert higher.adapted(STEADY, TARGET, step) is higher
        way.append(higher)
    assert way[-1].pushed == frozenset(network.pairs)
    lower = way[-1]
    while (back := lower.adapted(FAST, TARGET, step)) is not lower:
        assert back.pushed < lower.pushed
        lower = back
    assert lower.pushed == network.cheapest()


@pytest.mark.parametrize("strategy", STRATEGIES)
@given(network=networks(most=12))
def test_the_best_move_is_first(strategy: Strategy, network: FollowNetwork) -> None:
    """Moves come by queries a second over penalty, the highest first, each pair in just one; and
    from the same network always in the same order."""
    moves = moves_of(network, strategy)
    assert all(one.rank >= other.rank for one, other in pairwise(moves))
    moved = [pair for move in moves for pair in move.pairs]
    assert len(moved) == len(set(moved))
    assert set(moved) == set(network.pairs) - network.cheapest()
    turned = FollowNetwork(network.pairs[::-1], network.high, network.low, network.coherency)
    if network.coherency == "per-producer":  # else sums of rates are rounded otherwise
        assert [set(move.pairs) for move in moves_of(turned, strategy)] == [
            set(move.pairs) for move in moves
        ]


@settings(max_examples=examples(100), deadline=None)
@given(network=networks())
def test_each_number_of_first_pairs_is_the_cheapest_for_its_gain(network: FollowNetwork) -> None:
    """Among all sets with as many queries a second, that of the greedy order has the lowest
    cost."""
    adapting = Adapting.begun(network)
    for done in range(len(adapting.moves) + 1):
        pushed = Adapting(network, adapting.moves, done).pushed
        enough = gain(network, pushed) / NEAR
        least = min(
            network.cost(other)
            for other in choices(network.pairs)
            if other >= network.cheapest() and gain(network, other) >= enough
        )
        assert network.cost(pushed) <= NEAR * least


@given(network=networks(most=12))
def test_pairs_are_never_worse_than_consumers(network: FollowNetwork) -> None:
    """Figure 8, in the model: for the gain of any number of whole consumers, single pairs (the
    last of them in part) cost no more."""
    moves = moves_of(network)
    gains = [0.0, *accumulate(move.gain for move in moves)]
    costs = [0.0, *accumulate(move.penalty for move in moves)]
    by_consumer = Adapting.begun(network, "per-consumer")
    least = network.cost(network.cheapest())
    for done in range(len(by_consumer.moves) + 1):
        pushed = Adapting(network, by_consumer.moves, done).pushed
        wanted = min(gain(network, pushed), gains[-1])
        place = next(i for i, gained in enumerate(gains) if gained >= wanted / NEAR)
        cost = costs[place]
        if place and gains[place] > wanted:
            part = (gains[place] - wanted) / moves[place - 1].gain
            cost -= part * moves[place - 1].penalty
        assert least + cost <= NEAR * network.cost(pushed)


@given(network=networks(most=12, coherency="per-producer"))
def test_per_pair_it_is_one_threshold(network: FollowNetwork) -> None:
    """With per-producer coherency, each number of moves is the pairs above one threshold of query
    rate over event rate, lower than H/L: a live system needs to turn just that."""
    adapting = Adapting.begun(network)
    ratio = network.high / network.low
    for done in range(1, len(adapting.moves) + 1):
        last = adapting.moves[done - 1].pairs[0]
        threshold = last.query_rate / last.event_rate
        assert threshold <= ratio * NEAR
        pushed = Adapting(network, adapting.moves, done).pushed
        assert above(network.pairs, threshold * NEAR) <= pushed
        assert pushed <= above(network.pairs, threshold / NEAR)
