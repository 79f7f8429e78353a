"""Aggregated producers: their sources' posts, each once, and no trace of what is no more."""

from __future__ import annotations

from typing import Any

import pytest
from feeds.feed_runs import FeedRun, Record, brute_force, shown
from feeds.feed_strategies import CONSUMERS, OPTIONS, in_batches, records
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms

START = 1_700_000_000_000_000
PUSHED = ms.feeds.Feeds(policy="push")


class Told:
    """Records, each a second after the last."""

    def __init__(self) -> None:
        self._at = START

    def __call__(self, kind: str, **fields: Any) -> Record:
        self._at += 1_000_000
        return {"kind": kind, "at": self._at, **fields}

    def post(self, producer: str, post: str) -> Record:
        return self("post", producer=producer, id=post, value=f"{producer} {post}")

    def follow(self, producer: str) -> Record:
        return self("follow", consumer="x", producer=producer)

    def aggregate(self, producer: str, *sources: str) -> Record:
        return self("aggregate", producer=producer, sources=list(sources))


def seen(run: FeedRun, *pending: Record) -> list[tuple[str, str, str | None]]:
    """The feed of x: producers, ids and by way of whom."""
    items = run.query("x", pending).older(None, 1_000).items
    return [(one.producer, one.id, one.via) for one in items]


def begun(options: ms.feeds.Feeds, *records: Record) -> FeedRun:
    run = FeedRun(options)
    run.batch(records)
    run.settle()
    return run


@pytest.mark.parametrize("policy", ["push", "pull"])
def test_posts_of_sources_come_with_their_producer(policy: Any) -> None:
    """A follower of an aggregated producer sees its own posts and its sources', with the origin as
    their producer. This holds for earlier and later posts, pushed or pulled."""
    told = Told()
    run = begun(
        ms.feeds.Feeds(policy=policy),
        told.post("ann", "1"),
        told.post("bob", "1"),
        told.follow("news"),
        told.aggregate("news", "ann", "bob", "zoe"),
        told.post("news", "1"),
        told.post("zoe", "1"),
    )
    run.batch([told.post("ann", "2")])
    run.settle()
    assert seen(run) == [
        ("ann", "2", "news"),
        ("zoe", "1", "news"),
        ("news", "1", None),
        ("bob", "1", "news"),
        ("ann", "1", "news"),
    ]
    items = run.query("x").older(None, 10).items
    assert items[0].value == "ann 2"
    assert {one.how for one in items} == {policy}


def test_who_follows_both_sees_a_post_once() -> None:
    """A post of a producer that is followed itself is shown as such, whatever aggregates it."""
    told = Told()
    begin = [told.aggregate("news", "ann"), told.aggregate("all", "ann", "bob")]
    run = begun(PUSHED, *begin, *(told.follow(one) for one in ("news", "all", "ann")))
    run.batch([told.post("ann", "1"), told.post("bob", "1")])
    run.settle()
    assert seen(run) == [("bob", "1", "all"), ("ann", "1", None)]
    left = told("unfollow", consumer="x", producer="ann")
    assert [one[:2] for one in seen(run, left)] == [("bob", "1"), ("ann", "1")]
    run.batch([left])
    assert [one[:2] for one in seen(run)] == [("bob", "1"), ("ann", "1")]


@pytest.mark.parametrize("policy", ["push", "pull"])
def test_what_is_no_more_is_gone_at_once(policy: Any) -> None:
    """A delete, an edit, a block of the origin and the end of the aggregation show when they are
    pending, and in the batch that takes them in, though the aggregated producer learns later."""
    told = Told()
    posts = [told.post("ann", one) for one in "123"]
    begin = [told.aggregate("news", "ann", "bob"), told.follow("news"), told.post("bob", "1")]
    changes = [
        (told("delete", producer="ann", id="1"), {"ann 2", "ann 3", "bob 1"}),
        (told("edit", producer="ann", id="2", value="other"), {"other", "ann 3", "bob 1"}),
        (told("block", consumer="x", producer="bob"), {"other", "ann 3"}),
        (told.aggregate("news", "bob"), set()),
        (told("unblock", consumer="x", producer="bob"), {"bob 1"}),
        (told.aggregate("news"), set()),
    ]
    run = begun(ms.feeds.Feeds(policy=policy), *begin, *posts)
    for record, expected in changes:
        items = run.query("x", [record]).older(None, 10).items
        assert {one.value for one in items} == expected, record
        run.batch([record])
        items = run.query("x").older(None, 10).items
        assert {one.value for one in items} == expected, record
    run.settle()
    assert seen(run) == []


def test_who_joins_again_brings_its_newest_posts_only() -> None:
    """When a source joins again, its posts from before it left are hidden, except for the newest
    ones. All posts since it joined are shown."""
    told = Told()
    run = begun(
        ms.feeds.Feeds(policy="push", backfill=2),
        told.aggregate("news", "ann"),
        told.follow("news"),
        *(told.post("ann", str(one)) for one in range(5)),
    )
    assert [one[1] for one in seen(run)] == ["4", "3", "2", "1", "0"]
    run.batch([told.aggregate("news"), told.post("ann", "5")])
    assert seen(run) == []
    joined = [told.aggregate("news", "ann"), *(told.post("ann", str(one)) for one in (6, 7, 8))]
    run.batch(joined)
    run.settle()
    assert [one[1] for one in seen(run)] == ["8", "7", "6", "5", "4"]


def test_what_a_former_source_brought_is_swept_out() -> None:
    """The sweep runs in steps, also across restarts. Posts of current sources stay, and so do new
    posts."""
    told = Told()
    run = begun(
        ms.feeds.Feeds(policy="push", pushes=5),
        told.aggregate("news", "ann", "bob"),
        told.follow("news"),
        *(told.post(one, str(number)) for number in range(9) for one in ("ann", "bob", "news")),
    )
    assert len(run.entries("producers", "news", "post")) == 27
    run.batch([told.aggregate("news", "bob")])
    run.batch([told.post("bob", "9")])
    left = len(run.entries("producers", "news", "post"))
    assert 18 < left < 27
    run.batch([told.aggregate("news", "ann"), told.post("news", "9")])
    run.settle()
    kept = run.entries("producers", "news", "post")
    assert [one[:2] for one in seen(run)] == [one[1:3] for one in brute_force(run.taken, "x")]
    assert len(kept) == 10 + 9
    assert run.entries("producers", "news", "meta")["meta"]["counts"]["posts"] == len(kept)


def test_references_are_not_passed_on() -> None:
    """Aggregation is one level deep: an aggregated producer that is a source brings its own posts
    only. Two may have each other as sources."""
    told = Told()
    run = begun(
        PUSHED,
        told.aggregate("inner", "ann", "outer"),
        told.post("ann", "1"),
        told.post("inner", "1"),
        told.aggregate("outer", "inner"),
        told.follow("outer"),
        told.post("outer", "1"),
    )
    run.batch([told.post("ann", "2"), told.post("inner", "2")])
    run.settle()
    assert seen(run) == [("inner", "2", "outer"), ("outer", "1", None), ("inner", "1", "outer")]


def test_the_same_id_and_the_same_time_of_several_sources() -> None:
    """Ids are unique for each producer only, and so are times: positions keep them apart, in order,
    and pages in both directions have each once."""
    origins = ["ann", "ann b", "news", "zoe", "é", "一"]
    run = begun(
        PUSHED,
        {"kind": "aggregate", "at": START, "producer": "news", "sources": ["ann", *origins[3:]]},
        {"kind": "aggregate", "at": START, "producer": "all", "sources": ["ann b", "zoe"]},
        *({"kind": "follow", "at": START, "consumer": "x", "producer": p} for p in ("all", "news")),
    )
    posts = [
        {"kind": "post", "at": START + 5, "producer": origin, "id": post, "value": origin}
        for origin in origins
        for post in ("1", "1 a", "ü")
    ]
    run.batch(posts)
    run.settle()
    expected = brute_force(run.taken, "x")
    assert len(expected) == len(posts)
    for limit in (1, 4, 100):
        paged(run, "x", [], limit, expected)


def paged(
    run: FeedRun, consumer: str, pending: list[Record], limit: int, expected: list[Any]
) -> None:
    """The feed by pages from the newest and back from the oldest is as expected."""
    query = run.query(consumer, pending)
    page = query.older(None, limit)
    found = page.items
    while page.more:
        page = query.older(page.items[-1].position, limit)
        found = found + page.items
        assert len(found) <= len(expected)  # else pages may go on for ever
    assert shown(found) == expected
    page = query.newer((0, "", ""), limit)
    found = page.items
    while page.more:
        page = query.newer(page.items[0].position, limit)
        found = page.items + found
        assert len(found) <= len(expected)  # else pages may go on for ever
    assert shown(found) == expected


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data(), options=OPTIONS, given=records())
def test_posts_of_sources_are_there_at_once(
    lane: Any, data: st.DataObject, options: ms.feeds.Feeds, given: list[Record]
) -> None:
    """Once sources have joined, feeds with pending records equal the brute-force query at every
    batch: no post appears later than one that is after it."""
    run = FeedRun(options, lane)
    begin = [("news", "ann", "bob"), ("all", "ann", "cid", "news")]
    records: list[Record] = [
        {"kind": "aggregate", "at": number, "producer": one, "sources": sources}
        for number, (one, *sources) in enumerate(begin, 1)
    ]
    records += [
        {"kind": "follow", "at": number, "consumer": one, "producer": by}
        for number, (one, by) in enumerate([("x", "news"), ("y", "all"), ("z", "all")], 3)
    ]
    run.batch([*records, {"kind": "follow", "at": 6, "consumer": "y", "producer": "news"}])
    run.settle()
    for consumer, left in in_batches(run, data, given):
        pending = left[: data.draw(st.integers(0, len(left)))]
        limit = data.draw(st.integers(1, 4))
        paged(run, consumer, pending, limit, brute_force(run.taken + pending, consumer))
    run.settle()
    assert not run.entries("fanouts", "on the way")


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
@settings(max_examples=examples(40), deadline=None)
@given(data=st.data(), options=OPTIONS, given=records(aggregates=True))
def test_every_read_of_aggregated_producers(
    lane: Any, data: st.DataObject, options: ms.feeds.Feeds, given: list[Record]
) -> None:
    """At every batch a feed has all posts of whom is followed directly, and by way of others only
    what brute force has too; when nothing is under way, exactly that."""
    run = FeedRun(options, lane)
    for consumer, left in in_batches(run, data, given):
        pending = left[: data.draw(st.integers(0, len(left)))]
        allowed = brute_force(run.taken + pending, consumer)
        needed = brute_force(run.taken + pending, consumer, aggregated=False)
        found = shown(run.query(consumer, pending).older(None, 1_000).items)
        assert [one for one in allowed if one in found] == found
        assert [one for one in found if one in needed] == needed
        paged(run, consumer, pending, data.draw(st.integers(1, 4)), found)
    run.settle()
    if options.backfill == 50:
        for consumer in CONSUMERS:
            paged(run, consumer, [], 3, brute_force(run.taken, consumer))
