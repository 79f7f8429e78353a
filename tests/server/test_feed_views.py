"""Views of feeds: counted when a first page is read, told together, and not lost by a stop."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx
from checkins import stored
from feeds.stored_feeds import FeedStore

from millstream.server.child import ServerChild
from millstream.server.feeds import feed_views
from millstream.server.feeds.feed_views import Views
from millstream.server.http.answers import Refusal
from millstream.server.options import ServerOptions

Told = list[tuple[str, dict[str, Any]]]


def view(consumer: str, count: int, flow: float = 0.0) -> dict[str, Any]:
    return {"kind": "view", "consumer": consumer, "count": count, "flow": flow}


class Log:
    """Accepts appends, unless it is full."""

    def __init__(self) -> None:
        self.told: Told = []
        self.calls = 0
        self.full = False

    async def append(self, feeds: str, records: list[dict[str, Any]]) -> None:
        self.calls += 1
        if self.full:
            raise Refusal(507, "the disk is full")
        self.told += [(feeds, record) for record in records]


def test_views_of_a_consumer_become_one_record():
    """With the flow of its last page; those of other feeds are apart."""
    log = Log()
    views = Views(log.append)
    for feeds, consumer, flow in (
        ("feeds", "ann", 1.0),
        ("feeds", "ann", 2.0),
        ("feeds", "eve", 3.0),
        ("more", "ann", 4.0),
    ):
        views.count(feeds, consumer, flow)
    asyncio.run(views.tell())
    assert log.told == [
        ("feeds", view("ann", 2, 2.0)),
        ("feeds", view("eve", 1, 3.0)),
        ("more", view("ann", 1, 4.0)),
    ]
    asyncio.run(views.tell())
    assert log.calls == 2, "nothing is told when nothing was counted"


def test_what_cannot_be_told_is_kept():
    """The counts are sent later, together with newer ones."""
    log = Log()
    views = Views(log.append)
    log.full = True
    views.count("feeds", "ann", 1.0)
    asyncio.run(views.tell())
    views.count("feeds", "ann", 5.0)
    asyncio.run(views.tell())
    assert log.told == []
    log.full = False
    asyncio.run(views.tell())
    assert log.told == [("feeds", view("ann", 2, 5.0))]


def test_no_more_than_so_many_are_kept(monkeypatch):
    """Views above the limit are counted as lost."""
    monkeypatch.setattr(feed_views, "MOST", 3)
    log = Log()
    views = Views(log.append)
    for _ in range(2):
        for number in range(5):
            views.count("feeds", f"{number}", 0.0)
    asyncio.run(views.tell())
    assert log.told == [("feeds", view(f"{number}", 2)) for number in range(3)]
    assert views.lost == 4


def test_many_are_told_in_parts(monkeypatch):
    """Each is told once."""
    monkeypatch.setattr(feed_views, "TOGETHER", 4)
    log = Log()
    views = Views(log.append)
    for number in range(10):
        views.count("feeds", f"{number}", 0.0)
    asyncio.run(views.tell())
    assert log.told == [("feeds", view(f"{number}", 1)) for number in range(10)]
    assert log.calls == 3


def test_they_are_told_again_and_again_until_the_end(monkeypatch):
    """Each time what came since, the last time when it stops."""
    monkeypatch.setattr(feed_views, "EVERY", 0.01)
    log = Log()

    async def run() -> None:
        views = Views(log.append)
        await views.start()
        for number in range(2):
            views.count("feeds", f"{number}", 0.0)
            async with asyncio.timeout(10):
                while len(log.told) <= number:
                    await asyncio.sleep(0.005)
        monkeypatch.setattr(feed_views, "EVERY", 1_000.0)
        await asyncio.sleep(0.02)
        views.count("feeds", "last", 0.0)
        await views.stop()

    asyncio.run(run())
    assert [record["consumer"] for _, record in log.told] == ["0", "1", "last"]


def test_a_first_page_is_a_view(tmp_path: Path):
    """A GET counts as a view if it says so, which a browser does not do by itself. A page by a
    cursor does not count. When the server has stopped, the counts are in the log."""
    made = FeedStore(tmp_path / "store")
    child = ServerChild.start(ServerOptions(made.path, port=0))
    try:
        with httpx.Client(base_url=child.url) as client:
            client.put("/feeds/ann/follows/bob")
            for number in range(3):
                client.post("/feeds/events", json={**_post(), "id": f"{number}"})
            looks = {"Millstream-View": "1"}
            first = client.get("/feeds/ann?limit=2", headers=looks).json()
            older = {"cursor": first["next"]}
            assert client.get("/feeds/ann", params=older, headers=looks).status_code == 200
            assert client.get("/feeds/ann").status_code == 200
            assert client.head("/feeds/ann", headers=looks).status_code == 200
            assert client.get("/feeds/ann?limit=0", headers=looks).status_code == 400
            assert client.get("/feeds/ann?unread=1", headers=looks).status_code == 200
    finally:
        child.stop()
    records = list(map(json.loads, stored(made.log)))
    [told] = [one for one in records if one["kind"] == "view"]
    assert (told["consumer"], told["count"]) == ("ann", 2)
    assert told["flow"] > 0
    assert told["at"] > records[3]["at"]
    made.batch()
    assert not made.engine.letters


def _post() -> dict[str, Any]:
    return {"kind": "post", "producer": "bob", "value": "hello"}
