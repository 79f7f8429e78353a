"""The lemmas of Feeding Frenzy, section 3.2, and how producers and consumers decide by them.

`tests/bench/test_follow_network.py` has the theorems about whole networks.
"""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from millstream.feeds.policy.rates import ALWAYS, NEVER, STEPS, class_of
from millstream.feeds.policy.sides import (
    HOLD,
    Side,
    cheaper_side,
    held_side,
    lowest_pushed_class,
    ratio_of_consumer,
    reported_class,
)

NEAR = 1 + 1e-9
"""Products are rounded."""
RATES = st.floats(0.001, 100.0)
COSTS = st.floats(0.1, 10.0)


@given(query=RATES, events=RATES, high=COSTS, low=COSTS)
def test_lemma_1_takes_the_cheaper_side(
    query: float, events: float, high: float, low: float
) -> None:
    """The side of a pair costs no more than the other."""
    costs = {"push": events * high, "pull": query * low}
    assert costs[cheaper_side(query, events, high / low)] <= NEAR * min(costs.values())


@given(query=RATES, events=st.lists(RATES, min_size=1, max_size=5), high=COSTS, low=COSTS)
def test_lemma_2_takes_the_cheaper_side(
    query: float, events: list[float], high: float, low: float
) -> None:
    """The side is the cheaper one for all producers of a consumer, if a query pulls each of
    them."""
    costs = {"push": sum(events) * high, "pull": query * low * len(events)}
    side = cheaper_side(query, sum(events), ratio_of_consumer(high / low, len(events)))
    assert costs[side] <= NEAR * min(costs.values())


@given(query=RATES, events=RATES, ratio=COSTS)
def test_a_producer_decides_by_classes_as_lemma_1_does(
    query: float, events: float, ratio: float
) -> None:
    """Each consumer in a pushed class is on push by the lemma. A consumer in no pushed class that
    the lemma would push to is less than one class from the threshold."""
    pushed = class_of(query) >= lowest_pushed_class(events, ratio)
    if pushed:
        assert cheaper_side(query * NEAR, events, ratio) == "push"
    else:
        assert cheaper_side(query / NEAR, events, ratio * 2 ** (1 / STEPS)) == "pull"


@given(
    query=RATES,
    events=RATES,
    ratio=COSTS,
    follows=st.integers(1, 50),
    before=st.sampled_from([ALWAYS, NEVER, 160]),
)
def test_a_consumer_reports_what_lemma_2_says(
    query: float, events: float, ratio: float, follows: int, before: int
) -> None:
    """A consumer that decides for all of its producers reports that it is always or never pushed
    to. Past the threshold by the factor `HOLD` that is the cheaper side; within it, the side before
    stays."""
    side = cheaper_side(query, events, ratio_of_consumer(ratio, follows))
    off = query * follows / (events * ratio)
    if 1 / HOLD * NEAR < off < HOLD / NEAR:
        side = "push" if before == ALWAYS else "pull"
    elif 1 / HOLD / NEAR <= off <= HOLD * NEAR:
        return  # at the edge of the band, by rounding
    expected = ALWAYS if side == "push" else NEVER
    assert reported_class(before, query, events, ratio, follows) == expected


@given(query=RATES, events=RATES, ratio=COSTS, band=st.floats(1.0, 4.0))
def test_a_held_side_stays_within_its_band(
    query: float, events: float, ratio: float, band: float
) -> None:
    """Outside the band the side is the lemma's. Within it the side stays. A second decision with
    the same rates changes nothing."""
    off = query / (events * ratio)
    sides: tuple[Side, ...] = ("push", "pull")
    for before in sides:
        after = held_side(before, query, events, ratio, band)
        assert held_side(after, query, events, ratio, band) == after
        if off > band * NEAR or off < 1 / band / NEAR:
            assert after == cheaper_side(query, events, ratio)
        elif 1 / band * NEAR < off < band / NEAR:
            assert after == before


def test_no_events_are_pushed() -> None:
    """A silent producer costs nothing on push, so everybody is pushed to."""
    assert cheaper_side(0.0, 0.0, 2.0) == "push"
    assert lowest_pushed_class(0.0, 2.0) == NEVER
