"""The client for asyncio: the same calls, awaited.

        async with AsyncClient() as client:
            await client.send("checkins", [{"user": "ann", "venue": "Walmart"}])
            async for slate in client.watch("count", "Walmart"):
                print(slate)

Each call runs the same call of `Client` in a thread, so retries, idempotency keys and errors share
one implementation. Calls share `CALLS` threads. Every iterator has its own thread and connection,
and reads at most `AHEAD` items ahead. The thread of an abandoned iterator ends at the next byte
from the server, which sends a heartbeat every 15 seconds. Close an iterator with
`contextlib.aclosing` if you leave it early.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any, Literal, ParamSpec, TypeVar

from millstream.client.client import DEFAULT_URL, Client
from millstream.client.feed_values import FeedsSent, Live
from millstream.client.values import Gap, Record, Sent, Slate
from millstream.messages.feeds import FeedNetwork, FeedPage, Follow, Item, Position
from millstream.messages.letters import LetterKind, Retried
from millstream.messages.status import Status
from millstream.messages.streams import StreamRow

P = ParamSpec("P")
T = TypeVar("T")
CALLS = 16
"""The number of calls of one client that run at the same time. Others wait for one to end."""
AHEAD = 256
"""The number of items of an iterator that are read ahead."""


class AsyncClient:
    """A Millstream server. Arguments and calls are those of `Client`. Belongs to one event loop."""

    def __init__(
        self,
        url: str | Sequence[str] = DEFAULT_URL,
        *,
        token: str | None = None,
        timeout: float = 10.0,
        retries: int | None = 8,
    ) -> None:
        self._connect: Callable[[], Client] = partial(
            Client, url, token=token, timeout=timeout, retries=retries
        )
        self._client = self._connect()
        self._threads = ThreadPoolExecutor(CALLS, thread_name_prefix="millstream-client")
        self.feeds = AsyncFeeds(self)
        """Follow, post and read feeds, if the application has them."""

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Waits for running calls, and closes the connections."""
        await asyncio.to_thread(self._threads.shutdown)
        self._client.close()

    @property
    def url(self) -> str:
        """The address of the current server."""
        return self._client.url

    async def send(
        self, stream: str, events: Iterable[Any], *, idempotency_key: str | None = None
    ) -> Sent:
        """See `Client.send`. `events` is iterated in another thread."""
        return await self._call(self._client.send, stream, events, idempotency_key=idempotency_key)

    async def send_lines(
        self,
        stream: str,
        lines: Iterable[bytes | str | None],
        *,
        idempotency_key: str | None = None,
    ) -> Sent:
        """See `Client.send_lines`."""
        return await self._call(
            self._client.send_lines, stream, lines, idempotency_key=idempotency_key
        )

    async def send_one(
        self, stream: str, event: Any, *, idempotency_key: str | None = None
    ) -> None:
        """See `Client.send_one`."""
        await self._call(self._client.send_one, stream, event, idempotency_key=idempotency_key)

    async def retry(
        self,
        *,
        kind: LetterKind = "deadletters",
        function: str | None = None,
        stream: str | None = None,
        error: str | None = None,
        key: str | None = None,
        since: int | None = None,
        until: int | None = None,
        limit: int | None = None,
        dry_run: bool = False,
    ) -> Retried:
        """See `Client.retry`."""
        return await self._call(
            self._client.retry,
            kind=kind,
            function=function,
            stream=stream,
            error=error,
            key=key,
            since=since,
            until=until,
            limit=limit,
            dry_run=dry_run,
        )

    async def retry_action(self, action: str, *, dry_run: bool = False) -> int:
        """See `Client.retry_action`."""
        return await self._call(self._client.retry_action, action, dry_run=dry_run)

    async def get(self, update: str, key: str) -> Slate | None:
        """The slate of a key as of the last committed batch, or None."""
        return await self._call(self._client.get, update, key)

    def scan(
        self, update: str, *, prefix: str = "", after: str | None = None, limit: int | None = None
    ) -> AsyncIterator[Slate]:
        """See `Client.scan`."""
        return self._each(
            lambda client: client.scan(update, prefix=prefix, after=after, limit=limit)
        )

    def dump(self, update: str) -> AsyncIterator[Slate]:
        """See `Client.dump`."""
        return self._each(lambda client: client.dump(update))

    def watch(self, update: str, key: str) -> AsyncIterator[Slate | None]:
        """See `Client.watch`."""
        return self._each(lambda client: client.watch(update, key))

    def tail(
        self, stream: str, *, start: int | Literal["end", "start"] = "end", limit: int | None = None
    ) -> AsyncIterator[Record | Gap]:
        """See `Client.tail`. `start="end"` refers to the time when the first item is requested."""
        return self._each(lambda client: client.tail(stream, start=start, limit=limit))

    async def status(self) -> Status:
        """See `Client.status`."""
        return await self._call(self._client.status)

    async def streams(self) -> list[StreamRow]:
        """See `Client.streams`."""
        return await self._call(self._client.streams)

    async def graph(self) -> dict[str, Any]:
        """See `Client.graph`."""
        return await self._call(self._client.graph)

    async def _call(self, call: Callable[P, T], *args: P.args, **options: P.kwargs) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: call(*args, **options))

    def _each(self, iterate: Callable[[Client], Iterator[T]]) -> AsyncIterator[T]:
        return _iterated(self._connect, iterate)


class AsyncFeeds:
    """The feeds of a server, for asyncio. Calls are those of `Client.feeds`."""

    def __init__(self, client: AsyncClient, name: str | None = None) -> None:
        self._asking = client
        self._name = name

    def named(self, name: str) -> AsyncFeeds:
        """Returns the feeds with this name, for an application with several."""
        return AsyncFeeds(self._asking, name)

    async def post(self, producer: str, value: Any, *, id: str | None = None) -> str:
        return await self._call(self._feeds.post, producer, value, id=id)

    async def edit(self, producer: str, id: str, value: Any) -> None:
        await self._call(self._feeds.edit, producer, id, value)

    async def delete(self, producer: str, id: str) -> None:
        await self._call(self._feeds.delete, producer, id)

    async def aggregate(self, producer: str, sources: Iterable[str]) -> None:
        await self._call(self._feeds.aggregate, producer, sources)

    async def follow(self, consumer: str, producer: str) -> None:
        await self._call(self._feeds.follow, consumer, producer)

    async def unfollow(self, consumer: str, producer: str) -> None:
        await self._call(self._feeds.unfollow, consumer, producer)

    async def block(self, consumer: str, producer: str) -> None:
        await self._call(self._feeds.block, consumer, producer)

    async def unblock(self, consumer: str, producer: str) -> None:
        await self._call(self._feeds.unblock, consumer, producer)

    async def seen(self, consumer: str, upto: Item | Position) -> None:
        await self._call(self._feeds.seen, consumer, upto)

    async def send(
        self, records: Iterable[Mapping[str, Any]], *, idempotency_key: str | None = None
    ) -> FeedsSent:
        return await self._call(self._feeds.send, records, idempotency_key=idempotency_key)

    async def read(self, consumer: str, **options: Any) -> FeedPage:
        """Returns a page of a feed. Options are those of `Feeds.read`."""
        return await self._call(self._feeds.read, consumer, **options)

    def items(self, consumer: str, **options: Any) -> AsyncIterator[Item]:
        """Yields a whole feed, newest first."""
        return self._each(lambda feeds: feeds.items(consumer, **options))

    def follows(self, consumer: str) -> AsyncIterator[Follow]:
        return self._each(lambda feeds: feeds.follows(consumer))

    def live(self, consumer: str, *, cursor: str | None = None) -> AsyncIterator[Live]:
        """Yields additions to a feed and removals from it. Never ends."""
        return self._each(lambda feeds: feeds.live(consumer, cursor=cursor))

    async def network(self) -> dict[str, FeedNetwork]:
        return await self._call(self._feeds.network)

    @property
    def _feeds(self) -> Any:
        feeds = self._asking._client.feeds
        return feeds if self._name is None else feeds.named(self._name)

    async def _call(self, call: Callable[..., T], *args: Any, **options: Any) -> T:
        return await self._asking._call(call, *args, **options)

    def _each(self, iterate: Callable[[Any], Iterator[T]]) -> AsyncIterator[T]:
        name = self._name
        return self._asking._each(
            lambda client: iterate(client.feeds if name is None else client.feeds.named(name))
        )


async def _iterated(
    connect: Callable[[], Client], iterate: Callable[[Client], Iterator[T]]
) -> AsyncIterator[T]:
    """Yields the items of a blocking iterator, which runs in a thread with its own client."""
    loop = asyncio.get_running_loop()
    items: asyncio.Queue[tuple[T] | BaseException | None] = asyncio.Queue()
    room = threading.Semaphore(AHEAD)
    given_up = threading.Event()

    def hand_over(item: tuple[T] | BaseException | None) -> None:
        if not given_up.is_set():
            with suppress(RuntimeError):  # the loop was closed before the iterator was
                loop.call_soon_threadsafe(items.put_nowait, item)

    def read() -> None:
        with connect() as client:
            try:
                for item in iterate(client):
                    room.acquire()
                    if given_up.is_set():
                        return
                    hand_over((item,))
                hand_over(None)
            except BaseException as error:
                hand_over(error)

    threading.Thread(target=read, name="millstream-iterator", daemon=True).start()
    try:
        while (item := await items.get()) is not None:
            if isinstance(item, BaseException):
                raise item
            yield item[0]
            room.release()
    finally:
        given_up.set()
        room.release()
