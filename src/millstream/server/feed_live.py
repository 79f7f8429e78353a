"""GET /feeds/{consumer}/live: what comes into a feed, and what goes, as server-sent events.

    items   {"items": [...], "batch": n, "complete": true}   new ones, newest first, and edited ones
    gone    {"items": [{"id", "producer", "ts"}, ...]}       deleted, or followed no more
    kept    {"items": [{"id", "producer", "ts"}, ...], "since": ts}

The id of an event is a cursor. Whoever comes back with it gets what is newer, what was edited, and
`kept`, which names what is still there from a time on: whatever else a client has of that time was
deleted meanwhile, or is followed no more. Items come in the order of their times, whatever
coherency the page has that they are added to. Edited, gone and kept are of the newest `WINDOW`
items.

DESIGN
------
All that changes a feed at once is a record in the log. So one look at what came into the log says
which feeds to read: those whose consumer follows the producer, or did something itself. Sources of
aggregated producers work through the application first: of feeds that no record has touched, each
is read when batches were committed, no more often than every `SURELY` seconds. Reading takes a
fifth of the time at most, however many listen. What one client did not take yet holds back only its
own next read.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.errors import InputError, MillstreamError
from millstream.feeds.answers import shown
from millstream.feeds.cursor import Cursor
from millstream.feeds.items import Item
from millstream.feeds.names import Position
from millstream.feeds.pending import Pending
from millstream.feeds.query import FeedQuery
from millstream.feeds.records import OF_CONSUMER
from millstream.feeds.tables import Tables
from millstream.server.answers import Refusal
from millstream.server.events import Poller, event, events_answer, last_event
from millstream.server.feed_log import Record
from millstream.server.feed_networks import Network, Networks, name_in
from millstream.server.paths import Route, query, whole_number
from millstream.server.service import Service

WINDOW = 200
CHUNK = 100
"""Items of one event."""
SURELY = 2.0
REST = 4.0
"""Times as long as a round of reads took, nothing is read after it."""
NOTHING_SEEN: Position = (0, "", "")

_encode = msgspec.json.Encoder().encode


Known = dict[Position, int | None]
"""The newest items that a client has, newest first, and when each was edited last."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What a read has found."""

    items: list[dict[str, Any]]
    gone: list[Position]
    position: Position
    """Up to where all was told."""
    known: Known
    since: int
    """The time from which on `known` has all items."""
    producers: frozenset[str] | None
    """That are followed; None if they are the same."""
    more: bool
    left_out: int


def changes(
    asked: FeedQuery, position: Position, known: Known, *, all_of_it: bool, why: bool
) -> Changes:
    """What is new in a feed for whoever has all up to a position, and knows these items.

    `all_of_it` if older items may have changed too.
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

    def __init__(self, network: Network, consumer: str, why: bool) -> None:
        self.wake = asyncio.Event()
        self.network, self.consumer, self.why = network, consumer, why
        self.position = NOTHING_SEEN
        self.known: Known = {}
        self.is_back = False
        """Whether the client was here before, and has to be told what it has missed."""
        self.producers: frozenset[str] = frozenset()
        self.touched = self.changed = True
        """Whether there may be something new, and whether older items may have changed."""
        self.read_at = 0.0
        self.batch = -1
        self._data = b""
        self._ended = False

    @property
    def is_waiting(self) -> bool:
        """Whether the client has not taken the last piece yet."""
        return bool(self._data)

    def hear(self, posted: set[str], changed: set[str], consumers: set[str]) -> None:
        """Records of these producers, new posts and others, and of these consumers came."""
        if not self.producers.isdisjoint(posted):
            self.touched = True
        if self.consumer in consumers or not self.producers.isdisjoint(changed):
            self.touched = self.changed = True

    def show(self, found: Changes, batch: int, complete: bool) -> None:
        self.position, self.known, self.batch = found.position, found.known, batch
        if found.producers is not None:
            self.producers = found.producers
        self.touched = self.touched or found.more
        at = Cursor("newer", found.position).text()
        if found.items:
            said = {"items": found.items, "batch": batch, "complete": complete}
            self._data += event("items", at, _encode(said))
        if found.gone:
            self._data += event("gone", at, _encode({"items": _named(found.gone)}))
        if self.is_back and found.producers is not None:
            self.is_back = False
            kept = {"items": _named(found.known), "since": found.since}
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
    """The feeds that are listened to, and by whom."""

    def __init__(self, service: Service, networks: Networks) -> None:
        self._service, self._networks = service, networks
        self._poller: Poller[LiveFeed] = Poller(self._look, service.stopping)
        self._heard: set[Network] = set()
        """Those whose log tells us what comes."""
        self._due = 0.0

    def routes(self) -> list[Route]:
        return [Route("GET", ("feeds", "{consumer}", "live"), self._live)]

    async def _live(self, request: Request) -> Response:
        found = query(request, ("cursor", "coherency", "why", "feeds"))
        network = self._networks.named(found.get("feeds"))
        consumer = name_in(request.path_params, "consumer")
        feed = LiveFeed(network, consumer, whole_number(found, "why", 0, 0, 1) == 1)
        given = last_event(request) or found.get("cursor")
        begin = None if given is None else _position(given)
        if network not in self._heard:
            self._heard.add(network)
            network.log.listeners.append(lambda records: self._hear(network, records))

        def first(tables: Tables, pending: Pending) -> tuple[Position, Known]:
            items = FeedQuery(network.placed, tables, consumer, pending).older(None, WINDOW).items
            newest = items[0].position if items else NOTHING_SEEN
            at = newest if begin is None else begin
            known = known_items(item for item in items if item.position <= at)
            if begin is not None:  # what was edited after the newest post may not be known
                known = {
                    one: None if (edited or 0) > at[0] else edited for one, edited in known.items()
                }
            return at, known

        feed.position, feed.known = (await network.read(consumer, first)).value
        feed.is_back = begin is not None
        return events_answer(self._service, self._poller, feed)

    def _hear(self, network: Network, records: list[Record]) -> None:
        consumers, posted, changed = set[str](), set[str](), set[str]()
        for one in records:
            if one["kind"] in OF_CONSUMER:
                consumers.add(one["consumer"])
            else:
                (posted if one["kind"] == "post" else changed).add(one["producer"])
        for feed in self._poller.feeds:
            if feed.network is network:
                feed.hear(posted, changed, consumers)

    async def _look(self) -> None:
        begun = time.monotonic()
        if begun < self._due:
            return
        feeds = list(self._poller.feeds)
        current = self._networks.all()
        for network in {feed.network for feed in feeds}:
            if current.get(network.name) is network:
                await network.log.now()  # which tells us what came
        batch = self._service.store.progress().batch
        for feed in feeds:
            if current.get(feed.network.name) is not feed.network:
                feed.end()  # other feeds are there now: who listens has to begin anew
                continue
            surely = feed.batch != batch and begun - feed.read_at >= SURELY
            feed.changed = feed.changed or surely
            if (feed.touched or feed.changed) and not feed.is_waiting:
                feed.read_at = begun
                await self._read(feed)
                await asyncio.sleep(0)  # others are served between two
        now = time.monotonic()
        self._due = now + REST * (now - begun)

    async def _read(self, feed: LiveFeed) -> None:
        placed = feed.network.placed

        all_of_it, feed.touched, feed.changed = feed.changed, False, False

        def make(tables: Tables, pending: Pending) -> Changes:
            asked = FeedQuery(placed, tables, feed.consumer, pending)
            return changes(asked, feed.position, feed.known, all_of_it=all_of_it, why=feed.why)

        try:
            read = await feed.network.read(feed.consumer, make)
        except (MillstreamError, Refusal, OSError):
            feed.touched = feed.changed = True  # not just now: whoever asks is told why
            return
        complete = read.trouble is None and not read.value.left_out
        feed.show(read.value, read.progress.batch, complete)


def _named(posts: Iterable[Position]) -> list[dict[str, Any]]:
    return [{"id": post, "producer": by, "ts": ts} for ts, by, post in posts]


def _position(given: str) -> Position:
    """Where a cursor stands; Refusal if it leads to no newer items."""
    try:
        cursor = Cursor.read(given)
    except InputError as error:
        raise Refusal(400, str(error)) from None
    if cursor.direction != "newer":
        raise Refusal(400, "cursor must be the 'previous' of a page, which leads to newer items")
    return cursor.position
