"""Reads with records that are pending: each case a combination that random ones seldom have."""

from __future__ import annotations

from typing import Any

import pytest
from feeds.feed_runs import FeedRun, Record, brute_force, shown

import millstream as ms

START = 1_700_000_000_000_000


def made(*kinds: str) -> list[Record]:
    """Records `KIND` of x and ann, or `KIND ID` of ann, each a second after the last."""
    found: list[Record] = []
    for number, said in enumerate(kinds):
        kind, _, post = said.partition(" ")
        record: Record = {"kind": kind, "at": START + number * 1_000_000, "producer": "ann"}
        record |= {"id": post, "value": f"{kind} {number}"} if post else {"consumer": "x"}
        found.append(record)
    return found


@pytest.mark.parametrize("policy", ["push", "pull"])
@pytest.mark.parametrize(
    "kinds",
    [
        ["follow", "delete 1", "post 1"],
        ["follow", "edit 1", "post 1"],
        ["follow", "post 1", "delete 1", "post 1"],
        ["follow", "post 1", "delete 1", "edit 1"],
        ["follow", "post 1", "edit 1", "post 1"],
        ["post 1", "follow", "block", "follow"],
        ["post 1", "follow", "block", "follow", "unblock"],
        ["post 1", "block", "follow", "unblock"],
        ["post 1", "block", "unblock", "follow"],
        ["post 1", "block", "follow", "unblock", "follow"],
        ["post 1", "block", "follow", "unfollow", "unblock", "follow"],
        ["post 1", "follow", "unfollow", "post 2", "follow", "post 3"],
        ["post 1", "follow", "unblock", "unfollow", "block", "unblock"],
        ["post 1", "follow", "block", "unblock", "post 2", "follow", "delete 1"],
    ],
)
def test_every_way_to_cut_records_into_taken_and_pending(kinds: list[str], policy: Any) -> None:
    """However many of the records were taken in, and had settled or not, the feed is the same."""
    records = made(*kinds)
    expected = brute_force(records, "x")
    for cut in range(len(records) + 1):
        for is_settled in (False, True):
            run = FeedRun(ms.feeds.Feeds(policy=policy))
            run.batch(records[:cut])
            if is_settled:
                run.settle()
            found = shown(run.query("x", records[cut:]).older(None, 10).items)
            assert found == expected, (cut, is_settled)


@pytest.mark.parametrize("policy", ["push", "pull"])
def test_names_of_unusual_characters(policy: Any) -> None:
    """Names may be of any characters that can be printed, of any length that is allowed; feeds are
    in the order of their positions by code points, and pages have each post once."""
    names = ["a", "a b", "a  b", "a|b", "é", "e\u0301", "一", "😀", "~", "Z" * 200]
    names += ["😀" * 200, "😀" * 199 + "a", "meta", "post", '"', "\\", "%00", "../x"]
    consumer = "😀" * 200
    run = FeedRun(ms.feeds.Feeds(policy=policy, keep=5))
    records: list[Record] = [
        {"kind": "follow", "at": START, "consumer": consumer, "producer": one} for one in names
    ]
    run.batch(records)
    run.settle()
    run.batch(
        {"kind": "post", "at": START + 1, "producer": one, "id": post, "value": post}
        for one in names
        for post in names
    )
    run.settle()
    expected = brute_force(run.taken, consumer)
    assert len(expected) == len(names) ** 2
    query = run.query(consumer)
    found, page = [], query.older(None, 50)
    while True:
        found += page.items
        if not page.more:
            break
        page = query.older(page.items[-1].position, 50)
    assert shown(found) == expected
    found, page = [], query.newer((0, "", ""), 50)
    while True:
        found = page.items + found
        if not page.more:
            break
        page = query.newer(page.items[0].position, 50)
    assert shown(found) == expected
