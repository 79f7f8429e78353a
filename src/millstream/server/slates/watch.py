"""GET /slates/{update}/{key}/watch: a slate, and every new value of it, as server-sent events.

One poller serves all watchers: after each committed batch it reads each watched slate once and
passes it to its watchers. A watcher holds only the newest value, until it is sent, and watchers of
one slate share it; a slow client skips values, and is never behind for longer than it takes to send
one. The id of an event is the batch and a hash of the value: a client that reconnects with it gets
the slate only if it has changed.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass
from hashlib import blake2b
from weakref import WeakValueDictionary

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.errors import MillstreamError
from millstream.messages.slates import SlateEvent, SlateGone
from millstream.server.http.answers import Refusal
from millstream.server.http.paths import Route, query, segment
from millstream.server.http.server_sent_events import Poller, event, events_answer, last_event
from millstream.server.service import Service
from millstream.server.slates.slate_routes import read_slate

GONE = "gone"
_IDENTITY = re.compile(r"([0-9]{1,18})-([0-9a-z]+)")
"""The id of an event: its batch and the hash of its slate."""

_encode = msgspec.json.Encoder().encode


def routes(service: Service) -> list[Route]:
    watching = Watching(service)
    return [
        Route("GET", ("slates", "{update}", "watch"), watching.by_query),
        Route("GET", ("slates", "{update}", "{key}", "watch"), watching.by_path),
    ]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class Seen:
    """A slate as JSON, as of a batch; its hash is `GONE` if there is none."""

    batch: int
    hash: str
    ts: int
    json: bytes


class WatchFeed:
    """The values of one slate, for one client."""

    def __init__(
        self, watching: Watching, update: str, key: str, seen: Seen, got: str, since: int = -1
    ) -> None:
        self.wake = asyncio.Event()
        self.update = update
        self.key = key
        self.batch = seen.batch
        """The batch of the newest value."""
        self._watching = watching
        self._unsent: Seen | None = None
        """The newest value, if the client does not have it."""
        self._got = got
        """The hash of the value that the client has."""
        self._since = since
        """The batch of that value, if this server may be behind it: nothing older is sent."""
        self.show(seen)

    def show(self, seen: Seen) -> None:
        """Takes the slate as of a new batch."""
        self.batch = seen.batch
        self._unsent = seen if seen.hash != self._got and seen.batch >= self._since else None
        if self._unsent:
            self.wake.set()

    def take(self) -> bytes:
        seen, self._unsent = self._unsent, None
        if seen is None:
            return b""
        self._got = seen.hash
        identity = f"{seen.batch}-{seen.hash}"
        if seen.hash == GONE:
            return event("gone", identity, _encode(SlateGone(self.key, seen.batch)))
        age = round(self._watching.age(), 3)
        change = SlateEvent(self.key, msgspec.Raw(seen.json), seen.ts, seen.batch, age)
        return event("slate", identity, _encode(change))


class Watching:
    """The watched slates, and their watchers."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._poller: Poller[WatchFeed] = Poller(self._look, service.stopping)
        self._held: WeakValueDictionary[tuple[str, str], Seen] = WeakValueDictionary()
        """The newest value of each slate that some watcher has not been sent."""

    def age(self) -> float:
        """Returns the seconds since the last batch was committed."""
        return self._service.age(self._service.store.progress())

    async def by_path(self, request: Request) -> Response:
        query(request, ())
        return await self._watch(request, segment(request, "key"))

    async def by_query(self, request: Request) -> Response:
        parameters = query(request, ("key",))
        if "key" not in parameters:
            raise Refusal(400, "say which slate to watch: /slates/{update}/watch?key=KEY")
        return await self._watch(request, parameters["key"])

    async def _watch(self, request: Request, key: str) -> Response:
        update = segment(request, "update")
        got, since = "", -1
        if named := _IDENTITY.fullmatch(last_event(request) or ""):
            got = named[2]
            if self._service.store.mirror() is not None:
                since = int(named[1])  # it may be behind the server that the client used before
        feed = WatchFeed(self, update, key, await self._read(update, key), got, since)
        return events_answer(self._service, self._poller, feed)

    async def _look(self) -> None:
        batch = self._service.store.progress().batch
        read: dict[tuple[str, str], Seen] = {}
        for feed in list(self._poller.feeds):
            if feed.batch != batch:
                address = feed.update, feed.key
                if address not in read:
                    try:
                        read[address] = await self._read(*address)
                    except Refusal:  # the store was replaced, and has no such update
                        read[address] = Seen(batch, GONE, 0, b"")
                    except MillstreamError:
                        continue  # try again; other slates may be readable
                feed.show(read[address])

    async def _read(self, update: str, key: str) -> Seen:
        """Reads the current slate; raises Refusal if there is no such update."""
        progress, slate = await read_slate(self._service, update, key)
        if slate is None:
            return Seen(progress.batch, GONE, 0, b"")
        hashed = blake2b(
            slate.json, digest_size=8, salt=slate.ts.to_bytes(8, signed=True)
        ).hexdigest()
        held = self._held.get((update, key))
        if held is None or (held.batch, held.hash) != (slate.batch, hashed):
            held = self._held[update, key] = Seen(slate.batch, hashed, slate.ts, slate.json)
        return held
