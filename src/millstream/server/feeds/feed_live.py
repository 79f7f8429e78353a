"""GET /feeds/{consumer}/live: additions to a feed and removals from it, as server-sent events.

    items   {"items": [...], "batch": n, "complete": true}   new items, newest first; edited items
    gone    {"items": [{"id", "producer", "ts"}, ...]}       deleted, or no longer followed
    kept    {"items": [{"id", "producer", "ts"}, ...], "since": ts}

The id of an event is a cursor. A client that reconnects with it gets newer items, edited items, and
`kept`, which names all items at or after the time `since` that are still in the feed. Any other
item of that time that the client has was deleted meanwhile, or is no longer followed. Items come in
the order of their times, whatever the coherency of the page that shows them. Edited, gone and kept
cover the newest `WINDOW` items.

DESIGN
------
Everything that changes a feed immediately is a record in the log. So the new records of the log
tell which feeds to read: those whose consumer follows the producer of a record, or whose consumer
sent one. Aggregated producers change only through the application. So a feed that no record has
touched is read after batches were committed, at most every `SURELY` seconds. Reading takes at most
a fifth of the time, however many clients listen. A client that is slow to read delays only its own
next read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.errors import CursorConflict, InputError, MillstreamError
from millstream.feeds.names import Position
from millstream.feeds.reads.answers import read_coherency, read_flag, shown
from millstream.feeds.reads.cursor import Cursor
from millstream.feeds.reads.pending_records import Pending
from millstream.feeds.reads.query import FeedQuery
from millstream.feeds.reads.tables import Tables
from millstream.feeds.records import PostRecord, ProducerRecord, Record
from millstream.messages.feeds import GoneItems, Item, ItemKey, KeptItems, LiveItems
from millstream.server.feeds.feed_networks import Networks, ServedFeeds, name_in, refused_request
from millstream.server.http.answers import Refusal
from millstream.server.http.paths import Route, query
from millstream.server.http.server_sent_events import Poller, event, events_answer, last_event
from millstream.server.service import Service

WINDOW = 200
CHUNK = 100
"""The most items of one event."""
SURELY = 2.0
REST = 4.0
"""The pause after a round of reads, as a multiple of the time that the round took."""
NOTHING_SEEN: Position = (0, "", "")

_encode = msgspec.json.Encoder().encode


Known = dict[Position, int | None]
"""The newest items that a client has, newest first, with the time of each item's last edit."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes of a feed since the last read."""

    items: tuple[Item, ...]
    gone: list[Position]
    position: Position
    """The position up to which the client has everything."""
    known: Known
    since: int
    """The time since which `known` has all items."""
    producers: frozenset[str] | None
    """The followed producers; None if they are unchanged."""
    more: bool
    left_out: int


def changes(
    asked: FeedQuery, position: Position, known: Known, *, all_of_it: bool, why: bool
) -> Changes:
    """Finds the changes of a feed for a client that has all items up to a position.

    `known` are the newest items that it has. `all_of_it`: older items may have changed too.
    """
    page = asked.newer(position, CHUNK)
    fresh = known_items(page.items)
    upto = page.items[0].position if page.items else position
    if not all_of_it:
        known = dict(islice((fresh | known).items(), WINDOW))
        items = shown(asked, page.items, why=why)
        return Changes(items, [], upto, known, 0, None, page.more, asked.left_out)
    window = asked.older(None, WINDOW).items
    low = window[-1].position if len(window) == WINDOW else NOTHING_SEEN
    now = [item for item in window if item.position <= position]
    others = [item for item in now if known.get(item.position, -1) != item.edited]
    there = known_items(now)
    return Changes(
        shown(asked, [*page.items, *others], why=why),
        [at for at in known if at >= low and at not in there],
        upto,
        dict(islice((fresh | there).items(), WINDOW)),
        low[0],
        frozenset(asked.follows()),
        page.more,
        asked.left_out,
    )


def known_items(items: Iterable[Item]) -> Known:
    return {item.position: item.edited for item in items}


class LiveFeed:
    """The feed of one consumer, for one client."""

    def __init__(self, network: ServedFeeds, consumer: str, why: bool) -> None:
        self.wake = asyncio.Event()
        self.network, self.consumer, self.why = network, consumer, why
        self.position = NOTHING_SEEN
        self.known: Known = {}
        self.is_back = False
        """True if the client has reconnected, and must be told what it has missed."""
        self.producers: frozenset[str] = frozenset()
        self.touched = self.changed = True
        """True if there may be new items, and if older items may have changed."""
        self.read_at = 0.0
        self.batch = -1
        self._data = b""
        self._ended = False

    @property
    def is_waiting(self) -> bool:
        """True if the client has not taken the last piece yet."""
        return bool(self._data)

    def hear(self, posted: set[str], changed: set[str], consumers: set[str]) -> None:
        """Notes new records: posts of producers, other records of producers, and of consumers."""
        if not self.producers.isdisjoint(posted):
            self.touched = True
        if self.consumer in consumers or not self.producers.isdisjoint(changed):
            self.touched = self.changed = True

    def show(self, changes: Changes, batch: int, complete: bool) -> None:
        self.position, self.known, self.batch = changes.position, changes.known, batch
        if changes.producers is not None:
            self.producers = changes.producers
        self.touched = self.touched or changes.more
        at = Cursor("newer", changes.position).text()
        if changes.items:
            self._data += event("items", at, _encode(LiveItems(changes.items, batch, complete)))
        if changes.gone:
            self._data += event("gone", at, _encode(GoneItems(_named(changes.gone))))
        if self.is_back and changes.producers is not None:
            self.is_back = False
            kept = KeptItems(_named(changes.known), changes.since)
            self._data += event("kept", at, _encode(kept))
        if self._data:
            self.wake.set()

    def end(self) -> None:
        self._ended = True
        self.wake.set()

    def take(self) -> bytes | None:
        data, self._data = self._data, b""
        return None if self._ended and not data else data


class FeedLive:
    """The feeds that clients listen to."""

    def __init__(self, service: Service, networks: Networks) -> None:
        self._service, self._networks = service, networks
        self._poller: Poller[LiveFeed] = Poller(self._look, service.stopping)
        self._heard: set[ServedFeeds] = set()
        """The networks whose log has us among its listeners."""
        self._due = 0.0

    def routes(self) -> list[Route]:
        return [Route("GET", ("feeds", "{consumer}", "live"), self._live)]

    async def _live(self, request: Request) -> Response:
        parameters = query(request, ("cursor", "coherency", "why", "feeds"))
        network = self._networks.named(parameters.get("feeds"))
        consumer = name_in(request.path_params, "consumer")
        begin = None
        try:
            read_coherency(parameters, "global")  # it has no effect here
            feed = LiveFeed(network, consumer, read_flag(parameters, "why"))
            for cursor in (parameters.get("cursor"), last_event(request)):
                begin = begin if cursor is None else _position(cursor)
        except InputError as error:
            raise refused_request(error) from None
        if network not in self._heard:
            self._heard.add(network)
            network.log.listeners.append(lambda records: self._hear(network, records))

        def first(tables: Tables, pending: Pending) -> tuple[Position, Known]:
            items = FeedQuery(network.placed, tables, consumer, pending).older(None, WINDOW).items
            newest = items[0].position if items else NOTHING_SEEN
            at = newest if begin is None else begin
            known = known_items(item for item in items if item.position <= at)
            if begin is not None:  # the client may lack edits made after its newest post
                known = {
                    item_position: None if (edited or 0) > at[0] else edited
                    for item_position, edited in known.items()
                }
            return at, known

        feed.position, feed.known = (await network.read(consumer, first)).value
        feed.is_back = begin is not None
        return events_answer(self._service, self._poller, feed)

    def _hear(self, network: ServedFeeds, records: list[Record]) -> None:
        consumers, posted, changed = set[str](), set[str](), set[str]()
        for record in records:
            if isinstance(record, ProducerRecord):
                (posted if isinstance(record, PostRecord) else changed).add(record.producer)
            else:
                consumers.add(record.consumer)
        for feed in self._poller.feeds:
            if feed.network is network:
                feed.hear(posted, changed, consumers)

    async def _look(self) -> None:
        started = time.monotonic()
        if started < self._due:
            return
        feeds = list(self._poller.feeds)
        current = self._networks.all()
        for network in {feed.network for feed in feeds}:
            if current.get(network.name) is network:
                await network.log.now()  # calls `_hear` with new records
        batch = self._service.store.progress().batch
        for feed in feeds:
            if current.get(feed.network.name) is not feed.network:
                feed.end()  # the feeds were replaced: their clients must reconnect
                continue
            surely = feed.batch != batch and started - feed.read_at >= SURELY
            feed.changed = feed.changed or surely
            if (feed.touched or feed.changed) and not feed.is_waiting:
                feed.read_at = started
                await self._read(feed)
                await asyncio.sleep(0)  # other requests are served between two reads
        now = time.monotonic()
        self._due = now + REST * (now - started)

    async def _read(self, feed: LiveFeed) -> None:
        placed = feed.network.placed

        all_of_it, feed.touched, feed.changed = feed.changed, False, False

        def make(tables: Tables, pending: Pending) -> Changes:
            feed_query = FeedQuery(placed, tables, feed.consumer, pending)
            return changes(feed_query, feed.position, feed.known, all_of_it=all_of_it, why=feed.why)

        try:
            read = await feed.network.read(feed.consumer, make)
        except (MillstreamError, Refusal, OSError):
            feed.touched = feed.changed = True  # retried later; a GET of the feed gets the error
            return
        complete = read.trouble is None and not read.value.left_out
        feed.show(read.value, read.progress.batch, complete)


def _named(posts: Iterable[Position]) -> list[ItemKey]:
    return [ItemKey(post, by, ts) for ts, by, post in posts]


def _position(given: str) -> Position:
    """Returns the position of a cursor; raises InputError if it does not lead to newer items."""
    cursor = Cursor.read(given)
    if cursor.direction != "newer":
        raise CursorConflict("cursor must be the 'previous' of a page, which leads to newer items")
    return cursor.position
