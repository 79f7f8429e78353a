"""Server-sent events: what is sent when, and when the looking begins and ends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable

from millstream.server.http.server_sent_events import BEAT, RETRY, Poller, event, pour


class Pieces:
    """A feed of what a test puts into it."""

    def __init__(self, *pieces: bytes | None) -> None:
        self.wake = asyncio.Event()
        self.pieces = deque(pieces)

    def take(self) -> bytes | None:
        return self.pieces.popleft() if self.pieces else b""


class Looking:
    """A poller, and how often it looked; each look may do something."""

    def __init__(self, act: Callable[[], None] = lambda: None) -> None:
        self.count = 0
        self._act = act
        self.poller: Poller[Pieces] = Poller(self._look, asyncio.Event())

    async def _look(self) -> None:
        self.count += 1
        self._act()


def run(act: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(10):
            await act()

    asyncio.run(limited())


async def some(stream: AsyncGenerator[bytes, None], count: int) -> list[bytes]:
    return [await anext(stream) for _ in range(count)]


async def rest(stream: AsyncGenerator[bytes, None]) -> list[bytes]:
    return [piece async for piece in stream]


def test_data_is_one_line() -> None:
    """A carriage return, which ends a line of an event, is a blank; the JSON stays the same."""
    assert event("record", 7, b'{"a":\r1}') == b'event: record\nid: 7\ndata: {"a": 1}\n\n'


def test_pieces_one_after_the_other() -> None:
    """A stream begins with how soon to come back, and ends with its feed."""

    async def act() -> None:
        stream = pour(Looking().poller, Pieces(b"1", b"2", None))
        assert await rest(stream) == [RETRY, b"1", b"2"]

    run(act)


def test_a_quiet_stream_beats() -> None:
    """While there is nothing to send, a comment is sent from time to time. Events follow when they
    come."""

    async def act() -> None:
        feed = Pieces()
        stream = pour(Looking().poller, feed, beat=0.01)
        assert await some(stream, 4) == [RETRY, BEAT, BEAT, BEAT]
        feed.pieces.append(b"1")
        feed.wake.set()
        assert await anext(stream) == b"1"
        await stream.aclose()

    run(act)


def test_a_look_wakes_a_feed() -> None:
    """New events that a look finds are sent without waiting for a beat."""

    async def act() -> None:
        feed = Pieces()

        def find() -> None:
            feed.pieces.append(b"news")
            feed.wake.set()

        stream = pour(Looking(find).poller, feed, beat=100)
        assert await some(stream, 2) == [RETRY, b"news"]
        await stream.aclose()

    run(act)


def test_looking_lasts_as_long_as_listening() -> None:
    """The poller looks only while anybody listens, and begins again for the next one."""

    async def act() -> None:
        looking = Looking()
        for _ in range(2):
            stream = pour(looking.poller, Pieces())
            await anext(stream)
            before = looking.count
            while looking.count < before + 2:
                await asyncio.sleep(0.01)
            await stream.aclose()
            assert not looking.poller.feeds
            while len(asyncio.all_tasks()) > 1:
                await asyncio.sleep(0.01)

    run(act)


def test_a_look_that_fails() -> None:
    """When nothing can be read just now, the poller looks again."""

    async def act() -> None:
        def fail() -> None:
            raise OSError("not now")

        looking = Looking(fail)
        stream = pour(looking.poller, Pieces())
        await anext(stream)
        while looking.count < 3:
            await asyncio.sleep(0.01)
        await stream.aclose()

    run(act)


def test_all_end_when_the_server_stops() -> None:
    """Streams that wait end soon after the server is told to stop."""

    async def act() -> None:
        looking = Looking()
        streams = [pour(looking.poller, Pieces(b"1")) for _ in range(3)]
        for stream in streams:
            assert await some(stream, 2) == [RETRY, b"1"]
        ends = [asyncio.ensure_future(rest(stream)) for stream in streams]
        await asyncio.sleep(0)
        looking.poller.stopping.set()
        assert await asyncio.gather(*ends) == [[], [], []]

    run(act)
