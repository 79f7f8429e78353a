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
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from millstream.client.client import DEFAULT_URL, Client
from millstream.client.feeds import FeedsClient

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)
CALLS = 16
"""The number of calls of one client that run at the same time. Others wait for one to end."""
AHEAD = 256
"""The number of items of an iterator that are read ahead."""


class _Threaded(Protocol[C_co]):
    """Runs calls of a blocking client in threads."""

    async def _call(self, call: Callable[[C_co], T]) -> T: ...

    def _each(self, iterate: Callable[[C_co], Iterator[T]]) -> AsyncIterator[T]: ...


def _awaited(
    call: Callable[Concatenate[C, P], T],
) -> Callable[Concatenate[_Threaded[C], P], Coroutine[Any, Any, T]]:
    """The same call, awaited."""

    @wraps(call)
    async def awaited(self: _Threaded[C], /, *args: P.args, **options: P.kwargs) -> T:
        return await self._call(lambda client: call(client, *args, **options))

    return awaited


def _iterated(
    call: Callable[Concatenate[C, P], Iterator[T]],
) -> Callable[Concatenate[_Threaded[C], P], AsyncIterator[T]]:
    """The same call, which returns an asynchronous iterator."""

    @wraps(call)
    def iterated(self: _Threaded[C], /, *args: P.args, **options: P.kwargs) -> AsyncIterator[T]:
        return self._each(lambda client: call(client, *args, **options))

    return iterated


class AsyncClient:
    """A Millstream server. Arguments and calls are those of `Client`. Belongs to one event loop.

    The events of `send` are iterated, and its `progress` is called, in another thread. The "end"
    from which `tail` starts is that of the time when the first item is requested.
    """

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

    send = _awaited(Client.send)
    send_lines = _awaited(Client.send_lines)
    send_one = _awaited(Client.send_one)
    retry = _awaited(Client.retry)
    retry_action = _awaited(Client.retry_action)
    get = _awaited(Client.get)
    scan = _iterated(Client.scan)
    dump = _iterated(Client.dump)
    watch = _iterated(Client.watch)
    tail = _iterated(Client.tail)
    status = _awaited(Client.status)
    streams = _awaited(Client.streams)
    graph = _awaited(Client.graph)

    async def _call(self, call: Callable[[Client], T]) -> T:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, call, self._client)

    def _each(self, iterate: Callable[[Client], Iterator[T]]) -> AsyncIterator[T]:
        return _items(self._connect, iterate)


class AsyncFeeds:
    """The feeds of a server, for asyncio. Calls are those of `Client.feeds`."""

    def __init__(self, client: AsyncClient, name: str | None = None) -> None:
        self._client = client
        self._name = name

    def named(self, name: str) -> AsyncFeeds:
        """Returns the feeds with this name, for an application with several."""
        return AsyncFeeds(self._client, name)

    post = _awaited(FeedsClient.post)
    edit = _awaited(FeedsClient.edit)
    delete = _awaited(FeedsClient.delete)
    aggregate = _awaited(FeedsClient.aggregate)
    follow = _awaited(FeedsClient.follow)
    unfollow = _awaited(FeedsClient.unfollow)
    block = _awaited(FeedsClient.block)
    unblock = _awaited(FeedsClient.unblock)
    seen = _awaited(FeedsClient.seen)
    send = _awaited(FeedsClient.send)
    read = _awaited(FeedsClient.read)
    older = _iterated(FeedsClient.older)
    newer = _iterated(FeedsClient.newer)
    items = _iterated(FeedsClient.items)
    follows = _iterated(FeedsClient.follows)
    live = _iterated(FeedsClient.live)
    network = _awaited(FeedsClient.network)

    async def _call(self, call: Callable[[FeedsClient], T]) -> T:
        return await self._client._call(lambda client: call(self._feeds(client)))

    def _each(self, iterate: Callable[[FeedsClient], Iterator[T]]) -> AsyncIterator[T]:
        return self._client._each(lambda client: iterate(self._feeds(client)))

    def _feeds(self, client: Client) -> FeedsClient:
        return client.feeds if self._name is None else client.feeds.named(self._name)


async def _items(
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
