"""Server-sent events: an answer that goes on for as long as its client listens.

A `Feed` is what one client listens to. It is pulled: what comes next is taken from it when the
client has taken what came before, so for a slow client nothing piles up here. A `Poller` looks for
news, twenty times a second and only while anybody listens, and wakes the feeds that have some.
When nothing was sent for a quarter of a minute a comment is, so that a client, or a proxy between,
can tell a quiet stream from a dead one.

At most `Service.event_streams` are open at a time; a client that takes nothing is cut off (see
connection.py); all streams end when the server stops. Whoever comes back names the last event that
it got, and misses nothing that is still there.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from starlette.requests import Request

from millstream.errors import MillstreamError
from millstream.server.answers import Refusal
from millstream.server.service import Service
from millstream.server.streamed import Streamed

logger = logging.getLogger("millstream.server")

BEAT_SECONDS = 15.0
LOOK_SECONDS = 0.05
BEAT = b": beat\n\n"
RETRY = b"retry: 1000\n\n"
"""How soon, in milliseconds, a client that lost the stream comes back."""


def event(name: str, identity: str | int, data: bytes) -> bytes:
    r"""One event; its data is JSON in one line.

    >>> event("slate", "7-ab", b'{"n":1}')
    b'event: slate\nid: 7-ab\ndata: {"n":1}\n\n'
    """
    # A carriage return would end the line. In JSON it can only be a blank between its parts.
    data = data.replace(b"\r", b" ")
    return b"event: %s\nid: %s\ndata: %s\n\n" % (name.encode(), str(identity).encode(), data)


class Feed(Protocol):
    """What one client listens to."""

    wake: asyncio.Event
    """Set when there may be something to take."""

    def take(self) -> bytes | None:
        """What to send next; nothing if there is none yet, None at the end of the feed."""
        ...


F = TypeVar("F", bound=Feed)


class Poller(Generic[F]):
    """Calls `look`, which wakes the feeds that have news, for as long as there are feeds."""

    def __init__(self, look: Callable[[], Awaitable[None]], stopping: asyncio.Event) -> None:
        self.feeds: set[F] = set()
        self.stopping = stopping
        self._look = look
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def heard(self, feed: F) -> Iterator[None]:
        """Somebody listens to the feed for as long as this lasts."""
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
                    pass  # it cannot be read just now: whoever asks is told why, this looks again
                except Exception:
                    logger.exception("looking for news failed")
                    pause = 20 * LOOK_SECONDS
                await asyncio.sleep(pause)
        finally:
            self._task = None
            for feed in self.feeds:
                feed.wake.set()


def events_answer(service: Service, poller: Poller[F], feed: F) -> Streamed:
    """The answer that sends a feed; Refusal if too many are listened to already.

    To be sent at once: it counts from then on.
    """
    if service.event_streams.full:
        raise Refusal(
            503,
            f"{service.event_streams.most} event streams are open, and no more may be; close one, "
            "or try again later",
            headers={"Retry-After": "5"},
        )
    return Streamed(
        pour(poller, feed),
        "text/event-stream",
        {"X-Accel-Buffering": "no"},
        service.event_streams.one(),
    )


def last_event(request: Request) -> str | None:
    """The id of the last event that a client got before it lost its stream."""
    found: str | None = request.headers.get("last-event-id")
    return found or None


async def pour(
    poller: Poller[F], feed: F, beat: float = BEAT_SECONDS
) -> AsyncGenerator[bytes, None]:
    """What is sent to a client, piece by piece, until the feed or the server ends."""
    with poller.heard(feed):
        yield RETRY
        while not poller.stopping.is_set():
            feed.wake.clear()
            data = feed.take()
            if data is None:
                return
            if data:
                yield data
                await asyncio.sleep(0)  # a fast client must not keep all others waiting
                continue
            try:
                async with asyncio.timeout(beat):
                    await feed.wake.wait()
            except TimeoutError:
                yield BEAT
