"""Feeds over HTTP: follow, post, read.

    with Client() as client:
        client.feeds.follow("xena", "ann")
        client.feeds.post("ann", {"text": "hello"})
        for item in client.feeds.read("xena").items:
            print(item.producer, item.value)

The effect of a call is visible in the next read, whether the application has taken it in or not.
Each call may be retried and counts once, like all calls of the client.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar
from uuid import uuid4

from millstream.client.batches import batches, encoded
from millstream.client.event_stream import listen
from millstream.client.values import FeedsSent, Live, Refused
from millstream.client.wire import Wire, path_of, target
from millstream.errors import ClientError
from millstream.messages.feeds import (
    FeedNetwork,
    FeedPage,
    FeedPostAnswer,
    FeedsAnswer,
    Follow,
    FollowsPage,
    GoneItems,
    Item,
    ItemKey,
    KeptItems,
    LiveItems,
    Position,
)
from millstream.messages.streams import PostRefused

T = TypeVar("T")
Record = Mapping[str, Any]
MANY = "application/x-ndjson"


class FeedsClient:
    """The feeds of a server. `name` selects one if the application has several."""

    def __init__(self, wire: Wire, name: str | None = None) -> None:
        self._wire = wire
        self._name = name

    def named(self, name: str) -> FeedsClient:
        """Returns the feeds with this name, for an application with several."""
        return FeedsClient(self._wire, name)

    # what producers do

    def post(self, producer: str, value: Any, *, id: str | None = None) -> str:
        """Posts a value. Returns the id, which is generated if none is given.

        Posting with the same id again is the same post, and changes nothing.
        """
        record = {"kind": "post", "producer": producer, "value": value}
        ids = self._one(record if id is None else record | {"id": id}).ids
        post_id = id if id is not None else ids[0] if ids else None
        if post_id is None:
            raise self._wire.strange("it names no id for a post")
        return post_id

    def edit(self, producer: str, id: str, value: Any) -> None:
        """Edits a post. It keeps its place in feeds."""
        self._one({"kind": "edit", "producer": producer, "id": id, "value": value})

    def delete(self, producer: str, id: str) -> None:
        """Deletes a post from all feeds, for ever."""
        self._one({"kind": "delete", "producer": producer, "id": id})

    def aggregate(self, producer: str, sources: Iterable[str]) -> None:
        """Makes a producer aggregate the posts of `sources`, which replace its previous sources."""
        self._one({"kind": "aggregate", "producer": producer, "sources": list(sources)})

    # what consumers do

    def follow(self, consumer: str, producer: str) -> None:
        """Follows a producer. Raises ClientError with status 409 if the consumer has blocked it."""
        self._change("PUT", consumer, producer)

    def unfollow(self, consumer: str, producer: str) -> None:
        self._change("DELETE", consumer, producer)

    def block(self, consumer: str, producer: str) -> None:
        """Blocks a producer: it is unfollowed, and none of its posts are shown until it is
        unblocked."""
        self._one({"kind": "block", "consumer": consumer, "producer": producer})

    def unblock(self, consumer: str, producer: str) -> None:
        """Allows the producer to be followed again. This does not follow it."""
        self._one({"kind": "unblock", "consumer": consumer, "producer": producer})

    def seen(self, consumer: str, upto: Item | Position) -> None:
        """Records that the feed was read up to this post."""
        position = upto.position if isinstance(upto, Item) else upto
        self._one({"kind": "seen", "consumer": consumer, "upto": list(position)})

    def send(self, records: Iterable[Record], *, idempotency_key: str | None = None) -> FeedsSent:
        """Sends records of any kind, in batches of at most 500; see the server's POST
        /feeds/events."""
        base = uuid4().hex if idempotency_key is None else idempotency_key
        accepted, count, refused, ids = 0, 0, list[Refused](), list[str]()
        for number, batch in enumerate(batches(encoded(records))):
            if batch.lines:
                taken = self._events(batch.body, MANY, f"{base}-{number}")
                accepted, count = accepted + taken.accepted, count + taken.refused_count
                ids += taken.ids if isinstance(taken, FeedPostAnswer) else ()
                refused += [
                    Refused(batch.numbers[record.line - 1], record.error, record.text)
                    for record in taken.refused
                ]
            refused += batch.refused
            count += len(batch.refused)
        refused.sort(key=lambda record: record.line)
        return FeedsSent(accepted, tuple(refused), count, tuple(ids))

    # reading

    def read(
        self,
        consumer: str,
        *,
        limit: int | None = None,
        cursor: str | None = None,
        coherency: str | None = None,
        k: int | None = None,
        t: str | None = None,
        why: bool = False,
        unread: bool = False,
        view: bool = True,
    ) -> FeedPage:
        """Returns a page of a feed: the newest items, or those before or after a `cursor`.

        `coherency` is global or per-producer. The latter shows `k` items of each producer; `t`,
        such as "7d", is how old a producer's newest post may be to be shown ahead of others.
        `unread` counts unread posts; `why` explains for each item why it was pushed or pulled. With
        `view=False` this read does not count as a view of the feed: how often a consumer views its
        feed decides what is pushed to it.
        """
        query = {
            "limit": limit,
            "cursor": cursor,
            "coherency": coherency,
            "k": k,
            "t": t,
            "why": 1 if why else None,
            "unread": 1 if unread else None,
        }
        headers = {"Millstream-View": "1"} if view else None
        return self._asked(path_of("feeds", consumer), FeedPage, query, headers)

    def older(
        self, /, consumer: str, *, cursor: str | None = None, **options: Any
    ) -> Iterator[FeedPage]:
        """Yields pages from the newest, or from a cursor, to the oldest post."""
        while True:
            page = self.read(consumer, cursor=cursor, **options)
            yield page
            cursor = page.next
            if cursor is None:
                return

    def newer(self, /, consumer: str, cursor: str, **options: Any) -> Iterator[FeedPage]:
        """Yields pages of items newer than `cursor`, a page's `previous`, until there are no more
        now.

        To continue later, use the `previous` of the last page that had one.
        """
        while True:
            page = self.read(consumer, cursor=cursor, **options)
            if not page.items:
                return
            yield page
            if page.previous is None:
                return
            cursor = page.previous

    def items(self, /, consumer: str, **options: Any) -> Iterator[Item]:
        """Yields a whole feed, newest first, read lazily."""
        for page in self.older(consumer, **options):
            yield from page.items

    def follows(self, consumer: str) -> Iterator[Follow]:
        """Yields the producers that a consumer follows, with the side of each pair."""
        cursor: str | None = None
        while True:
            path = path_of("feeds", consumer, "follows")
            page = self._asked(path, FollowsPage, {"cursor": cursor})
            yield from page.follows
            cursor = page.next
            if cursor is None:
                return

    def live(self, consumer: str, *, cursor: str | None = None) -> Iterator[Live]:
        """Yields changes of a feed, from now on or from a page's `previous` on. Never ends.

        A broken connection is made again. What happened meanwhile is then reported: what is new,
        what was edited, and what still exists (`kept`). The same happens if a cursor is given.
        """
        query = {"cursor": cursor, "feeds": self._name}
        for event in listen(self._wire, path_of("feeds", consumer, "live"), query):
            if event.kind == "items":
                new = self._wire.decoded(event.data, LiveItems)
                yield Live(items=new.items, cursor=event.id or None)
            elif event.kind == "gone":
                posts = self._wire.decoded(event.data, GoneItems).items
                yield Live(gone=_positions(posts), cursor=event.id or None)
            elif event.kind == "kept":
                kept = self._wire.decoded(event.data, KeptItems)
                positions = _positions(kept.items)
                yield Live(kept=positions, since=kept.since, cursor=event.id or None)

    def network(self) -> dict[str, FeedNetwork]:
        """Returns, for all feeds by name: producers, consumers, pairs, how many are pushed and
        pulled, and the cost."""
        return self._wire.decoded(self._wire.ask("/feeds").content, FeedsAnswer).feeds

    # requests

    def _one(self, record: Record) -> FeedPostAnswer:
        """Sends one record. Raises ClientError if it is refused."""
        (line,) = encoded([record])
        taken = self._events(line, MANY, uuid4().hex)
        if isinstance(taken, PostRefused):
            raise ClientError(taken.refused[0].error, 422)
        return taken

    def _events(self, body: bytes, kind: str, key: str) -> FeedPostAnswer | PostRefused:
        headers = {"Content-Type": kind, "Idempotency-Key": key}
        response = self._wire.post(target("/feeds/events", {"feeds": self._name}), body, headers)
        return self._wire.posted(response, FeedPostAnswer)

    def _change(self, method: str, consumer: str, producer: str) -> None:
        path = path_of("feeds", consumer, "follows", producer)
        response = self._wire.change(method, target(path, {"feeds": self._name}))
        if response.status_code != 200:
            raise self._wire.refusal(response)

    def _asked(
        self,
        path: str,
        kind: type[T],
        query: Mapping[str, Any],
        headers: Mapping[str, str] | None = None,
    ) -> T:
        named_query = {**query, "feeds": self._name}
        return self._wire.decoded(self._wire.ask(path, named_query, headers).content, kind)


def _positions(posts: Iterable[ItemKey]) -> tuple[Position, ...]:
    return tuple(post.position for post in posts)
