"""The client's feeds against a real server; the test is the application that takes records in."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from client.cutting_proxy import CuttingProxy
from feeds.stored_feeds import FeedStore
from server.served import served

from millstream.client import Client, FeedPage, Follow
from millstream.errors import ClientError


@pytest.fixture
def stored(tmp_path: Path) -> FeedStore:
    return FeedStore(tmp_path / "store")


@pytest.fixture
def url(stored: FeedStore) -> Iterator[str]:
    stored.batch()
    with served(stored.path) as url:
        yield url


@pytest.fixture
def client(url: str) -> Iterator[Client]:
    with Client(url) as client:
        yield client


def texts(page: FeedPage) -> list[str]:
    return [item.value for item in page.items]


def test_what_was_done_shows_at_once(stored: FeedStore, client: Client) -> None:
    """A follow, posts, an edit, a delete, an unfollow: each is in the next read, before the
    application has taken it in and after."""
    feeds = client.feeds
    feeds.follow("xena", "ann")
    first, second = feeds.post("ann", "first"), feeds.post("ann", "second", id="mine")
    assert second == "mine"
    page = feeds.read("xena")
    assert texts(page) == ["second", "first"]
    assert [item.how for item in page.items] == ["pending", "pending"]
    assert (page.consumer, page.complete, page.left_out) == ("xena", True, None)
    feeds.edit("ann", "mine", "second, edited")
    stored.batch()
    page = feeds.read("xena")
    assert texts(page) == ["second, edited", "first"]
    assert page.items[0].edited is not None
    assert [item.how for item in page.items] == ["pull", "pull"]
    feeds.delete("ann", first)
    assert texts(feeds.read("xena")) == ["second, edited"]
    feeds.unfollow("xena", "ann")
    assert texts(feeds.read("xena")) == []
    stored.batch()
    assert texts(feeds.read("xena")) == []


def test_pages_both_ways(stored: FeedStore, client: Client) -> None:
    """Pages older to the first post; what is newer than a page by its cursor, once."""
    feeds = client.feeds
    for producer in ("ann", "bob"):
        feeds.follow("xena", producer)
    records = [
        {"kind": "post", "producer": ("ann", "bob")[n % 2], "id": f"p{n}", "value": n}
        for n in range(1_200)
    ]
    sent = feeds.send(records)
    assert (sent.accepted, sent.refused_count) == (1_200, 0)
    assert list(sent.ids) == [record["id"] for record in records]
    stored.batch()
    expected = [*reversed(range(1_200))]
    pages = [*feeds.older("xena", limit=500)]
    assert [len(page.items) for page in pages] == [500, 500, 200]
    assert [item.value for page in pages for item in page.items] == expected
    assert [item.value for item in feeds.items("xena", limit=400)] == expected
    assert len({item.position for item in feeds.items("xena")}) == 1_200
    newest = feeds.read("xena", limit=1)
    assert newest.previous is not None
    assert [*feeds.newer("xena", newest.previous)] == []
    for n in range(5):
        feeds.post("bob", f"new {n}")
    later = [*feeds.newer("xena", newest.previous, limit=2)]
    assert [texts(page) for page in later] == [["new 1", "new 0"], ["new 3", "new 2"], ["new 4"]]


def test_unread(client: Client) -> None:
    """Items up to the marker are read. The count is given on request."""
    feeds = client.feeds
    feeds.follow("xena", "ann")
    for n in range(3):
        feeds.post("ann", n)
    page = feeds.read("xena")
    assert page.unread is None
    feeds.seen("xena", page.items[1])
    page = feeds.read("xena", unread=True)
    assert page.unread is not None
    assert (page.unread.count, page.unread.more) == (1, False)
    assert [item.unread for item in page.items] == [True, False, False]
    assert page.seen == page.items[1].position


def test_blocks(client: Client) -> None:
    """A blocked producer is not shown, and cannot be followed until it is unblocked."""
    feeds = client.feeds
    feeds.follow("xena", "ann")
    feeds.post("ann", "hello")
    feeds.block("xena", "ann")
    assert texts(feeds.read("xena")) == []
    with pytest.raises(ClientError, match="has blocked") as error:
        feeds.follow("xena", "ann")
    assert error.value.status == 409
    feeds.unblock("xena", "ann")
    assert texts(feeds.read("xena")) == []
    feeds.follow("xena", "ann")
    assert texts(feeds.read("xena")) == ["hello"]


def test_follows(stored: FeedStore, client: Client) -> None:
    """All whom a consumer follows, over as many pages as it takes."""
    producers = [f"p{n:03}" for n in range(250)]
    records = [{"kind": "follow", "consumer": "xena", "producer": one} for one in producers]
    assert client.feeds.send(records).accepted == 250
    assert [*client.feeds.follows("xena")] == [Follow(one, "pull") for one in producers]
    stored.batch()
    assert [one.producer for one in client.feeds.follows("xena")] == producers
    assert [*client.feeds.follows("nobody")] == []


def test_names_of_any_characters(client: Client) -> None:
    """Any name of a consumer or producer reaches the server unchanged, also in paths."""
    for name in ("a/b", "%2F", "a b+c", "é?&=#", "<b>", "events", "follows", ".", ".."):
        client.feeds.follow(name, f"of {name}")
        client.feeds.post(f"of {name}", name)
        assert texts(client.feeds.read(name)) == [name]


def test_why_and_coherency(stored: FeedStore, client: Client) -> None:
    """Why an item is there, if that is asked for; and k posts of each producer."""
    feeds = client.feeds
    for producer in ("ann", "bob"):
        feeds.follow("xena", producer)
    for n in range(6):
        feeds.post("ann", f"ann {n}")
    feeds.post("bob", "bob 0")
    stored.batch()
    page = feeds.read("xena", coherency="per-producer", k=2, t="1d", why=True)
    assert texts(page) == ["bob 0", "ann 5", "ann 4"]
    assert page.coherency == "per-producer"
    assert page.items[0].why is not None
    assert page.items[0].why.side == "pull"
    assert feeds.read("xena").items[0].why is None


def test_refusals(client: Client) -> None:
    """The server's own sentence, with its status; of many records each that is refused is named."""
    feeds = client.feeds
    for call, words, status in (
        (lambda: feeds.read("xena", cursor="x"), "cursor must be", 400),
        (lambda: feeds.read("xena", coherency="local"), "coherency must be one of", 400),
        (lambda: feeds.post("", 1), "producer must be text", 422),
        (lambda: feeds.follow("xena", "x" * 201), "producer must be text", 400),
        (lambda: feeds.named("fed").read("xena"), "'fed'", 404),
    ):
        with pytest.raises(ClientError, match=words) as error:
            call()
        assert error.value.status == status
    good = {"kind": "follow", "consumer": "xena", "producer": "ann"}
    sent = feeds.send([good] * 600 + [{"kind": "folow"}, good])
    assert (sent.accepted, sent.refused_count) == (601, 1)
    assert sent.refused[0].line == 601
    assert "did you mean 'follow'" in sent.refused[0].error


def test_a_lost_answer_counts_once(stored: FeedStore, url: str) -> None:
    """A post whose answer is lost is sent again, is one post, and has the id that it had."""
    address = ("127.0.0.1", int(url.rpartition(":")[2]))
    with CuttingProxy(address) as proxy, Client(proxy.url) as client:
        client.feeds.follow("xena", "ann")
        proxy.lose_answers = 1
        post = client.feeds.post("ann", "once")
        assert proxy.lose_answers == 0
        assert [item.id for item in client.feeds.read("xena").items] == [post]
        stored.batch()
        assert [item.id for item in client.feeds.read("xena").items] == [post]


def test_live(client: Client) -> None:
    """New items arrive when they are posted, and deleted ones are reported."""
    feeds = client.feeds
    feeds.follow("xena", "ann")
    old = feeds.post("ann", "old")
    page = feeds.read("xena")
    live = feeds.live("xena", cursor=page.previous)
    feeds.post("ann", "new")
    first = next(live)
    assert [item.value for item in first.items] == ["new"]
    assert first.cursor is not None
    kept = next(live)
    assert (kept.kept, kept.since) == ((first.items[0].position, page.items[0].position), 0)
    feeds.delete("ann", old)
    gone = next(one for one in live if one.gone)
    assert gone.gone == (page.items[0].position,)
    live.close()
    feeds.post("ann", "later")
    (again,) = islice(feeds.live("xena", cursor=first.cursor), 1)
    assert [item.value for item in again.items] == ["later"]


def test_the_network(stored: FeedStore, client: Client) -> None:
    """The answer counts the members of the network, and the pairs on each side."""
    client.feeds.follow("xena", "ann")
    client.feeds.post("ann", 1)
    stored.batch()
    stored.settle()
    network = client.feeds.network()["feeds"]
    assert (network.producers, network.consumers, network.pairs) == (1, 1, 1)
    assert network.pushed + network.pulled == 1
    assert network.coherency == "global"
