"""GET /feeds/{consumer}/live: server-sent events, over loopback."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from feeds.stored_feeds import FeedStore
from listening import Listener, listening
from served import asked

PATH = "/feeds/ann/live"


@pytest.fixture
def made(tmp_path: Path) -> FeedStore:
    return FeedStore(tmp_path / "store")


@pytest.fixture
def client(made: FeedStore) -> Iterator[httpx.Client]:
    with asked(made.path) as client:
        assert client.put("/feeds/ann/follows/bob").status_code == 200
        yield client


def tell(client: httpx.Client, kind: str, **fields: Any) -> None:
    record = {"kind": kind, **fields}
    assert client.post("/feeds/events", json=record).status_code == 200


def post(client: httpx.Client, post_id: str, producer: str = "bob", **fields: Any) -> None:
    tell(client, "post", producer=producer, id=post_id, value=f"text {post_id}", **fields)


def ids(heard: Listener, name: str) -> list[str]:
    """Returns the ids of the next event, which must have this name."""
    event = heard.next()
    assert event.name == name, event
    return [one["id"] for one in event.data["items"]]


def test_new_posts_come_as_they_are_acknowledged(made: FeedStore, client: httpx.Client):
    """Posts of followed producers arrive whether or not a batch has processed them. None comes
    twice."""
    post(client, "before")
    with listening(client, PATH) as heard:
        post(client, "other", producer="eve")
        post(client, "1")
        event = heard.next()
        assert event.name == "items"
        assert event.data["batch"] == -1
        assert event.data["complete"] is True
        [item] = event.data["items"]
        assert (item["id"], item["value"], item["how"]) == ("1", "text 1", "pending")
        made.batch()
        made.settle()
        post(client, "2")
        assert ids(heard, "items") == ["2"]


def test_going_on_where_it_was_broken_off(client: httpx.Client):
    """A client that returns with the last id gets the newer posts. So does one that has read a
    page."""
    post(client, "1")
    cursor = client.get("/feeds/ann").json()["previous"]
    post(client, "2")
    with listening(client, PATH, cursor=cursor) as heard:
        event = heard.next()
        assert [one["id"] for one in event.data["items"]] == ["2"]
    post(client, "3")
    with listening(client, PATH, event.id, cursor=cursor) as heard:
        assert ids(heard, "items") == ["3"]
    assert [
        one["id"] for one in client.get("/feeds/ann", params={"cursor": event.id}).json()["items"]
    ] == ["3"]


def test_who_comes_back_is_told_what_was_edited_and_deleted(made: FeedStore, client: httpx.Client):
    """A returning client gets items that were edited in its absence, and the names of those that
    still exist."""
    for number in range(4):
        post(client, f"{number}")
    made.batch()
    cursor = client.get("/feeds/ann").json()["previous"]
    tell(client, "delete", producer="bob", id="1")
    tell(client, "edit", producer="bob", id="2", value="other")
    post(client, "4")
    with listening(client, PATH, cursor=cursor) as heard:
        assert sorted(ids(heard, "items")) == ["2", "4"]
        event = heard.next()
        assert (event.name, event.data["since"]) == ("kept", 0)
        assert [one["id"] for one in event.data["items"]] == ["4", "3", "2", "0"]
        tell(client, "delete", producer="bob", id="3")
        assert ids(heard, "gone") == ["3"]


def test_a_feed_that_was_empty(client: httpx.Client):
    """Its first item comes too,."""
    with listening(client, PATH) as heard:
        post(client, "1")
        assert ids(heard, "items") == ["1"]


def test_deleted_and_edited_items(made: FeedStore, client: httpx.Client):
    """A shown item that is deleted is reported as gone. An edited one is sent again."""
    for number in range(3):
        post(client, f"{number}")
    made.batch()
    with listening(client, PATH, why=1) as heard:
        tell(client, "delete", producer="bob", id="1")
        event = heard.next()
        assert event.name == "gone"
        [gone] = event.data["items"]
        assert (gone["id"], gone["producer"], type(gone["ts"])) == ("1", "bob", int)
        tell(client, "edit", producer="bob", id="0", value="other")
        event = heard.next()
        [item] = event.data["items"]
        assert (event.name, item["id"], item["value"]) == ("items", "0", "other")
        assert item["edited"] > item["ts"]
        assert item["why"]["side"] == "pull"


def test_following_and_leaving(client: httpx.Client):
    """The posts of whom is followed no more are gone, those of whom is followed now come."""
    post(client, "1")
    post(client, "2", producer="eve")
    post(client, "3")
    with listening(client, PATH) as heard:
        assert client.put("/feeds/ann/follows/eve").status_code == 200
        assert ids(heard, "items") == ["2"]
        assert client.delete("/feeds/ann/follows/bob").status_code == 200
        assert sorted(ids(heard, "gone")) == ["1", "3"]
        post(client, "4")
        post(client, "5", producer="eve")
        assert ids(heard, "items") == ["5"]


def test_more_than_fits_one_event(client: httpx.Client):
    """All come, in order, each once."""
    body = "\n".join(
        f'{{"kind":"post","producer":"bob","id":"{number:03d}","value":0}}' for number in range(250)
    )
    with listening(client, PATH) as heard:
        headers = {"Content-Type": "application/x-ndjson"}
        assert client.post("/feeds/events", content=body, headers=headers).status_code == 200
        found: list[str] = []
        while len(found) < 250:
            found += reversed(ids(heard, "items"))
    assert found == [f"{number:03d}" for number in range(250)]


def test_what_comes_by_an_aggregated_producer(made: FeedStore, client: httpx.Client):
    """When the application has worked it through, at the latest."""
    tell(client, "aggregate", producer="all", sources=["eve"])
    assert client.put("/feeds/ann/follows/all").status_code == 200
    made.batch()
    made.settle()
    with listening(client, PATH) as heard:
        post(client, "1", producer="eve")
        made.batch()
        made.settle()
        [item] = heard.next().data["items"]
        assert (item["id"], item["producer"], item["via"]) == ("1", "eve", "all")
