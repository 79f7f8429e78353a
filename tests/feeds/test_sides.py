"""How pairs change sides on the engine: seldom, once in a flash, and back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from heapq import merge
from operator import itemgetter
from random import Random

import pytest
from feeds.feed_runs import FeedRun, Record

import millstream as ms
from bench.feeds.follow_network import FollowNetwork, Pair
from millstream.feeds.names import SEP, prefix

SECOND = 1_000_000
MINUTE, HOUR, DAY = 60 * SECOND, 3_600 * SECOND, 86_400 * SECOND
START = 1_700_000_000_000_000
PAIRS = ms.feeds.Feeds(backfill=5, keep=20)
CONSUMERS = ms.feeds.Feeds(decide="per-consumer")
Names = tuple[str, str]


def times(every: float, begin: int, end: int, random: Random | None = None) -> Iterator[int]:
    """Times at even gaps, or at random ones that are as long on the average."""
    at = float(begin)
    while (at := at + (random.expovariate(1 / every) if random else every)) < end:
        yield int(at)


def views(consumer: str, at: Iterable[int], **more: object) -> Iterator[Record]:
    return ({"kind": "view", "consumer": consumer, "at": one, **more} for one in at)


def posts(producer: str, at: Iterable[int]) -> Iterator[Record]:
    return (
        {"kind": "post", "producer": producer, "id": f"{one}", "value": 0, "at": one} for one in at
    )


def follows(consumers: Iterable[str], producer: str) -> list[Record]:
    return [
        {"kind": "follow", "consumer": one, "producer": producer, "at": START + number}
        for number, one in enumerate(consumers)
    ]


def take(run: FeedRun, *records: Iterable[Record], size: int = 50) -> None:
    """All of them in the order of their times, by batches of a size."""
    left = list(merge(*records, key=itemgetter("at")))
    for begin in range(0, len(left), size):
        run.batch(left[begin : begin + size])
    run.settle()


def flips(run: FeedRun) -> Counter[tuple[Names, str]]:
    """Returns how often each pair was told its side since the last call."""
    told = run.engine.streams.pop("feeds.push", [])
    return Counter(
        ((event.key, event.value["producer"]), event.value["side"])
        for event in told
        if event.value["kind"] == "side"
    )


def pushed(run: FeedRun, consumers: Iterable[str]) -> set[str]:
    """The consumers that have anything on push."""
    return {one for one in consumers if run.entries("consumers", one, prefix("push"))}


@pytest.mark.parametrize("seed", range(3))
def test_steady_pairs_do_not_flap(seed: int) -> None:
    """Views and posts that come by chance at steady rates: after a week a pair that is off the
    threshold by a factor of two or more never changes its side in three more; one that is right
    at it does so a few times at most."""
    random = Random(seed)
    run = FeedRun(PAIRS)
    looks = {"c4": 6.0, "c2": 12.0, "at": 24.0, "d2": 48.0, "d4": 96.0}
    take(run, follows(looks, "p"))
    week = START + 7 * DAY

    def weeks(begin: int, end: int) -> list[Iterator[Record]]:
        found = [views(one, times(DAY / n, begin, end, random)) for one, n in looks.items()]
        return [*found, posts("p", times(HOUR, begin, end, random))]

    take(run, *weeks(START + SECOND, week))
    flips(run)
    assert pushed(run, looks) - {"at"} == {"d2", "d4"}
    take(run, *weeks(week, week + 21 * DAY))
    found = Counter(pair[0] for pair, _ in flips(run).elements())
    assert set(found) <= {"at"}
    assert found["at"] <= 6
    assert pushed(run, looks) - {"at"} == {"d2", "d4"}


@pytest.mark.parametrize("seed", range(3))
def test_steady_consumers_do_not_flap(seed: int) -> None:
    """The same holds if a consumer decides for all producers, and the flow of its feed is known
    only within a fourth."""
    random = Random(seed)
    run = FeedRun(CONSUMERS)
    looks = {"c4": 6.0, "c2": 12.0, "at": 24.0, "d2": 48.0, "d4": 96.0}
    take(run, follows(looks, "p"))

    def weeks(begin: int, end: int) -> Iterator[Record]:
        for one, often in looks.items():
            for view in views(one, times(DAY / often, begin, end, random)):
                yield {**view, "flow": 24 / 86_400 * random.uniform(0.8, 1.25)}

    week = START + 7 * DAY
    take(run, sorted(weeks(START + SECOND, week), key=itemgetter("at")))
    flips(run)
    assert pushed(run, looks) - {"at"} == {"d2", "d4"}
    take(run, sorted(weeks(week, week + 21 * DAY), key=itemgetter("at")))
    found = Counter(pair[0] for pair, _ in flips(run).elements())
    assert set(found) <= {"at"}
    assert found["at"] <= 6


@pytest.mark.parametrize("queries", [0.25, 1.0, 4.0, 16.0])
def test_live_sides_cost_little_more_than_the_cheapest(queries: float) -> None:
    """The rates are skewed and unknown to the functions. After a week of random views and posts,
    the sides cost at most a tenth more than MinCost with the true rates, in the model."""
    random = Random(queries)
    writes = {f"p{n}": 20.0 / (n + 1) ** 0.8 for n in range(30)}
    looks = {f"c{n}": queries * 20.0 / (n + 1) ** 0.8 for n in range(40)}
    pairs = [(one, to) for one in looks for to in random.sample(sorted(writes), 6)]
    run = FeedRun(PAIRS)
    took = enumerate(pairs, START)
    take(run, ({"kind": "follow", "consumer": c, "producer": p, "at": at} for at, (c, p) in took))
    end = START + 7 * DAY
    looked = [
        views(
            one,
            times(DAY / often * (lump := max(1, round(often / 12))), START, end, random),
            count=lump,
        )
        for one, often in looks.items()
    ]
    take(run, *looked, *(posts(p, times(DAY / n, START, end, random)) for p, n in writes.items()))
    known = {pair: Pair(*pair, looks[pair[0]], writes[pair[1]]) for pair in pairs}
    live = {
        known[one, name.split(SEP)[1]]
        for one in looks
        for name in run.entries("consumers", one, prefix("push"))
    }
    network = FollowNetwork(tuple(known.values()))
    assert network.cost(live) <= 1.1 * network.cost(network.cheapest())


FANS = {f"f{number:03d}": 50.0 + 5 * number for number in range(100)}
"""A hundred consumers that look fifty to five hundred times a day."""


def flash() -> tuple[FeedRun, int]:
    """A producer that posts once an hour to followers that are all on push."""
    run = FeedRun(PAIRS)
    end = START + 2 * DAY
    looked = [views(one, times(DAY / 4, START, end), count=n / 4) for one, n in FANS.items()]
    take(run, follows(FANS, "p"))
    take(run, *looked, posts("p", times(HOUR, START, end)), size=500)
    assert pushed(run, FANS) == set(FANS)
    flips(run)
    return run, end


def test_a_flash_moves_pairs_to_pull_and_back_once() -> None:
    """A post a second: within ten posts the followers that do not look so often are on pull, all
    within a minute, each told once; while it lasts, with a lull, nothing changes; after it, with
    the first of the usual posts, all are back on push, each told once."""
    run, now = flash()
    slow = [one for one, often in FANS.items() if often <= 250]
    take(run, posts("p", times(SECOND, now, now + 11 * SECOND)), size=1)
    assert not pushed(run, slow)
    take(run, posts("p", times(SECOND, now + 11 * SECOND, now + 60 * SECOND)), size=1)
    assert not pushed(run, FANS)
    told = flips(run)
    assert told == Counter({((one, "p"), "pull"): 1 for one in FANS})
    for _ in range(3):
        now += 2 * MINUTE
        take(run, posts("p", times(SECOND, now, now + 30 * SECOND)), size=10)
    assert not flips(run)
    now += HOUR
    take(run, posts("p", [now]))
    assert pushed(run, FANS) == set(FANS)
    take(run, posts("p", times(HOUR, now, now + 5 * HOUR)), size=1)
    assert flips(run) == Counter({((one, "p"), "push"): 1 for one in FANS})


def test_after_a_flash_silence_brings_pairs_back() -> None:
    """A producer that has a flash and then no post at all: its pairs are back on push once others'
    records show that the time has passed, each told once."""
    run, now = flash()
    take(run, posts("p", times(SECOND, now, now + 60 * SECOND)), size=10)
    assert not pushed(run, FANS)
    take(run, posts("other", times(MINUTE, now + MINUTE, now + HOUR)), size=5)
    assert pushed(run, FANS) == set(FANS)
    told = Counter({((one, "p"), side): 1 for one in FANS for side in ("pull", "push")})
    assert flips(run) == told


@pytest.mark.parametrize("options", [ms.feeds.Feeds(), CONSUMERS])
def test_who_looks_no_more_is_pushed_to_no_more(options: ms.feeds.Feeds) -> None:
    """A consumer that stops looking is on pull within a month of posts, without a record that
    says so; when it looks again it is back on push in two days; each once."""
    run = FeedRun(options)
    take(run, follows(["x"], "p"))
    told = {"flow": 4 / 86_400}
    now = START + 7 * DAY
    looking = views("x", times(DAY / 12, START, now), **told)
    take(run, looking, posts("p", times(DAY / 4, START, now)))
    assert pushed(run, ["x"]) == {"x"}
    flips(run)
    take(run, posts("p", times(DAY / 4, now, now + 30 * DAY)))
    assert pushed(run, ["x"]) == set()
    now += 30 * DAY
    looking = views("x", times(DAY / 12, now, now + 2 * DAY), **told)
    take(run, looking, posts("p", times(DAY / 4, now, now + 2 * DAY)))
    assert pushed(run, ["x"]) == {"x"}
    assert flips(run) == {(("x", "p"), "pull"): 1, (("x", "p"), "push"): 1}


def test_for_a_whole_consumer_a_look_costs_as_many_pulls_as_producers() -> None:
    """Ten producers with a post a day each: four looks a day are forty pulls, which cost more than
    ten pushes, so all is on push; one look a fortnight is cheaper, and all is on pull."""
    run = FeedRun(CONSUMERS)
    names = [f"p{number}" for number in range(10)]
    end = START + 60 * DAY
    take(run, *(follows(["often", "seldom"], one) for one in names))
    looks = [
        views("often", times(DAY / 4, START, end), flow=10 / 86_400),
        views("seldom", times(14 * DAY, START, end), flow=10 / 86_400),
    ]
    take(run, *looks, *(posts(one, times(DAY, START + n, end)) for n, one in enumerate(names)))
    assert len(run.entries("consumers", "often", prefix("push"))) == 10
    assert len(run.entries("consumers", "seldom", prefix("pull"))) == 10


def test_a_wholesale_consumer_has_all_on_push() -> None:
    """A view that says `wholesale` turns all pairs of its consumer to push, however rarely it
    looks; one that does not say it any more turns them back."""
    for options in (ms.feeds.Feeds(), CONSUMERS):
        run = FeedRun(options)
        take(run, follows(["x", "y"], "p"), follows(["x"], "q"))
        busy = [posts(one, times(MINUTE, START, START + HOUR)) for one in "pq"]
        looks = [views(one, [START + HOUR], flow=1.0) for one in "xy"]
        take(run, *busy, *looks)
        assert pushed(run, "xy") == set()
        take(run, views("x", [START + 2 * HOUR], flow=1.0, wholesale=True))
        assert set(run.entries("consumers", "x", prefix("push"))) == {"push\x1fp", "push\x1fq"}
        assert pushed(run, "y") == set()
        take(run, views("x", [START + 3 * HOUR], flow=1.0))
        assert pushed(run, "x") == set()


def test_a_lower_ratio_pushes_more() -> None:
    """The ratio that comes with posts is the threshold: lowering it moves pairs to push in the
    order of their consumers' rates, raising it moves them back."""
    run = FeedRun(PAIRS)
    looks = {f"c{n}": 4.0 * 2.0**n for n in range(8)}
    take(run, follows(looks, "p"))
    looking = [
        views(one, times(DAY / 4, START, START + 5 * DAY), count=n / 4) for one, n in looks.items()
    ]
    take(run, *looking, posts("p", times(HOUR, START, START + 4 * DAY)))
    now, sizes = START + 4 * DAY, []
    for ratio in (16.0, 4.0, 1.0, 0.25, 1 / 64, 1.0, 16.0):
        now += HOUR
        take(run, ({**post, "ratio": ratio} for post in posts("p", [now])))
        on_push = pushed(run, looks)
        assert on_push == set(sorted(looks)[8 - len(on_push) :])
        sizes.append(len(on_push))
    assert sizes[:5] == sorted(sizes[:5])
    assert sizes[0] == sizes[6] < sizes[1] < sizes[2] == sizes[5] < sizes[3] < sizes[4] == 8
