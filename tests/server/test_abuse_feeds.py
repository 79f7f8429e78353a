"""Feeds under attack, without a token and with: a page of another site writes nothing by reading,
and nothing that is asked or told costs more than its answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from abuse import SOON, TOKEN, Door, many
from checkins import stored
from feeds.stored_feeds import FeedStore, follow, post
from server.forked_server import ForkedServer

from millstream.server.child import ServerChild
from millstream.server.options import ServerOptions

pytestmark = pytest.mark.usefixtures("stays_unharmed")
JSON = "Content-Type: application/json"
IMAGE = ("Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image")


def social(path: Path) -> FeedStore:
    made = FeedStore(path)
    made.append(follow("ann", "bob"), post("bob", "1", at=10))
    made.batch()
    return made


@pytest.fixture(scope="module", params=["open", "token"])
def door(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Door]:
    made = social(tmp_path_factory.mktemp("abuse") / "store")
    guarded = request.param == "token"
    server = ForkedServer(ServerOptions(made.path, port=0, **({"token": TOKEN} if guarded else {})))
    try:
        yield Door(server.url, server.pid, guarded, made.path)
    finally:
        server.kill()


@pytest.mark.parametrize("guarded", [False, True])
def test_twenty_images_of_another_site(tmp_path: Path, guarded: bool):
    """The requests are refused, and write no view. So are those of a browser that does not name its
    site."""
    made = social(tmp_path / "store")
    before = len(stored(made.log))
    child = ServerChild.start(
        ServerOptions(made.path, port=0, **({"token": TOKEN} if guarded else {}))
    )
    try:
        door = Door(child.url, child.pid, guarded, made.path)
        for method in ("GET", "HEAD"):
            for _ in range(10):
                assert door.statuses(door.head(f"{method} /feeds/ann HTTP/1.1", *IMAGE)) == [403]
            assert door.statuses(door.head(f"{method} /feeds/ann HTTP/1.1")) == [200]
        asked = ("Origin: http://evil.test", "Millstream-View: 1")
        assert door.statuses(door.head("GET /feeds/ann HTTP/1.1", *asked)) == [403]
    finally:
        child.stop()
    assert [json.loads(one)["kind"] for one in stored(made.log)[before:]] == []


def test_nobody_else_is_told_that_it_may(door: Door):
    """A browser asks before it sends the header of a view for another site: it is not allowed."""
    asked = ("Origin: http://evil.test", "Access-Control-Request-Headers: millstream-view")
    said = door.said(door.head("OPTIONS /feeds/ann HTTP/1.1", *asked))
    assert said.split()[1] == b"403"
    assert b"access-control-allow" not in said.lower()


@pytest.mark.parametrize("method", ["PUT", "DELETE"])
def test_another_site_follows_nobody(door: Door, method: str):
    found = door.statuses(door.head(f"{method} /feeds/ann/follows/eve HTTP/1.1", *IMAGE))
    assert found == [403]


@pytest.mark.parametrize(
    "query",
    [
        "cursor=x",
        "cursor=" + "A" * 12_000,
        "cursor=%00",
        "cursor=WzEsMiwzXQ",
        "limit=1000000000",
        "limit=-1",
        "k=99999999999999999999",
        "t=99999999999d",
        "t=-1d",
        "unread=2",
        "why=yes",
        "coherency=none",
        "feeds=other",
    ],
    ids=lambda query: query[:20],
)
def test_feeds_that_nobody_means(door: Door, query: str):
    """A cursor that is none of the server's, and bounds without sense."""
    said = door.said(door.head(f"GET /feeds/ann?{query} HTTP/1.1"))
    assert said.split()[1] in (b"400", b"404")
    assert len(said) < 4_000


@pytest.mark.parametrize(
    "record",
    [
        b"{}",
        b"[]",
        b'{"kind": "other"}',
        b'{"kind": "post", "producer": "' + b"p" * 5_000 + b'", "value": 1}',
        b'{"kind": "post", "producer": "bob", "at": 1e300, "value": 1}',
        b'{"kind": "post", "producer": "bob", "at": -9223372036854775809, "value": 1}',
        b'{"kind": "follow", "consumer": "", "producer": "bob"}',
        b'{"kind": "post", "producer": "bob", "value": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=lambda record: record[:44].decode(),
)
def test_records_that_no_feed_takes(door: Door, record: bytes):
    """Each is refused with a sentence, and none is in the log."""
    before = door.events("feeds.events")
    length = f"Content-Length: {len(record)}"
    said = door.said(door.head("POST /feeds/events HTTP/1.1", JSON, length) + record)
    assert said.split()[1] == b"422"
    assert door.events("feeds.events") == before


def test_whom_one_follows_without_sense(door: Door):
    """The same for the list of whom a consumer follows."""
    for query in ("coherency=none", "limit=0", "limit=1001", "k=1"):
        assert door.statuses(door.head(f"GET /feeds/ann/follows?{query} HTTP/1.1")) == [400]


def test_names_of_any_length(door: Door):
    """A consumer that could not be kept is refused, in the path too."""
    name = "n" * 6_000
    for line in (f"PUT /feeds/{name}/follows/bob", f"PUT /feeds/ann/follows/{name}"):
        assert door.statuses(door.head(f"{line} HTTP/1.1")) in ([400], [422])


def test_hundreds_of_live_feeds(door: Door):
    """256 event streams are the most; the rest are told to come again, others are answered."""
    with many(door, 270) as connections:
        for connection in connections:
            connection.sendall(door.head("GET /feeds/ann/live HTTP/1.1"))
        refused = [one for one in connections if one.recv(12) == b"HTTP/1.1 503"]
        assert len(refused) == 14
        assert door.answers() < SOON
