"""The costs that the server derives from its reads and from the application's progress."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from random import Random

import pytest

import millstream as ms
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.policy.latency import FEWEST, MOST_STEPS, PATIENCE, SETTLE
from millstream.messages.feeds import ReadLatency
from millstream.server.feeds.feed_costs import CostOverview, FeedCosts
from millstream.stores.progress import BatchTiming, Progress

READ, PULL = 300e-6, 20e-6


class Served:
    """Feeds whose clock is held, and reads of them."""

    def __init__(self, **options: object) -> None:
        self.now = 0.0
        feeds = ms.feeds.Feeds(**options)  # type: ignore[arg-type]
        self.costs = FeedCosts(PlacedFeeds(feeds, "feeds"), lambda: self.now)
        self._random = Random(1)

    def reads(self, seconds: float = 0.001, times: int = FEWEST, consumers: int = 10) -> None:
        """Reads that take so long, over the time between two decisions."""
        self.now += SETTLE / 2
        for number in range(times):
            pulled = self._random.randrange(40)
            cpu = (READ + PULL * pulled) * self._random.uniform(0.9, 1.1)
            self.costs.read_took(f"c{number % consumers}", seconds, cpu, pulled, 20)
        self.now += SETTLE / 2 + 1
        self.costs.read_took("last", seconds, READ, 0, 20)

    def progress(self, cost: float) -> None:
        """An event has cost the consumers' function so many microseconds."""
        self.costs.progressed(
            Progress(timing=BatchTiming(costs={"feeds.consumers": cost, "other": 1e9}))
        )


def test_the_ratio_is_the_applications_until_it_is_measured() -> None:
    """Nothing is stamped before H and L are known; then it is H/L, within the noise."""
    served = Served(ratio=5.0)
    assert (served.costs.ratio, served.costs.stamp) == (5.0, None)
    served.reads()
    assert (served.costs.ratio, served.costs.stamp) == (5.0, None)
    served.progress(40.0)
    served.reads()
    assert served.costs.stamp == pytest.approx(2.0, rel=0.1)
    assert served.costs.ratio == served.costs.stamp
    before = served.costs.ratio
    for cost in (42.0, 38.0, 44.0):
        served.progress(cost)
        served.reads()
        assert served.costs.ratio == before
    served.progress(80.0)
    served.reads()
    assert served.costs.ratio == pytest.approx(4.0, rel=0.1)


def test_the_overview_is_whole_from_the_start() -> None:
    """Before the first read all fields are there, and unknown ones are None. Later values are in
    seconds."""
    served = Served()
    unknown = ReadLatency(None, None, None)
    assert served.costs.overview() == CostOverview(None, None, 1.0, 0, unknown)
    served.progress(40.0)
    served.reads(0.002)
    costs = served.costs.overview()
    assert costs.high == pytest.approx(40e-6)
    assert costs.low == pytest.approx(PULL, rel=0.1)
    assert costs.reads == FEWEST + 1
    assert costs.latency == ReadLatency(0.002, 0.002, 0.002)


def test_slow_reads_lower_the_ratio_and_calm_ones_raise_it_back() -> None:
    """With a latency to keep, each slow time halves the ratio; after patient calm times it is back
    at H/L and no higher."""
    served = Served(latency="10ms")
    served.progress(40.0)
    served.reads(0.005, 500)
    usual = served.costs.ratio
    for step in range(1, 4):
        served.reads(0.02)
        assert served.costs.ratio == pytest.approx(usual / 2**step)
    served.reads(0.009)
    assert served.costs.ratio == pytest.approx(usual / 8)
    found = set()
    for _ in range(4 * PATIENCE):
        served.reads(0.005)
        found.add(round(usual / served.costs.ratio))
    assert found == {8, 4, 2, 1}
    assert served.costs.ratio == pytest.approx(usual)


def test_without_a_latency_slow_reads_change_nothing() -> None:
    """Only who asks for a latency pays for it."""
    served = Served()
    for _ in range(5):
        served.reads(5.0)
    assert served.costs.stamp is None
    assert not served.costs.wholesale("c0")


def test_few_reads_decide_nothing() -> None:
    """Some slow reads, however slow, are no reason to push more; enough of them are."""
    served = Served(latency="10ms")
    for _ in range(FEWEST // 2 - 1):
        served.reads(5.0, 1)
        assert served.costs.stamp is None
    served.reads(5.0, 1)
    assert served.costs.stamp == 0.5


def test_per_consumer_slow_times_choose_consumers() -> None:
    """With that strategy the ratio stays, and some more consumers are to have all on push with
    each slow time."""
    served = Served(latency="10ms", strategy="per-consumer")
    names = [f"c{number}" for number in range(10)]

    def chosen() -> int:
        return sum(served.costs.wholesale(one) for one in names)

    sizes = []
    for _ in range(MOST_STEPS):
        served.reads(0.02)
        sizes.append(chosen())
    assert sizes == sorted(sizes)
    assert 0 < sizes[0] < sizes[-1] == 10
    assert served.costs.stamp is None
    for _ in range(PATIENCE * MOST_STEPS):
        served.reads(0.001)
    assert chosen() == 0


def test_threads_may_share_it() -> None:
    """Reads of many threads are all counted."""
    served = Served(latency="10ms", strategy="per-consumer")
    with ThreadPoolExecutor(4) as threads:
        for _ in threads.map(lambda _: served.reads(0.001, 50), range(20)):
            served.costs.overview()
    assert served.costs.overview().reads == 20 * 51
