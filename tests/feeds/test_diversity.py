"""Per-producer coherency: what brute force says, in pages that keep k,t-diversity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise, product
from typing import Any

from feeds.feed_runs import FeedRun, Record, Shown, brute_force, shown
from feeds.feed_strategies import HOUR, OPTIONS, PRODUCERS, records
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.feeds.names import Position
from millstream.feeds.reads.cursor import Key
from millstream.feeds.reads.diversity import DiversePage, DiverseQuery
from millstream.feeds.reads.pending_records import Pending
from millstream.feeds.reads.query import FeedQuery
from millstream.feeds.reads.tables import Rows, Tables
from millstream.messages.feeds import Item

START = 1_700_000_000_000_000


def order_of(feed: Sequence[Shown], k: int, fresh_from: int) -> list[Shown]:
    """All posts that may be shown, in the order in which pages take them."""
    ranks: Counter[str] = Counter()
    leads, others = [], []
    for post in feed:
        ranks[post[1]] += 1
        if ranks[post[1]] == 1 and post[0] >= fresh_from:
            leads.append(post)
        elif ranks[post[1]] <= k:
            others.append(post)
    return leads + others


def pages_of(query: FeedQuery, limit: int, **asked: Any) -> Iterator[tuple[DiversePage, int]]:
    """All pages from the first on, each by a query of its own as a server would, and its time."""
    as_of, before = None, None
    while True:
        diverse = DiverseQuery(query, as_of=as_of, **asked)
        page = diverse.older(before, limit)
        yield page, diverse.as_of
        if not page.more:
            return
        as_of, before = diverse.as_of, page.last


def check(query: FeedQuery, expected: list[Shown], limit: int, **asked: Any) -> None:
    """Pages forward are what brute force says, pages back are the same, and diversity holds."""
    as_of = expected[0][0] if expected else 0
    order = order_of(expected, asked["k"], asked["now"] - asked["t"])
    chunks = [order[at : at + limit] for at in range(0, len(order), limit)] or [[]]
    pages = list(pages_of(query, limit, **asked))
    assert [shown(page.items) for page, _ in pages] == [
        sorted(chunk, key=lambda post: post[:3], reverse=True) for chunk in chunks
    ]
    assert {of for _, of in pages} == {as_of}
    for page, _ in pages:
        check_diversity(expected, page.items, **asked)
    whole, before = DiverseQuery(query, **asked), None
    for page, _ in pages:  # all from one query are the same
        assert whole.older(before, limit) == page
        before = page.last
    back, than = list[DiversePage](), pages[-1][0].first
    while than is not None:
        page = DiverseQuery(query, as_of=as_of, **asked).newer(than, limit)
        assert page.more == (len(back) + 2 < len(pages))
        back += [page] if page.items else []
        than = page.first
    assert [one.items for one in back[::-1]] == [page.items for page, _ in pages[:-1]]


def check_diversity(
    feed: list[Shown], page: list[Item], *, k: int, t: int, now: int, **_: Any
) -> None:
    """k,t-diversity and the properties of feeds, word for word as in Feeding Frenzy, 2.2."""
    count = Counter(item.producer for item in page)
    for producer in {post[1] for post in feed}:
        candidates = [post for post in feed if post[1] == producer and post[0] >= now - t]
        if candidates and count[producer] == 0:
            assert all(number <= k for number in count.values())
    positions = [item.position for item in page]
    assert positions == sorted(set(positions), reverse=True)
    for producer in count:
        mine = [post[:3] for post in feed if post[1] == producer]
        places = [mine.index(one) for one in positions if one[1] == producer]
        assert all(after == before + 1 for before, after in pairwise(places))


@settings(max_examples=examples(70), deadline=None)
@given(data=st.data(), options=OPTIONS, given=records())
def test_what_brute_force_says(
    data: st.DataObject, options: ms.feeds.Feeds, given: list[Record]
) -> None:
    """As of any batch, with pending records, for any k, t and size of a page, however much of the
    consumer's items is read at a time and at most."""
    run = FeedRun(options)
    run.batch([*follows(*PRODUCERS), {"kind": "view", "at": START, "consumer": "x", "count": 9}])
    run.settle()
    left = [one | {"consumer": "x"} if "consumer" in one else one for one in given]
    while left:
        size = data.draw(st.integers(min(8, len(left)), len(left)))
        run.batch(left[:size])
        left = left[size:]
        pending = left[: data.draw(st.integers(0, len(left)))]
        now = data.draw(st.sampled_from([START, given[-1]["at"], given[-1]["at"] + HOUR]))
        chunk, most = data.draw(st.sampled_from([(1, 1), (1, 3), (2, 4), (100, 2_000)]))
        query = run.query("x", pending)
        expected = brute_force(run.taken + pending, "x")
        assert shown(query.older(None, 100).items) == expected  # else it is not diversity
        for k, t, limit in product((1, 2, 5), (1, HOUR, 50 * HOUR), (1, 3, 100)):
            check(query, expected, limit, now=now, k=k, t=t, chunk=chunk, most_items=most)


def posts(*given: tuple[str, str]) -> list[Record]:
    """Posts of producers, one a second."""
    return [
        {"kind": "post", "at": START + n * 1_000_000, "producer": who, "id": post, "value": post}
        for n, (who, post) in enumerate(given, 1)
    ]


def follows(*producers: str) -> list[Record]:
    return [
        {"kind": "follow", "at": START + n, "consumer": "x", "producer": one}
        for n, one in enumerate(producers)
    ]


def ids(page: DiversePage) -> list[str]:
    return [item.id for item in page.items]


def test_the_example_of_the_paper() -> None:
    """Feeding Frenzy, 2.2: Alice's new events do not make Bob's disappear, and Chad's stay."""
    run = FeedRun()
    run.batch(follows("alice", "bob", "chad"))
    alice, bob, chad = "alice", "bob", "chad"
    run.batch(posts((alice, "e0"), (bob, "e1"), (alice, "e2"), (chad, "e3"), (alice, "e4")))
    later = posts(*[("", "")] * 5, (alice, "e5"), (alice, "e6"))[5:]
    run.batch(later)
    query = run.query("x")
    page = DiverseQuery(query, k=5, t=600_000_000, now=START + 8_000_000).older(None, 5)
    assert ids(page) == ["e6", "e5", "e4", "e3", "e1"]
    assert [item.id for item in query.older(None, 5).items] == ["e6", "e5", "e4", "e3", "e2"]


def test_what_is_posted_later_is_no_part_of_these_pages() -> None:
    """A second page is as of the time of the first: nothing is shifted, repeated or missed."""
    run = FeedRun()
    run.batch(follows("ann", "bob"))
    run.batch(posts(("ann", "a1"), ("bob", "b1"), ("ann", "a2"), ("ann", "a3"), ("bob", "b2")))
    asked: dict[str, Any] = {"k": 3, "t": HOUR, "now": START + 6_000_000}
    first = DiverseQuery(run.query("x"), **asked)
    page = first.older(None, 2)
    assert ids(page) == ["b2", "a3"]
    run.batch(posts(*[("", "")] * 7, ("ann", "a4"), ("bob", "b3"))[7:])
    second = DiverseQuery(run.query("x"), as_of=first.as_of, **asked)
    assert ids(second.older(page.last, 2)) == ["a2", "b1"]


def test_a_post_that_is_ahead_of_the_clock_is_shown() -> None:
    """An acknowledged post is on the first page, and the further pages know of it."""
    run = FeedRun()
    run.batch(follows("ann"))
    run.batch(posts(("ann", "a1"), ("ann", "a2")))
    first = DiverseQuery(run.query("x"), k=2, t=HOUR, now=START)
    page = first.older(None, 1)
    assert ids(page) == ["a2"]
    again = DiverseQuery(run.query("x"), k=2, t=HOUR, now=START, as_of=first.as_of)
    assert ids(again.older(page.last, 1)) == ["a1"]


def with_part_of_cid() -> FeedRun:
    """All on push; of cid's four posts only the newest is an item, and all of bob's one."""
    run = FeedRun(ms.feeds.Feeds(policy="push", backfill=1))
    run.batch(posts(("bob", "b1"), *(("cid", f"c{n}") for n in range(1, 5))))
    run.batch(follows("cid", "bob"))
    run.settle()
    assert run.query("x").pushed() == {"cid": START + 4_000_001, "bob": 0}
    return run


def test_a_producer_is_pulled_from_where_its_items_end() -> None:
    """Although older items of others were read before: their order is that of all posts."""
    run = with_part_of_cid()
    for chunk, limit in product((1, 2, 100), (1, 2, 3, 4)):
        query = DiverseQuery(run.query("x"), k=3, t=1, now=START + HOUR, chunk=chunk)
        assert ids(query.older(None, limit)) == ["c4", "c3", "c2", "b1"][:limit]


def test_pages_end_at_their_time_although_items_begin_later() -> None:
    """A pair that turned to push between two pages shows nothing that is newer than the first."""
    run = with_part_of_cid()
    query = DiverseQuery(run.query("x"), k=3, t=1, now=START + HOUR, as_of=START + 3_000_000)
    assert ids(query.older(None, 9)) == ["c2", "c1", "b1"]


def test_a_lead_may_be_as_old_as_t() -> None:
    """No older than t is a lead, older is not: a page of two has ann's post or bob's second."""
    run = FeedRun()
    run.batch(follows("ann", "bob"))
    run.batch(posts(("ann", "a1"), ("bob", "b1"), ("bob", "b2")))
    for age, expected in ((0, ["b2", "a1"]), (1, ["b2", "b1"])):
        now = START + 1_000_000 + HOUR + age
        assert ids(DiverseQuery(run.query("x"), k=2, t=HOUR, now=now).older(None, 2)) == expected


def test_an_aggregated_producer_is_one_producer() -> None:
    """Its k newest posts are of all of its sources together, on either side; a source that is
    followed as well has its own, and no post comes twice."""
    for policy in ("push", "pull"):
        run = FeedRun(ms.feeds.Feeds(policy=policy))  # type: ignore[arg-type]
        sources = ["ann", "bob", "cid"]
        run.batch([{"kind": "aggregate", "at": START, "producer": "news", "sources": sources}])
        run.batch(follows("news", "ann"))
        run.settle()
        run.batch(posts(("bob", "b1"), ("ann", "a1"), ("cid", "c1"), ("ann", "a2"), ("bob", "b2")))
        run.settle()
        page = DiverseQuery(run.query("x"), k=2, t=HOUR, now=START + HOUR).older(None, 9)
        found = [(item.id, item.via) for item in page.items]
        assert found == [("b2", "news"), ("a2", None), ("c1", "news"), ("a1", None)]


class CountedTables:
    """Tables that count the scans of producers' posts."""

    def __init__(self, tables: Tables) -> None:
        self._tables, self.pulls = tables, 0

    def get(self, update: str, key: str, entry: str) -> Any:
        return self._tables.get(update, key, entry)

    def scan(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False
    ) -> Iterator[tuple[str, Any]]:
        self.pulls += update.endswith(".producers")
        return self._tables.scan(update, key, start, stop, reverse=reverse)

    def rows(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False, cut: int = 0
    ) -> Rows:
        self.pulls += update.endswith(".producers")
        return self._tables.rows(update, key, start, stop, reverse=reverse, cut=cut)

    def once(self, what: str, make: Callable[[], Any]) -> Any:
        return self._tables.once(what, make)


def test_a_page_that_the_items_have_pulls_from_nobody() -> None:
    """With all on push, pulling begins only where the materialised feed ends."""
    run = FeedRun(ms.feeds.Feeds(policy="push", keep=8, backfill=1))
    names = [f"p{n:02d}" for n in range(20)]
    run.batch(follows(*names))
    run.settle()
    run.batch(posts(*((one, f"{one}-{n}") for n in range(3) for one in names)))
    run.settle()
    tables = CountedTables(run.tables())
    query = FeedQuery(run.placed, tables, "x", Pending())
    assert set(query.follows().values()) == {"push"}

    def first(limit: int) -> tuple[list[Position], Key | None, int]:
        before = tables.pulls
        page = DiverseQuery(query, k=3, t=HOUR, now=START).older(None, limit)
        return [item.position for item in page.items], page.last, tables.pulls - before

    newest = [post[:3] for post in brute_force(run.taken, "x")]
    assert first(5) == (newest[:5], (True, newest[4]), 0)
    positions, _, pulls = first(20)
    assert positions == newest[:20]
    assert pulls == 20
