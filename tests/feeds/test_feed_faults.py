"""Feeds when things go wrong: tasks that are tried again, drivers that die between commits."""

from __future__ import annotations

from typing import Any

import pytest
from engine.disturbed import Crashing, CrashingStore, Retried
from engine.in_process import InProcess
from feeds.feed_runs import FeedRun, Record, brute_force, shown
from feeds.feed_strategies import CONSUMERS, OPTIONS, in_batches, records
from generated_cases import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.feeds.checks.feed_check import verify_feed
from millstream.stores.memory import MemoryStore

SHARDS = 4


def retried(run: FeedRun, share: int) -> InProcess:
    """Every task runs again after it has committed `share` tenths of its input."""
    return Retried(run.engine.workflow, shards=SHARDS, lane=run.lane, share=share)


def crashing(run: FeedRun, commits: int) -> InProcess:
    """The driver dies in every batch after so many commits of shards, and starts again."""
    store = CrashingStore(MemoryStore(SHARDS))
    workflow = run.engine.workflow
    return Crashing(workflow, shards=SHARDS, lane=run.lane, store=store, commits=commits)


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
@pytest.mark.parametrize("disturbed", [retried, crashing])
@settings(max_examples=examples(25), deadline=None)
@given(
    data=st.data(),
    options=OPTIONS,
    given=records(aggregates=True, most=40),
    after=st.integers(0, 9),
)
def test_feeds_after_every_recovery(
    lane: Any,
    disturbed: Any,
    data: st.DataObject,
    options: ms.feeds.Feeds,
    given: list[Record],
    after: int,
) -> None:
    """With retried tasks and killed drivers, after every committed batch each feed has all posts of
    directly followed producers and no others, and unfinished passes resume. At the end, feeds and
    tables are as expected."""
    run = FeedRun(options, lane)
    run.engine = disturbed(run, after)
    for consumer, _ in in_batches(run, data, given):
        found = shown(run.query(consumer).older(None, 1_000).items)
        allowed = brute_force(run.taken, consumer)
        needed = brute_force(run.taken, consumer, aggregated=False)
        assert [one for one in allowed if one in found] == found
        assert [one for one in found if one in needed] == needed
        assert verify_feed(run.placed, run.tables(), consumer).differences == ()
    run.settle()
    tables = run.tables()
    for consumer in CONSUMERS:
        assert verify_feed(run.placed, tables, consumer, settled=True).differences == ()
        if options.backfill == 50:
            found = shown(run.query(consumer).older(None, 1_000).items)
            assert found == brute_force(run.taken, consumer)


def test_a_source_that_two_producers_share_counts_for_both() -> None:
    """With per-producer coherency: its post is one of the five newest of each, though it is pushed
    to who follows both only once."""
    run = FeedRun(ms.feeds.Feeds(backfill=3, pushes=1, policy="hybrid", ratio=0.1), "one-task")
    post = {"kind": "post", "ratio": 0.001}
    posts = [
        {**post, "at": at, "producer": "ann", "id": f"p{at}", "value": at} for at in range(1, 6)
    ]
    rest = [
        {"kind": "view", "at": 6, "consumer": "x", "count": 1, "flow": 0.001},
        {"kind": "aggregate", "at": 7, "producer": "ann", "sources": ["bob", "cid"]},
        {**post, "at": 8, "producer": "cid", "id": "p0", "value": 8},
        {"kind": "aggregate", "at": 9, "producer": "bob", "sources": ["cid"]},
        {"kind": "follow", "at": 10, "consumer": "x", "producer": "bob"},
        {"kind": "follow", "at": 11, "consumer": "x", "producer": "ann"},
    ]
    run.batch(posts)
    run.batch(rest)
    run.settle()
    assert verify_feed(run.placed, run.tables(), "x", settled=True).differences == ()


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
def test_the_disturbances_do_happen(lane: Any) -> None:
    """In the test above drivers do die between the commits of one batch, and tasks do run twice."""
    run = FeedRun(lane=lane)
    post = {"kind": "post", "at": 1_700_000_000_000_000, "producer": "ann", "id": "1", "value": 1}
    run.engine = crashing(run, 1)
    run.batch([post])
    assert run.engine.epoch == 2
    undisturbed = FeedRun(lane=lane)
    undisturbed.batch([post])
    run.engine = retried(run, 5)
    run.batch([{**post, "id": "2"}])
    assert run.engine.attempts > undisturbed.engine.attempts
