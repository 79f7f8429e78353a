"""Unread items: those after the last post that the consumer said it has read."""

from __future__ import annotations

from typing import Any

from feeds.feed_runs import FeedRun, Record, brute_force
from feeds.feed_strategies import OPTIONS, PRODUCERS, records
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.feeds.reads.answers import is_unread, unread
from millstream.messages.feeds import Unread

START = 1_700_000_000_000_000


def seen(at: int, *upto: Any) -> Record:
    return {"kind": "seen", "at": at, "consumer": "x", "upto": list(upto)}


def follow(producer: str) -> Record:
    return {"kind": "follow", "at": START, "consumer": "x", "producer": producer}


def post(at: int, producer: str = "ann") -> Record:
    return {"kind": "post", "at": at, "producer": producer, "id": f"i{at}", "value": at}


@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), options=OPTIONS, given=records(most=40))
def test_what_brute_force_counts(
    data: st.DataObject, options: ms.feeds.Feeds, given: list[Record]
) -> None:
    """The items after the greatest marker, stored or pending, are counted once each, up to a
    maximum. Each item has the same mark."""
    run = FeedRun(options)
    run.batch([follow(one) for one in PRODUCERS])
    run.settle()
    told = list[Record]()
    for record in given:
        told.append(record | {"consumer": "x"} if "consumer" in record else record)
        if record["kind"] == "post" and data.draw(st.booleans()):
            told.append(seen(record["at"], record["at"], record["producer"], record["id"]))
    taken = data.draw(st.integers(0, len(told)))
    run.batch(told[:taken])
    query = run.query("x", told[taken:])
    marks = [tuple(one["upto"]) for one in told if one["kind"] == "seen"]
    feed = brute_force([*run.taken, *told[taken:]], "x")
    after = [one for one in feed if not marks or one[:3] > max(marks)]
    for most in (1, 3, 1_000):
        assert unread(query, most) == Unread(min(most, len(after)), len(after) > most)
    flags = {one.position: is_unread(one, query.seen()) for one in query.older(None, 100).items}
    assert flags == {one[:3]: one in after if marks else None for one in feed}


def test_a_marker_never_goes_back() -> None:
    """Read items stay read, in whichever order two devices report."""
    run = FeedRun()
    run.batch([follow("ann"), *(post(START + n) for n in (1, 2, 3))])
    run.batch([seen(START + 9, START + 2, "ann", f"i{START + 2}")])
    early = seen(START + 10, START + 1, "ann", f"i{START + 1}")
    assert unread(run.query("x", [early])).count == 1
    run.batch([early])
    assert unread(run.query("x")).count == 1


def test_a_deleted_post_is_not_counted() -> None:
    """Nor is one of a producer who is followed no more, from the moment that was acknowledged."""
    run = FeedRun()
    run.batch([follow("ann"), follow("bob"), *(post(START + n) for n in (1, 2, 3))])
    run.batch([post(START + 4, "bob")])
    assert unread(run.query("x")).count == 4
    gone = {"kind": "delete", "at": START + 5, "producer": "ann", "id": f"i{START + 1}"}
    left = {"kind": "unfollow", "at": START + 6, "consumer": "x", "producer": "bob"}
    assert unread(run.query("x", [gone, left])).count == 2
