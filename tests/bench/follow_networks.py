"""Small networks of pairs as hypothesis makes them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from hypothesis import strategies as st

from bench.feeds.follow_network import Coherency, FollowNetwork, Pair

RATES = st.floats(0.001, 100.0)
COSTS = st.floats(0.1, 10.0)


@st.composite
def networks(
    draw: st.DrawFn, *, most: int = 8, coherency: Coherency | None = None
) -> FollowNetwork:
    """Up to `most` pairs of a few consumers and producers, whose rates are their own."""
    queries = draw(st.lists(RATES, min_size=1, max_size=4))
    events = draw(st.lists(RATES, min_size=1, max_size=4))
    all_pairs = [
        Pair(f"c{i}", f"p{j}", query_rate, event_rate)
        for i, query_rate in enumerate(queries)
        for j, event_rate in enumerate(events)
    ]
    pairs = draw(st.lists(st.sampled_from(all_pairs), unique=True, max_size=most))
    if coherency is None:
        coherency = draw(st.sampled_from(["global", "per-producer"]))
    return FollowNetwork(tuple(pairs), draw(COSTS), draw(COSTS), coherency)


def choices(pairs: tuple[Pair, ...]) -> Iterator[frozenset[Pair]]:
    """Every set of pairs that could be on push."""
    for size in range(len(pairs) + 1):
        yield from map(frozenset, combinations(pairs, size))
