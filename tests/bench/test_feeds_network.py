"""The networks of the evaluation of Feeding Frenzy have the shape that is asked for."""

from __future__ import annotations

import numpy as np
import pytest

from bench.feeds.network import Network, Shape, network, stretch

SHAPE = Shape().scaled(0.1)


@pytest.fixture(scope="module")
def tenth() -> Network:
    return network(SHAPE)


def exponent(values: np.ndarray, skip: int = 20) -> float:
    """By regression: how fast values fall with their rank, in logarithms. The first few, of which
    there is one each, and the last, which are rounded, are left out."""
    ordered = np.sort(values)[::-1][skip : len(values) // 3]
    ranks = np.log(np.arange(skip + 1, skip + 1 + len(ordered)))
    return float(-np.polyfit(ranks, np.log(ordered), 1)[0])


def test_the_full_shape_is_the_papers_table_2() -> None:
    """Producers, consumers and pairs are as many as in the paper, with its averages."""
    shape = Shape()
    assert (shape.producers, shape.consumers, shape.pairs) == (67_921, 200_000, 1_020_458)
    assert shape.pairs / shape.producers == pytest.approx(15.0, abs=0.05)
    assert shape.pairs / shape.consumers == pytest.approx(5.1, abs=0.05)
    assert shape.at_ratio(17.08).query_rate == pytest.approx(shape.query_rate, rel=0.001)


def test_totals_are_exact(tenth: Network) -> None:
    """The number of pairs is exact, none occurs twice, and every member has at least one. Rates
    have their mean."""
    assert len(tenth.producer) == len(tenth.consumer) == SHAPE.pairs
    assert len(np.unique(tenth.producer * SHAPE.consumers + tenth.consumer)) == SHAPE.pairs
    assert np.bincount(tenth.producer, minlength=SHAPE.producers).min() >= 1
    assert np.bincount(tenth.consumer, minlength=SHAPE.consumers).min() >= 1
    assert tenth.event_rates.mean() == pytest.approx(SHAPE.event_rate)
    assert tenth.query_rates.mean() == pytest.approx(SHAPE.query_rate)


def test_the_exponents_are_those_of_the_shape(tenth: Network) -> None:
    """A regression over ranks finds the Zipf parameters again."""
    assert exponent(np.bincount(tenth.producer)) == pytest.approx(SHAPE.followers, abs=0.03)
    assert exponent(np.bincount(tenth.consumer)) == pytest.approx(SHAPE.follows, abs=0.05)
    assert exponent(tenth.event_rates) == pytest.approx(SHAPE.events, abs=0.01)
    assert exponent(tenth.query_rates) == pytest.approx(SHAPE.queries, abs=0.01)


def test_rates_say_nothing_of_followers(tenth: Network) -> None:
    """A producer's rate does not depend on its followers, nor a consumer's on its producers."""
    followers = np.bincount(tenth.producer)
    assert abs(np.corrcoef(followers, tenth.event_rates)[0, 1]) < 0.05
    follows = np.bincount(tenth.consumer)
    assert abs(np.corrcoef(follows, tenth.query_rates)[0, 1]) < 0.05


def test_the_seed_decides(tenth: Network) -> None:
    """The same seed gives the same network and posts, another one another; more queries change
    nothing but the rates of queries."""
    again, other = network(SHAPE), network(SHAPE, 2)
    assert (again.consumer == tenth.consumer).all()
    assert (other.consumer != tenth.consumer).any()
    often = network(SHAPE.at_ratio(64))
    assert (often.consumer == tenth.consumer).all()
    assert (often.event_rates == tenth.event_rates).all()
    assert (stretch(often, 500, 9).producer == stretch(tenth, 500, 3).producer).all()


def test_a_stretch_follows_the_rates(tenth: Network) -> None:
    """Posts come in order, for as long as so many posts take, and the producers that post most are
    drawn most."""
    part = stretch(tenth, 20_000, 20_000)
    assert part.hours == pytest.approx(20_000 / SHAPE.producers)
    assert (np.diff(part.at) >= 0).all()
    assert part.at[-1] <= part.hours
    often = np.argsort(tenth.event_rates)[::-1][: SHAPE.producers // 10]
    drawn = np.isin(part.producer, often).mean()
    share = tenth.event_rates[often].sum() / tenth.event_rates.sum()
    assert drawn == pytest.approx(share, abs=0.02)
    assert part.consumer.max() < SHAPE.consumers


def test_pairs_above_the_threshold_are_pushed(tenth: Network) -> None:
    """Lemma 1, pair by pair: the lower the threshold, the more are pushed."""
    pushed = [int(tenth.pushed(threshold).sum()) for threshold in (1e9, 10.0, 3.0, 0.5, 0.0)]
    assert pushed == sorted(pushed)
    assert (pushed[0], pushed[-1]) == (0, SHAPE.pairs)
    queries = tenth.query_rates[tenth.consumer[0]]
    assert bool(tenth.pushed(3.0)[0]) == (queries >= 3.0 * tenth.event_rates[tenth.producer[0]])


def test_a_network_that_cannot_be_is_refused() -> None:
    """More pairs than there are producers times consumers are not drawn for ever."""
    with pytest.raises(ValueError, match="not to be had"):
        network(Shape(2, 2, 5, 0.0, 0.0))


def test_consumers_above_the_threshold_are_pushed_whole(tenth: Network) -> None:
    """The decision counts all events and all producers of a consumer. Consumers that follow nobody
    are not pushed to."""
    pushed = tenth.pushed_whole(3.0)
    for number in (*list(pushed)[:20], *range(20)):
        mine = tenth.producer[tenth.consumer == number]
        events = float(tenth.event_rates[mine].sum())
        costs_less = tenth.query_rates[number] * len(mine) >= 3.0 * events
        assert (number in pushed) == (len(mine) > 0 and bool(costs_less))
    assert len(tenth.pushed_whole(1e9)) == 0 < len(pushed) < len(tenth.pushed_whole(0.5))
