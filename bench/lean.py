"""A lean HTTP client for load: requests are prepared bytes, an answer is parsed only for its end
and its status, and one thread waits for all connections.

Every request has a time at which it is *due*. If all connections are busy, the request waits, and
its latency counts from the time it was due: so a stalled server is charged for all requests that
would have come meanwhile (no coordinated omission). The kernel's time of an answer's arrival is
recorded beside the time at which this process read it: the difference is this process waiting for a
core, not the server.

    load = Load(url, 8)
    load.at(due, ask, told)     `ask()` returns the bytes when they are sent; it may call `at` again
    load.run()                  until no request is due or awaited
"""

from __future__ import annotations

import gc
import http.client
import json
import select
import socket
import struct
import time
from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from bench.apart import RunFailedError

now = time.monotonic
"""The same clock in all processes of a machine."""
PATIENCE = 60.0
_LENGTH = b"content-length: "
_TIMESTAMPING, _ON_ARRIVAL, _ROOM = 37, 0b11000, 128
"""Linux: SO_TIMESTAMPING, the flags for the kernel's time of arrival, and the bytes for a stamp."""
_TIMESPEC = struct.Struct("qq")


class Answer(NamedTuple):
    """An answer, with the times of its request."""

    due: float
    sent: float
    arrived: float
    came: float
    status: int
    body: bytes


Ask = Callable[[], bytes]
Told = Callable[[Answer], None]


class _Awaited(NamedTuple):
    due: float
    sent: float
    told: Told
    parts: list[bytes]


class Load:
    """Sends requests over a few persistent connections. A context manager."""

    def __init__(self, url: str, connections: int) -> None:
        self._sockets: dict[int, socket.socket] = {}
        self._idle: deque[int] = deque()
        self._due: list[tuple[float, int, Ask, Told]] = []
        self._awaited: dict[int, _Awaited] = {}
        self._number = count()
        self._epoch = time.time() - now()  # the kernel's stamps are times of day
        for _ in range(connections):
            connection = socket.create_connection(address(url), PATIENCE)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.setsockopt(socket.SOL_SOCKET, _TIMESTAMPING, _ON_ARRIVAL)
            self._sockets[connection.fileno()] = connection
            self._idle.append(connection.fileno())

    def __enter__(self) -> Load:
        gc.disable()  # a collection would pause this process, and look like a pause of the server
        return self

    def __exit__(self, *exc: object) -> None:
        gc.enable()
        for connection in self._sockets.values():
            connection.close()

    def at(self, due: float, ask: Ask, told: Told) -> None:
        """Send a request when it is due, and call `told` with its answer."""
        heappush(self._due, (due, next(self._number), ask, told))

    def run(self) -> None:
        """Send due requests and read answers, until there are no more."""
        while self._due or self._awaited:
            pause = self._send()
            if not self._awaited:
                time.sleep(pause)
                continue
            # select, for its timeout is in microseconds; epoll's is in milliseconds.
            ready = select.select(list(self._awaited), (), (), pause)[0]
            if not ready and pause >= PATIENCE:
                raise RunFailedError(f"the server gave no answer for {PATIENCE:.0f} seconds")
            for handle in ready:
                self._take(handle)

    def _send(self) -> float:
        """Send due requests while connections are free; returns the seconds until the next."""
        due, idle = self._due, self._idle
        while due and idle:
            moment = now()
            if due[0][0] > moment:
                return due[0][0] - moment
            when, _, ask, told = heappop(due)
            request = ask()
            handle = idle.popleft()
            sent = now()
            self._sockets[handle].sendall(request)
            self._awaited[handle] = _Awaited(when, sent, told, [])
        return PATIENCE

    def _take(self, handle: int) -> None:
        awaited = self._awaited[handle]
        data, stamps, _, _ = self._sockets[handle].recvmsg(1 << 16, _ROOM)
        came = now()
        if not data:
            raise RunFailedError("the server closed a connection that was in use")
        if awaited.parts:
            data = b"".join((*awaited.parts, data))
        found = whole(data)
        if found is None:
            awaited.parts[:] = [data]
            return
        arrived = came
        for _, _, stamp in stamps:  # none on the first few: the kernel needs a moment to start
            seconds, rest = _TIMESPEC.unpack_from(stamp)
            arrived = min(came, seconds + rest / 1e9 - self._epoch)
        del self._awaited[handle]
        self._idle.append(handle)
        awaited.told(Answer(awaited.due, awaited.sent, arrived, came, *found))


def whole(data: bytes) -> tuple[int, bytes] | None:
    """The status and the body of a complete answer; None if it is incomplete.

    >>> whole(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\n{}")
    (200, b'{}')
    >>> whole(b"HTTP/1.1 200 OK\\r\\ncontent-length: 2\\r\\n\\r\\n{") is None
    True
    """
    head = data.find(b"\r\n\r\n")
    if head < 0:
        return None
    at = data.index(_LENGTH, 0, head) + len(_LENGTH)
    length = int(data[at : data.index(b"\r", at)])
    if len(data) < head + 4 + length:
        return None
    return int(data[9:12]), data[head + 4 :]


def address(url: str) -> tuple[str, int]:
    """The host and the port of a server."""
    parts = urlsplit(url)
    return parts.hostname or "127.0.0.1", parts.port or 80


def get_request(url: str, path: str) -> bytes:
    """The bytes of a GET; the path must be percent-encoded."""
    return f"GET {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n\r\n".encode()


def post_request(url: str, path: str, kind: str, body: bytes) -> bytes:
    """The bytes of a POST."""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {urlsplit(url).netloc}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def get_json(url: str, path: str) -> Any:
    """The answer to one GET, not for measuring."""
    connection = http.client.HTTPConnection(*address(url), timeout=PATIENCE)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise RunFailedError(f"GET {path}: {answer.status} {body[:200]!r}")
    return json.loads(body)
