"""Verifying finds nothing in feeds that are right, and every kind of damage in others."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from feeds.feed_runs import NAME, FeedRun, KeptTables, Record
from feeds.feed_strategies import CONSUMERS, OPTIONS, PRODUCERS, in_batches, records
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.feeds.checks.differences import Difference
from millstream.feeds.checks.feed_check import compared, verify_feed
from millstream.feeds.names import (
    META,
    class_text,
    entry,
    item_entry,
    post_entry,
    reference,
    time_text,
)
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.stored_rows import PostRow
from millstream.messages.feeds import Item

START = 1_700_000_000_000_000
LAST = "\U0010ffff"
Entries = dict[str, Any]


@settings(max_examples=examples(40), deadline=None)
@given(data=st.data(), options=OPTIONS, given=records())
def test_feeds_that_are_right(
    data: st.DataObject, options: ms.feeds.Feeds, given: list[Record]
) -> None:
    """As of any batch, whatever is on its way, and when all has settled: nothing differs, with
    aggregated producers too."""
    run = FeedRun(options)
    left = list(given)
    for at in data.draw(st.sets(st.integers(0, len(left) - 1), max_size=4)):
        producer = data.draw(st.sampled_from(PRODUCERS))
        others = sorted({*PRODUCERS} - {producer})
        sources = data.draw(st.lists(st.sampled_from(others), unique=True))
        told = {"kind": "aggregate", "producer": producer, "sources": sources}
        left[at] = told | {"at": left[at]["at"]}
    for consumer, _ in in_batches(run, data, left):
        assert found(run, consumer) == ()
    run.settle()
    assert run.engine.progress.pending.feedback == 0
    for consumer in CONSUMERS:
        assert found(run, consumer) == ()


def found(run: FeedRun, consumer: str) -> tuple[Difference, ...]:
    settled = run.engine.progress.pending.feedback == 0
    return verify_feed(run.placed, run.tables(), consumer, settled=settled).differences


@dataclass
class Kept:
    """The tables of a run, to be damaged."""

    placed: PlacedFeeds
    producers: dict[str, Entries]
    consumers: dict[str, Entries]
    fanouts: dict[str, Entries]

    def differences(self, consumer: str = "x", *, settled: bool = True) -> list[Difference]:
        tables = {
            self.placed.producers: self.producers,
            self.placed.consumers: self.consumers,
            self.placed.fanouts: self.fanouts,
        }
        return [
            *verify_feed(self.placed, KeptTables(tables), consumer, settled=settled).differences
        ]


@pytest.fixture
def kept() -> Kept:
    """x has 60 posts of ann on push, backfilled from the 11th on; y follows bob."""
    options = ms.feeds.Feeds(ratio=0.001)
    run = FeedRun(options)
    posts = [a_post(n, "ann") for n in range(60)] + [a_post(60 + n, "bob") for n in range(3)]
    run.batch(posts)
    at = START + 10**9
    run.batch([{"kind": "view", "consumer": "x", "count": 1_000, "at": at}])
    run.batch([{"kind": "follow", "consumer": "x", "producer": "ann", "at": at + 1}])
    run.settle()
    run.batch([{"kind": "view", "consumer": "y", "at": at + 2}])
    run.batch([{"kind": "follow", "consumer": "y", "producer": "bob", "at": at + 3}])
    run.settle()
    assert entry("push", "ann") in run.entries("consumers", "x")
    tables = {
        update: {key: run.entries(update, key) for key in keys}
        for update, keys in (("producers", ["ann", "bob"]), ("consumers", ["x", "y"]))
    }
    made = Kept(PlacedFeeds(options, NAME), tables["producers"], tables["consumers"], {"": {}})
    assert made.differences("x") == made.differences("y") == []
    return made


def a_post(number: int, producer: str) -> Record:
    at = START + number * 1_000_000
    return {"kind": "post", "producer": producer, "id": f"p{number}", "value": number, "at": at}


def since(kept: Kept) -> int:
    number: int = kept.consumers["x"][entry("push", "ann")][0]
    return number


AN_ITEM = item_entry(START + 40_000_000, "ann", "p40")


def drop_an_item(kept: Kept) -> None:
    del kept.consumers["x"][AN_ITEM]


def a_foreign_item(kept: Kept) -> None:
    kept.consumers["x"][item_entry(START + 61_000_000, "bob", "p61")] = {"v": 61}


def an_item_of_no_post(kept: Kept) -> None:
    kept.consumers["x"][item_entry(START, "ann", "p99")] = {"v": 99}
    kept.consumers["x"][item_entry(START + 41_000_001, "ann", "p99")] = {"v": 99}


def an_item_that_is_old(kept: Kept) -> None:
    kept.consumers["x"][AN_ITEM] = {"v": "before the edit"}


def another_since(kept: Kept) -> None:
    begin = kept.consumers["x"][entry("push", "ann")][1]
    kept.consumers["x"][entry("push", "ann")] = [since(kept) - 1, begin]


def both_sides(kept: Kept) -> None:
    kept.consumers["x"][entry("pull", "ann")] = since(kept)


def a_block(kept: Kept) -> None:
    kept.consumers["x"][entry("block", "ann")] = since(kept)


def no_beginning(kept: Kept) -> None:
    begin = kept.consumers["x"][entry("push", "ann")][1]
    assert begin, "the pair must have been backfilled in part"
    del kept.consumers["x"][entry("from", time_text(begin), "ann")]


def a_beginning_too_many(kept: Kept) -> None:
    kept.consumers["x"][entry("from", time_text(5), "bob")] = 0


def an_early_beginning(kept: Kept) -> None:
    kept.consumers["x"][META]["from"] = 5


def wrong_items(kept: Kept) -> None:
    kept.consumers["x"][META]["items"] += 1


def wrong_follows(kept: Kept) -> None:
    kept.consumers["x"][META]["follows"] = 7


def not_a_follower(kept: Kept) -> None:
    del kept.producers["ann"][entry("of", "x")]


def not_in_its_class(kept: Kept) -> None:
    number = kept.producers["ann"][entry("of", "x")][0]
    del kept.producers["ann"][entry("by", class_text(number), "x")]


def never_pushed_to(kept: Kept) -> None:
    kept.producers["ann"][META]["need"] = 900


def an_unknown_floor(kept: Kept) -> None:
    kept.consumers["x"][META]["floor"] = START + 50_000_000


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (drop_an_item, r"'ann', post 'p40': the feed, from the newest: must be 40, .* got nothing"),
        (drop_an_item, r"'p40': the feed, from the oldest"),
        (drop_an_item, r"'p40': the consumer's table: must be the item .*; got no item"),
        (drop_an_item, r"meta must say that items are 49; got 50"),
        (
            a_foreign_item,
            r"'bob', post 'p61': the feed, from the newest: must not be there; got 61",
        ),
        (
            a_foreign_item,
            r"'bob', post 'p61': the consumer's table: must have no items: not on push",
        ),
        (an_item_of_no_post, r"'p99': the consumer's table: must have no items before"),
        (an_item_of_no_post, r"'p99': the consumer's table: must not be there: there is no such"),
        (an_item_that_is_old, r"'p40': the feed, .*: must be 40; got 'before the edit'"),
        (an_item_that_is_old, r"'p40': the consumer's table: must be the item {'v': 40}"),
        (another_since, r"the producer's table: must have the follower, since \d+; got one since"),
        (both_sides, r"producer 'ann': the consumer's table: must be on push or on pull; got both"),
        (a_block, r"'ann': the consumer's table: must not be followed, as it is blocked"),
        (no_beginning, r"the feed, from the newest: must be 9, of \d+; got nothing"),
        (no_beginning, r"must have the entry from \d{17}; got none"),
        (a_beginning_too_many, r"producer 'bob': the consumer's table: must have no beginning"),
        (an_early_beginning, r"meta must say that items begin by \d{16}; got 5"),
        (wrong_items, r"meta must say that items are 50; got 51"),
        (wrong_follows, r"meta must say that follows are 1; got 7"),
        (not_a_follower, r"the producer's table: must have the follower, since \d+; got none"),
        (not_in_its_class, r"the producer's table: must have the follower in class \d+"),
        (never_pushed_to, r"must be pushed to, from class 900 up, as the pair is on push"),
        (an_unknown_floor, r"must have no items before \d+; got one of"),
    ],
    ids=lambda one: getattr(one, "__name__", None),
)
def test_every_damage_is_found(kept: Kept, damage: Callable[[Kept], None], words: str) -> None:
    """Each difference names the consumer, the producer, the post, the expected and the actual
    value."""
    damage(kept)
    said = [*map(str, kept.differences())]
    assert matching(said, words), "\n".join(said)
    assert all(one.startswith("consumer 'x'") for one in said)
    assert kept.differences("y") == []


def matching(said: list[str], words: str) -> list[str]:
    return [one for one in said if re.search(words, one)]


def test_what_is_on_its_way_is_not_judged(kept: Kept) -> None:
    """A producer's followers are only compared if no message is pending. Items of a producer with
    an unfinished pass, which readers pull, may be incomplete."""
    not_a_follower(kept)
    assert kept.differences(settled=False) == []
    assert len(kept.differences(settled=True)) == 1
    kept.producers["ann"][entry("of", "x")] = [1, since(kept)]
    kept.producers["ann"][entry("by", class_text(1), "x")] = since(kept)
    kept.producers["ann"][META]["need"] = 0
    assert kept.differences() == []
    drop_an_item(kept)
    kept.consumers["x"][META]["items"] -= 1
    assert len(kept.differences()) == 3
    kept.fanouts[""]["ann"] = 1
    assert kept.differences() == []


def test_a_post_that_was_deleted(kept: Kept) -> None:
    """An item whose post is gone is reported as a surplus."""
    del kept.producers["ann"][post_entry(START + 40_000_000, "p40")]
    said = [*map(str, kept.differences())]
    assert len(matching(said, "'p40': the feed, from the (newest|oldest): must not be there")) == 2


def test_a_reference_that_is_missing() -> None:
    """An aggregated producer must refer to each post of its sources; whoever follows it and is on
    push must have all of them as items."""
    run = FeedRun(ms.feeds.Feeds(policy="push"))
    run.batch([{"kind": "aggregate", "producer": "news", "sources": ["ann"], "at": START - 2}])
    run.batch([{"kind": "follow", "consumer": "x", "producer": "news", "at": START - 1}])
    run.settle()
    run.batch(a_post(n, "ann") for n in range(3))
    run.settle()
    tables = {
        "producers": {one: run.entries("producers", one) for one in ("ann", "news")},
        "consumers": {"x": run.entries("consumers", "x")},
    }
    kept = Kept(run.placed, tables["producers"], tables["consumers"], {"": {}})
    assert kept.differences() == []
    of = reference("news", "ann", "p1")
    del kept.consumers["x"][item_entry(START + 1_000_000, "news", of)]
    kept.consumers["x"][META]["items"] -= 1
    said = [*map(str, kept.differences())]
    assert matching(said, "'ann', post 'p1': the feed, from the newest: must be 1, .* got nothing")
    assert matching(said, "'news', post 'p1': the consumer's table: of its source 'ann': must be")
    del kept.producers["news"][post_entry(START + 1_000_000, of)]
    (said_of,) = map(str, kept.differences())
    assert "'news', post 'p1': the producer's table: must refer to that of its source" in said_of
    assert kept.differences(settled=False) == []


def test_order_and_repetition() -> None:
    """A feed must be newest first, with each post once, whatever its items are."""
    posts: dict[Any, Any] = {(n, "ann", f"p{n}"): PostRow(n) for n in (1, 2, 3)}
    items = [Item(f"p{n}", "ann", n, n, None, None, "push", None) for n in (3, 1, 2, 2)]
    first, second = (str(one) for one in compared("x", "from the newest", posts, items))
    assert "'p2': the feed, from the newest: must come before (1, ann, p1); got after it" in first
    assert "must be there once; got again, at (2, ann, p2)" in second


def test_a_difference_as_a_record(kept: Kept) -> None:
    """The JSON that the command writes."""
    wrong_items(kept)
    assert [one.record() for one in kept.differences()] == [
        {
            "consumer": "x",
            "where": "the consumer's table",
            "must": "meta must say that items are 50",
            "got": "51",
            "producer": None,
            "post": None,
        }
    ]
