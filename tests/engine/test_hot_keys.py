"""A hot key is held to its share of a batch; the others are not held up, and nothing is lost."""

from __future__ import annotations

from engine.folding import (
    LANES,
    as_events,
    batches,
    field_of,
    folding,
    meant,
    queues_of,
    slates,
    sum_of,
)
from engine.in_process import InProcess
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.driver.batch_plan.pace import LEAST_SHARE
from millstream.engine.horizon import Lane
from millstream.model.event import Event


def test_a_hot_key_waits_in_its_own_lane() -> None:
    """Past its share a hot key's events wait, in order; other keys of its shard pass it, and new
    events of the hot key stand behind the old ones."""
    app = folding("arrival", None)
    engine = InProcess(app.checked(), shards=1)
    slow = 1e9  # microseconds an event: the share is the least there is
    engine.progress.timing.costs = {"fold": slow}
    hot = [Event("in", n, "hot", {"n": 1, "ts": n}) for n in range(3 * LEAST_SHARE)]
    engine.batch([*hot, Event("in", 999, "cool", {"n": 2, "ts": 999})])
    assert field_of(slates(engine, "fold")["hot"], "sum") == LEAST_SHARE
    assert field_of(slates(engine, "fold")["cool"], "sum") == 2
    assert engine.progress.pending.held == 2 * LEAST_SHARE
    assert engine.progress.counts("fold").waiting == 2 * LEAST_SHARE
    engine.progress.timing.costs = {"fold": slow}
    engine.batch([Event("in", 5_000, "hot", {"n": 3, "ts": 5_000})])
    assert field_of(slates(engine, "fold")["hot"], "sum") == 2 * LEAST_SHARE
    # What is known of its cost is forgotten: nothing waits any more.
    engine.progress.timing.costs = {}
    engine.settle(final=False)
    assert field_of(slates(engine, "fold")["hot"], "sum") == 3 * LEAST_SHARE + 3
    assert engine.progress.pending.held == 0
    assert queues_of(engine) == []


def test_an_immediate_update_holds_no_key_back() -> None:
    """However many events a key has and whatever they cost, their batch processes all of them."""
    app = ms.App("immediate")
    app.source("in")

    @app.update("in", immediate=True)
    def count(event: ms.Event, slate: dict[str, int]) -> None:
        slate["sum"] = slate.get("sum", 0) + 1

    engine = InProcess(app.checked(), shards=1)
    engine.progress.timing.costs = {"count": 1e9}
    engine.batch([Event("in", n, "hot", {}) for n in range(3 * LEAST_SHARE)])
    assert field_of(slates(engine, "count")["hot"], "sum") == 3 * LEAST_SHARE
    assert engine.progress.pending.held == 0


@given(batches, st.sampled_from(LANES))
def test_shares_change_when_not_what(given: list[list[tuple[str, int, int]]], lane: Lane) -> None:
    """With shares or without, an update whose result does not depend on order comes to the same."""
    app = folding("arrival", None)
    engine = InProcess(app.checked(), lane=lane, shards=2)
    for batch in as_events(given):
        engine.progress.timing.costs = {"fold": 1e9, "last": 1e9}
        engine.batch([event for event in batch for _ in range(9)])
    engine.settle(final=True)
    events = [event for batch in as_events(given) for event in batch for _ in range(9)]
    wanted = meant(app, events)
    found = {key: sum_of(data) for key, data in slates(engine, "fold").items()}
    assert found == {k: sum_of(v) for (u, k), v in wanted.items() if u == "fold"}


def test_an_update_once_thought_dear_is_found_to_be_cheap() -> None:
    """A slow batch (a first import, a pause) makes the share of a key small. With a single key, no
    batch feeds more than that share. It must be enough to measure the cost again."""
    app = folding("arrival", None)
    engine = InProcess(app.checked(), shards=1)
    engine.progress.timing.costs = {"fold": 1e9}
    engine.batch([Event("in", n, "k", {"n": 1, "ts": n}) for n in range(20 * LEAST_SHARE)])
    assert engine.progress.pending.held == 19 * LEAST_SHARE
    assert engine.progress.timing.costs["fold"] < 0.6e9
