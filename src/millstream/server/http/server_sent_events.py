"""Server-sent events: an answer that lasts as long as its client listens.

A `Feed` is what one client listens to. It is pulled: the next piece is taken from it when the
client has read the previous one, so nothing accumulates for a slow client. A `Poller` looks for
news twenty times a second, only while there are listeners, and wakes the feeds that have some. If
nothing was sent for 15 seconds, a comment is sent, so that a client or a proxy can tell a quiet
stream from a dead one.

At most `Service.event_streams` are open at a time. A client that does not read is cut off (see
connection.py). All streams end when the server stops. A client that reconnects names the last event
that it got, and misses nothing that is still there.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from starlette.requests import Request

from millstream.errors import MillstreamError
from millstream.server.http.answers import Refusal
from millstream.server.http.connection import unread
from millstream.server.http.streamed import Streamed
from millstream.server.service import Service

logger = logging.getLogger("millstream.server")

BEAT_SECONDS = 15.0
LOOK_SECONDS = 0.05
BEAT = b": beat\n\n"
RETRY = b"retry: 1000\n\n"
"""Tells clients to reconnect one second after they lose the stream."""


def event(name: str, identity: str | int, data: bytes) -> bytes:
    r"""Encodes one event; its data is JSON in one line.

    >>> event("slate", "7-ab", b'{"n":1}')
    b'event: slate\nid: 7-ab\ndata: {"n":1}\n\n'
    """
    # A carriage return would end the line. In JSON it can only be white space between tokens.
    data = data.replace(b"\r", b" ")
    return b"event: %s\nid: %s\ndata: %s\n\n" % (name.encode(), str(identity).encode(), data)


class Feed(Protocol):
    """The source of the events that one client listens to."""

    wake: asyncio.Event
    """Set when there may be something to take."""

    def take(self) -> bytes | None:
        """Returns the next piece to send; empty if there is none yet, None at the feed's end."""
        ...


F = TypeVar("F", bound=Feed)


class Poller(Generic[F]):
    """Calls `look`, which wakes the feeds that have news, as long as there are feeds."""

    def __init__(self, look: Callable[[], Awaitable[None]], stopping: asyncio.Event) -> None:
        self.feeds: set[F] = set()
        self.stopping = stopping
        self._look = look
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def heard(self, feed: F) -> Iterator[None]:
        """Registers the feed inside the `with` block; its client is listening."""
        self.feeds.add(feed)
        if self._task is None:
            self._task = asyncio.ensure_future(self._run())
        try:
            yield
        finally:
            self.feeds.discard(feed)

    async def _run(self) -> None:
        try:
            while self.feeds and not self.stopping.is_set():
                pause = LOOK_SECONDS
                try:
                    await self._look()
                except (MillstreamError, Refusal, OSError):
                    pass  # not readable now: try again; a new request gets the error
                except Exception:
                    logger.exception("looking for news failed")
                    pause = 20 * LOOK_SECONDS
                await asyncio.sleep(pause)
        finally:
            self._task = None
            for feed in self.feeds:
                feed.wake.set()


def events_answer(service: Service, poller: Poller[F], feed: F) -> Streamed:
    """Returns the answer that sends a feed; raises Refusal if too many streams are open.

    Send it at once: the stream counts as open only from then on.
    """
    if service.event_streams.full:
        raise Refusal(
            503,
            f"{service.event_streams.most} event streams are open, the most at a time; close one, "
            "or try again later",
            headers={"Retry-After": "5"},
        )
    return Streamed(
        pour(poller, feed, longest=service.options.stream_seconds),
        "text/event-stream",
        {"X-Accel-Buffering": "no"},
        service.event_streams.one(),
    )


def last_event(request: Request) -> str | None:
    """Returns the id of the last event that a client got before it lost its stream."""
    identity: str | None = request.headers.get("last-event-id")
    return identity or None


async def pour(
    poller: Poller[F], feed: F, beat: float = BEAT_SECONDS, longest: float | None = None
) -> AsyncGenerator[bytes, None]:
    """Yields the pieces to send to a client, until the feed, its time or the server ends."""
    end = None if longest is None else time.monotonic() + longest
    with poller.heard(feed):
        yield RETRY
        while not poller.stopping.is_set() and (end is None or time.monotonic() < end):
            feed.wake.clear()
            while not unread.has_room(time.monotonic()):
                await asyncio.sleep(LOOK_SECONDS)
            data = feed.take()
            if data is None:
                return
            if data:
                pieces = [data]
                del data  # do not hold it while the client reads
                yield pieces.pop()
                await asyncio.sleep(0)  # a fast client must not keep all others waiting
                continue
            try:
                async with asyncio.timeout(beat if longest is None else min(beat, longest)):
                    await feed.wake.wait()
            except TimeoutError:
                yield BEAT
