"""Reads of feeds when something is in the way: batches that go by, a log or a disk that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from threading import current_thread
from typing import TypeVar

import pytest
from checkins import checkins_store
from feeds.stored_feeds import NAME, T0, FeedStore, follow, post
from served import asked

from millstream.feeds.reads.pending_records import Pending
from millstream.feeds.reads.query import FeedQuery
from millstream.feeds.reads.tables import Tables
from millstream.log.writer import LogWriter
from millstream.server.feeds import feed_networks
from millstream.server.feeds.feed_networks import DatedValue, Networks, ServedFeeds
from millstream.server.open_store import OpenStore
from millstream.server.options import ServerOptions
from millstream.server.service import Service
from millstream.server.streams.catalogue import Catalogue

T = TypeVar("T")


@pytest.fixture
def made(tmp_path: Path) -> FeedStore:
    return FeedStore(tmp_path / "store")


def networked(made: FeedStore, use: Callable[[ServedFeeds], Awaitable[T]]) -> T:
    """Calls a function with the feeds of a store, and returns its result."""

    async def run() -> T:
        service = Service(
            ServerOptions(made.path), OpenStore(made.path), "", clock=lambda: T0 + 10**9
        )
        networks = Networks(service, Catalogue(service.store))
        try:
            return await use(networks.named(NAME))
        finally:
            await networks.close()
            await service.stop()

    return asyncio.run(run())


def shown(tables: Tables, pending: Pending, network: ServedFeeds) -> list[str]:
    return [
        one.id for one in FeedQuery(network.placed, tables, "ann", pending).older(None, 50).items
    ]


@pytest.mark.parametrize("many", [200, 0], ids=["on the event loop", "in a thread"])
def test_a_read_that_batches_overtake_begins_again(made, monkeypatch, many):
    """With the newer batch, and with what is pending after that one: nothing is missing, and
    nothing is from two moments."""
    monkeypatch.setattr(feed_networks, "MANY", many)
    made.append(follow("ann", "bob"), post("bob", "1", 1))
    made.batch()
    made.append(post("bob", "2", 2))
    calls: list[tuple[int, set[str]]] = []

    async def use(network: ServedFeeds) -> DatedValue[list[str]]:
        def make(tables: Tables, pending: Pending) -> list[str]:
            calls.append((tables.batch, set(pending.posts.get("bob", {}))))  # type: ignore[attr-defined]
            if len(calls) == 1:
                made.append(post("bob", "3", 3))
                for number in range(3):  # all shards change, and none remembers two batches back
                    made.append(*(post(f"{one}", f"{number}", 4) for one in range(40)))
                    made.batch()
            for one in range(40):
                tables.get(network.placed.producers, f"{one}", "meta")
            return shown(tables, pending, network)

        return await network.read("ann", make)

    found = networked(made, use)
    assert found.value == ["3", "2", "1"]
    assert found.progress.batch == 3
    assert calls == [(0, {"2"}), (3, set())]


def test_many_follows_are_read_beside_the_event_loop(made):
    """The answer is the same, and others are served meanwhile."""
    for number in range(300):
        made.append(follow("ann", f"p{number:03d}", number), post(f"p{number:03d}", "1", number))
    made.batch(most_bytes=8_000)
    threads: list[str] = []

    async def use(network: ServedFeeds) -> DatedValue[list[str]]:
        def make(tables: Tables, pending: Pending) -> list[str]:
            threads.append(current_thread().name)
            return [
                one.producer
                for one in FeedQuery(network.placed, tables, "ann", pending).older(None, 500).items
            ]

        return await network.read("ann", make)

    found = networked(made, use)
    assert found.value == [f"p{number:03d}" for number in reversed(range(300))]
    assert [name.startswith("reading") for name in threads] == [True]


def test_what_cannot_be_looked_at_is_said(made):
    """The log is damaged behind what the application has taken: the answer is not complete."""
    made.append(follow("ann", "bob"), post("bob", "1", 1))
    made.batch()
    made.append(post("bob", "2", 2))
    [segment] = [one for one in Path(made.log).iterdir() if one.suffix not in ("", ".json")]
    with asked(made.path) as client:
        good = segment.read_bytes()
        segment.write_bytes(good[:-4] + b"\0\0\0\0")
        found = client.get("/feeds/ann").json()
        assert [one["id"] for one in found["items"]] == ["1"]
        assert found["complete"] is False
        assert "cannot be read" in found["left_out"]["reason"]
        segment.write_bytes(good)
        found = client.get("/feeds/ann").json()
        assert [one["id"] for one in found["items"]] == ["2", "1"]
        assert found["complete"] is True


def test_an_application_without_feeds(tmp_path: Path):
    """That is said of each route, and the overview is empty."""
    store = checkins_store(tmp_path / "store")
    with asked(store.path) as client:
        assert client.get("/feeds").json() == {"feeds": {}}
        for answer in (
            client.get("/feeds/ann"),
            client.get("/feeds/ann/follows"),
            client.get("/feeds/ann/live"),
            client.put("/feeds/ann/follows/bob"),
            client.post("/feeds/events", json={"kind": "view", "consumer": "ann"}),
        ):
            assert answer.status_code == 404
            assert "the application has no feeds" in answer.json()["error"]


def test_a_log_that_another_process_writes(made):
    """Nothing can be told then, and all can be read."""
    made.append(follow("ann", "bob"), post("bob", "1", 1))
    writer = LogWriter(made.log)
    with asked(made.path) as client:
        for answer in (
            client.put("/feeds/ann/follows/eve"),
            client.post("/feeds/events", json={"kind": "delete", "producer": "bob", "id": "1"}),
        ):
            assert answer.status_code == 409
            assert "another process writes" in answer.json()["error"]
        assert len(client.get("/feeds/ann").json()["items"]) == 1
    writer.close()


def test_an_application_that_is_far_behind(made):
    """No more is taken then: try again later."""
    made.append(follow("ann", "bob"))
    with asked(made.path, backlog_bytes=1) as client:
        answer = client.put("/feeds/ann/follows/eve")
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert client.post("/feeds/events", json=post("bob", "1")).status_code == 503


def test_the_network_as_a_whole(tmp_path: Path):
    """The answer counts the members, and the pairs on each side."""
    made = FeedStore(tmp_path / "store", policy="push")
    made.append(follow("ann", "bob", 1), follow("eve", "bob", 2), post("bob", "1", 3))
    made.batch()
    made.settle()
    with asked(made.path) as client:
        client.get("/feeds/ann")
        found = client.get("/feeds").json()["feeds"][NAME]
        metrics = client.get("/metrics").text
    counted = [found[one] for one in ("producers", "consumers", "pairs", "pushed", "pulled")]
    assert counted == [1, 2, 2, 2, 0]
    assert (found["under_way"], found["policy"], found["coherency"]) == (0, "push", "global")
    assert (found["batch"], found["reads"]) == (made.engine.progress.batch, 1)
    assert found["latency"]["p95"] > 0
    assert 'millstream_feed_reads_total{feeds="feeds"} 1.0' in metrics
    assert 'millstream_feed_read_quantile_seconds{feeds="feeds",quantile="0.95"}' in metrics
