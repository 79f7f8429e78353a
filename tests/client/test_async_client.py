"""The asynchronous client against a real server: the calls of the client, awaited."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
from client.live_server import LiveServer

from millstream import AsyncClient
from millstream.client import AsyncFeeds, Client, FeedsClient, Record
from millstream.errors import ClientError

T = TypeVar("T")


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveServer]:
    with LiveServer(tmp_path_factory.mktemp("live") / "store") as server:
        server.made.commit({"count": {f"{n:04}": {"count": n} for n in range(2500)}})
        server.start()
        yield server


def awaited(work: Coroutine[Any, Any, T]) -> T:
    return asyncio.run(asyncio.wait_for(work, 30))


def test_calls_are_awaited_side_by_side(live: LiveServer) -> None:
    """Many calls run at once over one client, and give what the client's give."""

    async def work() -> None:
        async with AsyncClient(live.url) as client:
            found = await asyncio.gather(*(client.get("count", f"{n:04}") for n in range(100)))
            assert [slate and slate.value for slate in found] == [{"count": n} for n in range(100)]
            assert await client.get("count", "nobody") is None
            sent = await client.send("checkins", [{"venue": "a"}, {"n": 1}])
            assert (sent.accepted, sent.refused_count) == (1, 1)
            assert (await client.status()).server.accepted >= 1

    awaited(work())


def test_iterators_are_read_as_they_come(live: LiveServer) -> None:
    """scan gives all pages in order; a tail gets what is sent after it began; an iterator that is
    left early can be closed."""

    async def work() -> None:
        async with AsyncClient(live.url) as client:
            keys = [slate.key async for slate in client.scan("count")]
            assert keys == [f"{n:04}" for n in range(2500)]
            tail = cast(AsyncIterator[Record], client.tail("checkins", start="start", limit=3))
            await client.send("checkins", [{"venue": "t", "n": n} for n in range(3)])
            assert len([record async for record in tail]) == 3
            async with aclosing(cast(Any, client.watch("count", "0007"))) as watch:
                assert (await anext(watch)).value == {"count": 7}

    awaited(work())


def test_errors_are_the_clients(live: LiveServer, tmp_path: Path) -> None:
    """A refusal is a ClientError with its status, from calls and iterators alike."""

    async def work() -> None:
        async with AsyncClient(live.url) as client:
            with pytest.raises(ClientError, match="conut") as refused:
                await client.get("conut", "x")
            assert refused.value.status == 404
            with pytest.raises(ClientError, match="conut"):
                async for _ in client.scan("conut"):
                    pass

    awaited(work())


@pytest.mark.parametrize(
    ("plain", "awaited_class"), [(Client, AsyncClient), (FeedsClient, AsyncFeeds)]
)
def test_nothing_is_missing(plain: type, awaited_class: type) -> None:
    """Every public call of the client is one of the asynchronous client, with its arguments."""
    for name, call in inspect.getmembers(plain, inspect.isfunction):
        if not name.startswith("_"):
            theirs = inspect.signature(getattr(awaited_class, name))
            assert theirs.parameters == inspect.signature(call).parameters, name
