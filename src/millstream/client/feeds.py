"""Feeds over HTTP: follow, post, read.

    with Client() as client:
        client.feeds.follow("xena", "ann")
        client.feeds.post("ann", {"text": "hello"})
        for item in client.feeds.read("xena").items:
            print(item.producer, item.value)

What a call has done, the next read shows, whether the application has taken it in or not. Each call
may be retried and counts once, as all of the client's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar
from uuid import uuid4

import msgspec

from millstream.client.answers import FeedsTaken, Follows, Gone, GonePost, Kept, NewItems
from millstream.client.batches import batches, encoded
from millstream.client.feed_values import FeedPage, Follow, Item, Live, Position
from millstream.client.listening import listen
from millstream.client.values import Refused
from millstream.client.wire import Wire, path_of, target
from millstream.errors import ClientError

T = TypeVar("T")
Record = Mapping[str, Any]
MANY = "application/x-ndjson"


class FeedsSent(msgspec.Struct, frozen=True):
    """What became of the records of one call."""

    accepted: int = 0
    refused: tuple[Refused, ...] = ()
    refused_count: int = 0
    ids: tuple[str, ...] = ()
    """Of each accepted post the id, made if it had none."""


class Feeds:
    """The feeds of a server; of an application that has several, those of a `name`."""

    def __init__(self, wire: Wire, name: str | None = None) -> None:
        self._wire = wire
        self._name = name

    def named(self, name: str) -> Feeds:
        """The feeds of this name, of an application with several."""
        return Feeds(self._wire, name)

    # what producers do

    def post(self, producer: str, value: Any, *, id: str | None = None) -> str:
        """Post; returns the id, which is made if none is given.

        The same id again is the same post, and changes nothing.
        """
        record = {"kind": "post", "producer": producer, "value": value}
        ids = self._one(record if id is None else record | {"id": id}).ids
        found = id if id is not None else ids[0] if ids else None
        if found is None:
            raise self._wire.strange("it names no id for a post")
        return found

    def edit(self, producer: str, id: str, value: Any) -> None:
        """Change a post; its place in feeds stays."""
        self._one({"kind": "edit", "producer": producer, "id": id, "value": value})

    def delete(self, producer: str, id: str) -> None:
        """Take a post out of all feeds, for ever."""
        self._one({"kind": "delete", "producer": producer, "id": id})

    def aggregate(self, producer: str, sources: Iterable[str]) -> None:
        """Let a producer have the posts of others, in the place of those that it had before."""
        self._one({"kind": "aggregate", "producer": producer, "sources": list(sources)})

    # what consumers do

    def follow(self, consumer: str, producer: str) -> None:
        """Follow; ClientError with status 409 if the consumer has blocked the producer."""
        self._change("PUT", consumer, producer)

    def unfollow(self, consumer: str, producer: str) -> None:
        self._change("DELETE", consumer, producer)

    def block(self, consumer: str, producer: str) -> None:
        """See no post of a producer, and not follow it, until it is unblocked."""
        self._one({"kind": "block", "consumer": consumer, "producer": producer})

    def unblock(self, consumer: str, producer: str) -> None:
        """The producer may be followed again; it is not by this alone."""
        self._one({"kind": "unblock", "consumer": consumer, "producer": producer})

    def seen(self, consumer: str, upto: Item | Position) -> None:
        """The feed was read up to this post."""
        position = upto.position if isinstance(upto, Item) else upto
        self._one({"kind": "seen", "consumer": consumer, "upto": list(position)})

    def send(self, records: Iterable[Record], *, idempotency_key: str | None = None) -> FeedsSent:
        """Records of any kind, in batches of at most 500; see the server's POST /feeds/events."""
        base = uuid4().hex if idempotency_key is None else idempotency_key
        accepted, count, refused, ids = 0, 0, list[Refused](), list[str]()
        for number, batch in enumerate(batches(encoded(records))):
            if batch.lines:
                taken = self._events(batch.body, MANY, f"{base}-{number}")
                accepted, count = accepted + taken.accepted, count + taken.refused_count
                ids += taken.ids or ()
                refused += [
                    Refused(batch.numbers[one.line - 1], one.error, one.text)
                    for one in taken.refused or ()
                ]
            refused += batch.refused
            count += len(batch.refused)
        refused.sort(key=lambda one: one.line)
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
        """A page of a feed: the newest items, or those before or after a `cursor`.

        `coherency` is global or per-producer, with `k` items of each producer and `t`, as "7d", how
        old a post may be to be sure of a place. `unread` counts what was not seen, `why` says of
        each item why it was pushed or pulled. Without `view` this does not count as a look at the
        feed: how often a consumer looks decides what is pushed to it.
        """
        query = {
            "limit": limit,
            "cursor": cursor,
            "coherency": coherency,
            "k": k,
            "t": t,
            "why": 1 if why else None,
            "unread": 1 if unread else None,
            "view": None if view else 0,
        }
        return self._asked(path_of("feeds", consumer), FeedPage, query)

    def older(
        self, consumer: str, *, cursor: str | None = None, **options: Any
    ) -> Iterator[FeedPage]:
        """Pages from the newest, or from a cursor, to the first post that there is."""
        while True:
            page = self.read(consumer, cursor=cursor, **options)
            yield page
            cursor = page.next
            if cursor is None:
                return

    def newer(self, consumer: str, cursor: str, **options: Any) -> Iterator[FeedPage]:
        """Pages of what is newer than `cursor`, a page's `previous`, until there is no more now.

        The cursor to go on with later is the `previous` of the last page that had one.
        """
        while True:
            page = self.read(consumer, cursor=cursor, **options)
            if not page.items:
                return
            yield page
            if page.previous is None:
                return
            cursor = page.previous

    def items(self, consumer: str, **options: Any) -> Iterator[Item]:
        """A whole feed, newest first, read as it is taken."""
        for page in self.older(consumer, **options):
            yield from page.items

    def follows(self, consumer: str) -> Iterator[Follow]:
        """Whom a consumer follows, and on which side each pair is."""
        cursor: str | None = None
        while True:
            path = path_of("feeds", consumer, "follows")
            page = self._asked(path, Follows, {"cursor": cursor})
            yield from page.follows
            cursor = page.next
            if cursor is None:
                return

    def live(self, consumer: str, *, cursor: str | None = None) -> Iterator[Live]:
        """What comes into a feed, or goes, from now on or from a page's `previous` on. Never ends.

        A connection that breaks is made again, and what came meanwhile is told then: what is new,
        what was edited, and what is still there (`kept`). The same if a cursor is given.
        """
        query = {"cursor": cursor, "feeds": self._name}
        for event in listen(self._wire, path_of("feeds", consumer, "live"), query):
            if event.kind == "items":
                found = self._wire.decoded(event.data, NewItems)
                yield Live(items=found.items, cursor=event.id or None)
            elif event.kind == "gone":
                posts = self._wire.decoded(event.data, Gone).items
                yield Live(gone=_positions(posts), cursor=event.id or None)
            elif event.kind == "kept":
                kept = self._wire.decoded(event.data, Kept)
                there = _positions(kept.items)
                yield Live(kept=there, since=kept.since, cursor=event.id or None)

    def network(self) -> dict[str, Any]:
        """Of all feeds by name: producers, consumers, pairs, how many are pushed and pulled, what
        it costs."""
        found = self._wire.decoded(self._wire.ask("/feeds").content, dict[str, Any])
        feeds: dict[str, Any] = found["feeds"]
        return feeds

    # how it goes over the wire

    def _one(self, record: Record) -> FeedsTaken:
        """Send one record; ClientError if it is refused."""
        (line,) = encoded([record])
        taken = self._events(line, MANY, uuid4().hex)
        if taken.refused:
            raise ClientError(taken.refused[0].error, 422)
        return taken

    def _events(self, body: bytes, kind: str, key: str) -> FeedsTaken:
        headers = {"Content-Type": kind, "Idempotency-Key": key}
        response = self._wire.post(target("/feeds/events", {"feeds": self._name}), body, headers)
        if response.status_code not in (200, 422):
            raise self._wire.refusal(response)
        taken = self._wire.decoded(response.content, FeedsTaken)
        if taken.refused is None:
            raise self._wire.refusal(response)
        return taken

    def _change(self, method: str, consumer: str, producer: str) -> None:
        path = path_of("feeds", consumer, "follows", producer)
        response = self._wire.change(method, target(path, {"feeds": self._name}))
        if response.status_code != 200:
            raise self._wire.refusal(response)

    def _asked(self, path: str, kind: type[T], query: Mapping[str, Any]) -> T:
        asked = {**query, "feeds": self._name}
        return self._wire.decoded(self._wire.ask(path, asked).content, kind)


def _positions(posts: Iterable[GonePost]) -> tuple[Position, ...]:
    return tuple((one.ts, one.producer, one.id) for one in posts)
