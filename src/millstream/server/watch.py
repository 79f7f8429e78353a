"""GET /slates/{update}/{key}/watch: a slate, and every new value of it, as server-sent events.

One poller serves all watchers: when a batch has been committed it reads each watched slate once and
shows it to those who watch it. A watcher holds the newest value only; a slow one skips values, and
is never behind for longer than it takes to send one. The id of an event is the batch and a hash of
the value: whoever comes back with it is sent the slate only if it is another by then.
"""

from __future__ import annotations

import asyncio
from hashlib import blake2b
from typing import NamedTuple

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.server.answers import Refusal
from millstream.server.events import Poller, event, events_answer, last_event
from millstream.server.paths import Route, query
from millstream.server.service import Service
from millstream.server.slates import read_slate

GONE = "gone"

_text = msgspec.json.Encoder().encode


def routes(service: Service) -> list[Route]:
    watching = Watching(service)
    return [
        Route("GET", ("slates", "{update}", "watch"), watching.by_query),
        Route("GET", ("slates", "{update}", "{key}", "watch"), watching.by_path),
    ]


class Seen(NamedTuple):
    """A slate, as JSON, as of a batch; its hash is `GONE` if there is none."""

    batch: int
    hash: str
    ts: int
    json: bytes


class WatchFeed:
    """The values of one slate, for one client."""

    def __init__(self, watching: Watching, update: str, key: str, seen: Seen, got: str) -> None:
        self.wake = asyncio.Event()
        self.update = update
        self.key = key
        self.seen = seen
        """The newest."""
        self._watching = watching
        self._got = got
        """The hash of the one that the client has."""

    def show(self, seen: Seen) -> None:
        """The slate as of a new batch."""
        self.seen = seen
        if seen.hash != self._got:
            self.wake.set()

    def take(self) -> bytes:
        batch, hashed, ts, json = self.seen
        if hashed == self._got:
            return b""
        self._got = hashed
        identity, key = f"{batch}-{hashed}", _text(self.key)
        if hashed == GONE:
            return event("gone", identity, b'{"key":%b,"batch":%d}' % (key, batch))
        data = b'{"key":%b,"slate":%b,"ts":%d,"batch":%d,"age":%.3f}'
        return event("slate", identity, data % (key, json, ts, batch, self._watching.age()))


class Watching:
    """The slates that are watched, and by whom."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._poller: Poller[WatchFeed] = Poller(self._look, service.stopping)

    def age(self) -> float:
        """Seconds since the last batch was committed."""
        return self._service.age(self._service.store.progress())

    async def by_path(self, request: Request) -> Response:
        query(request, ())
        return await self._watch(request, request.path_params["key"])

    async def by_query(self, request: Request) -> Response:
        found = query(request, ("key",))
        if "key" not in found:
            raise Refusal(400, "say which slate to watch: /slates/{update}/watch?key=KEY")
        return await self._watch(request, found["key"])

    async def _watch(self, request: Request, key: str) -> Response:
        update = request.path_params["update"]
        got = (last_event(request) or "").rpartition("-")[2]
        feed = WatchFeed(self, update, key, await self._read(update, key), got)
        return events_answer(self._service, self._poller, feed)

    async def _look(self) -> None:
        batch = self._service.store.progress().batch
        read: dict[tuple[str, str], Seen] = {}
        for feed in list(self._poller.feeds):
            if feed.seen.batch != batch:
                address = feed.update, feed.key
                if address not in read:
                    try:
                        read[address] = await self._read(*address)
                    except Refusal:  # another store is there now, without this update
                        read[address] = Seen(batch, GONE, 0, b"")
                feed.show(read[address])

    async def _read(self, update: str, key: str) -> Seen:
        """The slate as it is now; Refusal if there is no such update."""
        progress, slate = await read_slate(self._service, update, key)
        if slate is None:
            return Seen(progress.batch, GONE, 0, b"")
        hashed = blake2b(slate.json, digest_size=8, salt=slate.ts.to_bytes(8, signed=True))
        return Seen(slate.batch, hashed.hexdigest(), slate.ts, slate.json)
