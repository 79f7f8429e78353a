"""Passes over a producer's followers: bounded in each batch, durable, and never seen half done."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from engine.in_process import InProcess
from feeds.feed_runs import FeedRun, Record, brute_force, shown
from generated_cases import PROFILE, examples
from hypothesis import given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.feeds.checks.feed_check import verify_feed
from millstream.feeds.reads.query import FeedQuery

START = 1_700_000_000_000_000
SECOND = 1_000_000
HOUR = 3_600 * SECOND
CROWD = [f"c{number:04d}" for number in range(1_000 if PROFILE == "ci" else 3_000)]
SAMPLE = [CROWD[number] for number in (0, 1, 99, 100, 101, len(CROWD) // 2, -101, -1)]
PUSHES = 100


class Counting(InProcess):
    """Counts what is sent to consumers in each batch."""

    def batch(self, events: Any, **given: Any) -> None:
        self.streams.clear()
        super().batch(events, **given)

    def sent(self) -> int:
        return len(self.streams.get("feeds.push", []))


def test_a_crowd_is_told_in_bounded_steps() -> None:
    """3,000 followers (1,000 in the default run), 100 of whom are pushed to in one go: no batch
    sends more than that for each time that it goes on, the driver may be another in each batch, and
    every feed is right all the time, with an edit, a delete, new posts, new followers and leaving
    ones in between."""
    run = FeedRun(ms.feeds.Feeds(policy="push", pushes=PUSHES, backfill=3))
    run.engine = Counting(run.engine.workflow, shards=4)
    run.batch(
        {"kind": "follow", "at": START + number, "consumer": one, "producer": "ann"}
        for number, one in enumerate(CROWD)
    )
    run.batch()
    assert len(run.entries("producers", "ann", "of")) == len(CROWD)
    later = steps()
    batches = 0
    while later or run.entries("fanouts", ""):
        records = later.pop(0) if later else []
        new = sum(one["kind"] == "follow" for one in run.taken[-5:] if batches)
        run.batch(records)
        batches += 1
        assert isinstance(run.engine, Counting)
        assert run.engine.sent() <= PUSHES + new
        tables = run.tables()
        taken = [record for record in run.taken if record.get("consumer", "") in ("", *SAMPLE)]
        for one in SAMPLE:
            items = FeedQuery(run.placed, tables, one).older(None, 50).items
            assert shown(items) == brute_force(taken, one)
        run.engine = restarted(run.engine)
        assert batches < 300
    assert batches >= 2 * len(CROWD) // PUSHES
    for one in SAMPLE[2:-1]:  # the last one has followed anew, and was sent the newest posts only
        items = run.query(one).older(None, 50).items
        assert {item.how for item in items} == {"push"}


def steps() -> list[list[Record]]:
    """Returns the steps, batch by batch, while the first post is being pushed."""
    at = iter(range(START + HOUR, START + 2 * HOUR, SECOND))

    def of(kind: str, **fields: Any) -> Record:
        return {"kind": kind, "at": next(at), "producer": "ann", **fields}

    return [
        [of("post", id=str(number), value=number) for number in range(5)],
        [],
        [of("edit", id="1", value="other"), of("post", id="5", value=5)],
        [of("unfollow", consumer=CROWD[0]), of("unfollow", consumer=CROWD[-1])],
        [of("delete", id="2"), of("follow", consumer=CROWD[-1])],
        [of("block", consumer=CROWD[1])],
        [of("post", id="6", value=6), of("delete", id="6"), of("post", id="7", value=7)],
    ]


def restarted(engine: Counting) -> Counting:
    """Another driver over the same store, with the progress that was committed."""
    return Counting(
        engine.workflow,
        shards=engine.shards,
        lane=engine.lane,
        store=engine.store,
        clock=engine.clock,
        progress=engine.progress,
        epoch=engine.epoch + 1,
    )


EIGHT = [f"c{number}" for number in range(8)]


@st.composite
def flips(draw: st.DrawFn) -> list[list[Record]]:
    """Batches in which a producer's need and its followers' classes change all the time."""
    at, batches = START, list[list[Record]]()
    batches.append(
        [
            {"kind": "follow", "at": START + number, "consumer": one, "producer": "ann"}
            for number, one in enumerate(EIGHT)
        ]
    )
    for number in range(draw(st.integers(5, 40))):
        at += draw(st.sampled_from([SECOND, HOUR]))
        kind = draw(st.sampled_from(["post", "post", "view", "view", "view", "follow", "unfollow"]))
        record: Record = {"kind": kind, "at": at}
        if kind == "post":
            ratio = draw(st.sampled_from([1e-9, 0.01, 0.1, 1.0, 10.0, 100.0, 1e9]))
            record |= {"producer": "ann", "id": str(number), "value": number, "ratio": ratio}
        else:
            record["consumer"] = draw(st.sampled_from(EIGHT))
            if kind == "view":
                record["count"] = draw(st.sampled_from([0.01, 1, 10, 100, 1_000]))
            else:
                record["producer"] = "ann"
        if draw(st.booleans()):
            batches.append([])
        batches[-1].append(record)
    return batches


@pytest.mark.parametrize("lane", ["one-task", "shuffled"])
@settings(max_examples=examples(60), deadline=None)
@given(batches=flips(), pushes=st.integers(1, 3), backfill=st.integers(0, 3))
def test_sides_that_change_while_passes_are_under_way(
    lane: Any, batches: list[list[Record]], pushes: int, backfill: int
) -> None:
    """Followers change to any class while several passes wait. Every feed is right at every batch,
    and at the end no pair is on push that the producer does not push to."""
    options = ms.feeds.Feeds(pushes=pushes, backfill=backfill, memory="1h")
    run = FeedRun(options, lane)
    for number, records in enumerate(batches):
        run.batch(records)
        one = EIGHT[number % len(EIGHT)]
        assert shown(run.query(one).older(None, 100).items) == brute_force(run.taken, one)
    run.settle()
    tables = run.tables()
    for one in EIGHT:
        assert verify_feed(run.placed, tables, one, settled=True).differences == ()


def test_a_follower_that_moves_between_two_passes() -> None:
    """A follower was told of push by a pass that is still under way, while the one that takes it
    back waits. If it then looks less often than either is about, it must be told all the same."""
    options = ms.feeds.Feeds(pushes=1, backfill=0, memory="1h")
    run = FeedRun(options)

    def post(hour: int, ratio: float) -> Record:
        record = {"kind": "post", "at": START + hour * HOUR, "producer": "ann", "value": hour}
        return record | {"id": str(hour), "ratio": ratio}

    run.batch(
        {"kind": kind, "at": START + number, "consumer": one, "producer": "ann", "count": 1_000}
        for number, (kind, one) in enumerate((k, c) for k in ("follow", "view") for c in EIGHT)
    )
    run.settle()
    run.batch([post(1, 1e9)])
    run.settle()
    assert set(run.query("c0").follows().values()) == {"pull"}
    view = {"kind": "view", "at": START + 10 * HOUR, "consumer": "c0", "count": 0.01}
    run.batch([post(9, 7.0)])
    assert run.entries("consumers", "c0", "push")
    run.batch([view, post(11, 1e9)])
    run.settle()
    assert set(run.query("c0").follows().values()) == {"pull"}
    run.batch([post(12, 1e9)])
    assert shown(run.query("c0").older(None, 9).items) == brute_force(run.taken, "c0")


def test_sides_do_change() -> None:
    """The records of the test above do move pairs from one side to the other, and back."""
    sides: Counter[str] = Counter()
    options = ms.feeds.Feeds(memory="1h")
    run = FeedRun(options)
    at = START
    run.batch([{"kind": "follow", "at": at, "consumer": one, "producer": "ann"} for one in EIGHT])
    for number, ratio in enumerate([1e-9, 1e9, 1e-9, 1e9]):
        at += HOUR
        views: list[Record] = [
            {"kind": "view", "at": at + n, "consumer": one, "count": 10}
            for n, one in enumerate(EIGHT)
        ]
        post = {"kind": "post", "at": at + SECOND, "producer": "ann", "id": str(number)}
        run.batch([*views, post | {"value": number, "ratio": ratio}])
        run.settle()
        sides.update(run.query(EIGHT[0]).follows().values())
    assert sides == {"push": 2, "pull": 2}
