"""A proxy in front of an S3 server: it fails requests, loses answers, delays and counts.

`python -m fault_runs.s3_proxy LISTEN:PORT SERVER:PORT SOCKET` runs one. A test sets its faults over
the Unix socket (`ProxyFaults`) and reads its counts (`ProxyCounts`), as lines of JSON, through
`ProxyControl`. Every host can reach a socket in the file system.

A request is read whole before its fate is drawn. A failed request is answered with 503 and never
reaches the server. A request whose answer is lost does reach it, and the connection is closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import sys
from collections import Counter
from pathlib import Path

import msgspec

LARGEST_HEAD = 1 << 16
SLOW_DOWN = (
    b"<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>a test made it so</Message></Error>"
)
HANGS_UP = (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError)


class ProxyFaults(msgspec.Struct, frozen=True):
    """The faults that the proxy causes; rates are from 0 to 1."""

    fails: float = 0.0
    """The rate of requests that are answered with 503, SlowDown."""
    loses_answer: float = 0.0
    away: bool = False
    """Every connection is closed at once."""
    delay_ms: float = 0.0
    """Added to every request."""
    seed: int = 0


class ProxyCounts(msgspec.Struct):
    """The proxy's counts since the last reset."""

    methods: dict[str, int] = {}
    """Requests by method."""
    kinds: dict[str, int] = {}
    """Requests by method and kind of object, such as `PUT commits`."""
    failed: int = 0
    lost: int = 0
    refused: int = 0
    """Connections that were refused while it was away."""


class ProxyOrder(msgspec.Struct):
    """A line to the proxy."""

    faults: ProxyFaults | None = None
    """The faults from now on; None: no change."""
    reset: bool = False
    """True to reset the counts after they are reported."""


class S3Proxy:
    """The proxy in an event loop."""

    def __init__(self, server: tuple[str, int]) -> None:
        self._server = server
        self._faults = ProxyFaults()
        self._random = random.Random(0)
        self._methods: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._counts = ProxyCounts()

    async def serve(self, listen: tuple[str, int], control: Path) -> None:
        """Serves until it is cancelled."""
        control.unlink(missing_ok=True)
        proxy = await asyncio.start_server(self._client, *listen, limit=LARGEST_HEAD)
        orders = await asyncio.start_unix_server(self._ordered, control)
        async with proxy, orders:
            await asyncio.gather(proxy.serve_forever(), orders.serve_forever())

    async def _ordered(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            order = msgspec.json.decode(line, type=ProxyOrder)
            if order.faults is not None:
                self._faults, self._random = order.faults, random.Random(order.faults.seed)
            self._counts.methods, self._counts.kinds = dict(self._methods), dict(self._kinds)
            writer.write(msgspec.json.encode(self._counts) + b"\n")
            if order.reset:
                self._counts = ProxyCounts()
                self._methods.clear()
                self._kinds.clear()
            await writer.drain()
        writer.close()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handles one connection of a client, with its own connection to the server."""
        upstream: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        try:
            while True:
                if self._faults.away:
                    self._counts.refused += 1
                    return
                head, body = await _message(reader)
                if self._faults.away:
                    self._counts.refused += 1
                    return
                self._count(head)
                await asyncio.sleep(self._faults.delay_ms / 1_000)
                if self._random.random() < self._faults.fails:
                    self._counts.failed += 1
                    writer.write(_answer(SLOW_DOWN))
                    await writer.drain()
                    continue
                if upstream is None:
                    upstream = await asyncio.open_connection(*self._server, limit=LARGEST_HEAD)
                upstream[1].write(head + body)
                await upstream[1].drain()
                answer = await _message(upstream[0], asked=head)
                if self._random.random() < self._faults.loses_answer:
                    self._counts.lost += 1
                    return
                writer.write(answer[0] + answer[1])
                await writer.drain()
                if b"connection: close" in answer[0].lower():
                    return
        except HANGS_UP:
            pass  # one side has closed the connection, and so does the proxy
        finally:
            for side in (writer, upstream[1] if upstream else None):
                if side is not None:
                    side.transport.abort()

    def _count(self, head: bytes) -> None:
        method, path, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        self._methods[method] += 1
        self._kinds[f"{method} {_kind(path)}"] += 1


def _kind(path: str) -> str:
    """The kind of object that a request is for: the first part of its name in the store.

    >>> _kind("/bucket/app/commits/000000000007"), _kind("/bucket?list-type=2&prefix=app%2Flogs")
    ('commits', 'list')
    """
    path, _, query = path.partition("?")
    if "list-type" in query:
        return "list"
    parts = path.split("/")
    known = {"commits", "changes", "packs", "bases", "staged", "logs", "sources", "records"}
    for part in parts:
        if part in known:
            return part
    return parts[-1] if parts[-1] in ("latest", "leader") else "other"


async def _message(reader: asyncio.StreamReader, asked: bytes = b"") -> tuple[bytes, bytes]:
    """Reads the head and the body of a request, or of the answer to the request `asked`."""
    head = await reader.readuntil(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.strip().lower(): value.strip()
        for name, _, value in (line.partition(":") for line in lines if line)
    }
    if asked:
        status = int(first.split(" ")[1])
        if 100 <= status < 200:
            return await _message(reader, asked)
        if asked.startswith(b"HEAD ") or status in (204, 304):
            return head, b""
    if "chunked" in headers.get("transfer-encoding", "").lower():
        return head, await _chunks(reader)
    if "content-length" in headers:
        return head, await reader.readexactly(int(headers["content-length"]))
    return head, (await reader.read() if asked else b"")


async def _chunks(reader: asyncio.StreamReader) -> bytes:
    """Reads a chunked body, unchanged."""
    whole = bytearray()
    while True:
        line = await reader.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        whole += line + await reader.readexactly(size + 2)
        if size == 0:
            return bytes(whole)


def _answer(body: bytes) -> bytes:
    head = f"HTTP/1.1 503 Slow Down\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


class ProxyControl:
    """Controls a proxy, from any host."""

    def __init__(self, control: Path) -> None:
        self._path = control

    def listens(self) -> bool:
        """True if the proxy listens."""
        try:
            self.counts()
        except OSError:
            return False
        return True

    def order(self, faults: ProxyFaults) -> None:
        """Set the faults from now on."""
        self._told(ProxyOrder(faults))

    def counts(self, *, reset: bool = False) -> ProxyCounts:
        """The counts; with `reset`, they start again from 0."""
        return self._told(ProxyOrder(reset=reset))

    def _told(self, order: ProxyOrder) -> ProxyCounts:
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(self._path))
            line.sendall(msgspec.json.encode(order) + b"\n")
            with line.makefile("rb") as answers:
                return msgspec.json.decode(answers.readline(), type=ProxyCounts)


def _place(words: str) -> tuple[str, int]:
    address, _, port = words.rpartition(":")
    return address, int(port)


def main(arguments: list[str]) -> None:
    listen, server, control = arguments
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(S3Proxy(_place(server)).serve(_place(listen), Path(control)))


if __name__ == "__main__":
    main(sys.argv[1:])
