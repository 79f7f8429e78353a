"""A consumer with more producers to pull from than one read does."""

from __future__ import annotations

from feeds.feed_runs import FeedRun

import millstream as ms
from millstream.feeds.reads.query import FeedQuery

AT = 1_700_000_000_000_000


def test_what_is_left_out_is_not_shown_and_is_said() -> None:
    """Not even items of a producer whose pass is under way, which may be half of it."""
    run = FeedRun(ms.feeds.Feeds(policy="push", pushes=1))
    follows = [
        {"kind": "follow", "at": AT + 10 * number, "consumer": consumer, "producer": producer}
        for number, (consumer, producer) in enumerate(
            (consumer, producer) for consumer in ("x", "y", "z") for producer in ("ann", "bob")
        )
    ]
    run.batch(follows)
    run.settle()
    posts = [
        {"kind": "post", "at": AT + 1_000 + n, "producer": who, "id": str(n), "value": n}
        for n, who in enumerate(("ann", "bob"))
    ]
    run.batch(posts)
    assert run.entries("fanouts", "")
    for most in (0, 1, 2):
        page = FeedQuery(run.placed, run.tables(), "x", most_pulled=most).older(None, 10)
        assert (len(page.items), page.left_out, page.pulled) == (most, 2 - most, most)
