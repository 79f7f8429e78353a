"""For any posts, follows and changes, cut into any batches, each feed equals the brute-force
query."""

from __future__ import annotations

from typing import Any

import pytest
from feeds.feed_runs import FeedRun, Record, brute_force, shown
from feeds.feed_strategies import CONSUMERS, OPTIONS, in_batches, records
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
@settings(max_examples=examples(60), deadline=None)
@given(data=st.data(), options=OPTIONS, given=records())
def test_every_read_at_every_batch(
    lane: Any, data: st.DataObject, options: ms.feeds.Feeds, given: list[Record]
) -> None:
    """As of any batch, with what is pending laid over it: whole feeds, pages older and newer."""
    run = FeedRun(options, lane)
    for consumer, left in in_batches(run, data, given):
        pending = left[: data.draw(st.integers(0, len(left)))]
        check(run, consumer, pending, data.draw(st.integers(1, 4)))
    run.settle()
    for consumer in CONSUMERS:
        check(run, consumer, [], 3)


def test_an_edit_of_a_post_whose_id_was_deleted_before_it_was_there() -> None:
    """The delete was of no post: the edit, pending as it is, shows."""
    run = FeedRun(ms.feeds.Feeds(), "one-task")
    run.batch([{"kind": "follow", "at": 1, "consumer": "y", "producer": "bob"}])
    post = {"at": 3, "producer": "bob", "id": "p0"}
    pending = [
        {**post, "kind": "delete", "at": 2},
        {**post, "kind": "post", "value": "new", "ratio": 1.0},
        {**post, "kind": "edit", "value": "edited", "at": 4},
    ]
    for taken in range(len(pending)):
        check(run, "y", pending[taken:], 1)
        run.batch(pending[taken : taken + 1])
    check(run, "y", [], 1)


def check(run: FeedRun, consumer: str, pending: list[Record], limit: int) -> None:
    """The whole feed at once, by pages from the newest, and back from the oldest."""
    expected = brute_force(run.taken + pending, consumer)
    query = run.query(consumer, pending)
    assert shown(query.older(None, 1_000).items) == expected
    paged, before = [], None
    while True:
        page = query.older(before, limit)
        paged += page.items
        if not page.more:
            break
        before = page.items[-1].position
    assert shown(paged) == expected
    back: list[Any] = []
    than = (0, "", "")
    while True:
        page = query.newer(than, limit)
        back = page.items + back
        if not page.more:
            break
        than = page.items[0].position
    assert shown(back) == expected
