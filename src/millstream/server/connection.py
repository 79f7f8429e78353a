"""A client's connection: uvicorn's, with what it leaves out against clients that mean no good.

- A head (request line and headers) has a limit of bytes and of time, from the first byte on, or
  from the connection if none comes.
- A client that takes nothing of what it asked for is cut off after a while. Bytes that the system
  still holds count as not taken, and any that it could pass on count as taken.
- There are at most so many connections (`descriptors`). One more is told so when it asks for
  something; far more are told at once.
- What is refused before there is a request is JSON too.

`sweep` looks at all connections about once a second: no timer a request.
"""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
from collections.abc import Iterable
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from millstream.server.descriptors import CONNECTIONS
from millstream.server.options import Options
from millstream.server.streamed import BREAK

SPARE = 64
"""Connections over the most that are heard before they are refused: a client that was still
sending when it was refused might not read why."""
RETRY_SECONDS = 5
MOST_HEAD = 64 << 10
HEAD_SECONDS = 10.0

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_IDLE, _HEAD, _BODY = range(3)


class Joined:
    """A transport for one answer: its head and the first of its body are one write, not two."""

    __slots__ = ("_head", "_transport", "is_closing")

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._head: bytes | None = b""
        self.is_closing = transport.is_closing

    def write(self, data: bytes) -> None:
        if self._head:
            data = self._head + data
            self._head = None
        elif self._head is not None and data != CONTINUE:
            self._head = data
            return
        self._transport.write(data)

    def close(self) -> None:
        self._transport.close()


class Connection(HttpToolsProtocol):
    """One connection."""

    most = CONNECTIONS
    """How many there may be; set by the process before it serves."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._phase = _HEAD
        self._since = self.loop.time()
        self._head = 0
        self._pending = 0
        self._pending_since = 0.0
        self._surplus = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._surplus = len(self.connections) > self.most
        if len(self.connections) > self.most + SPARE:
            self._refuse_surplus()

    def _refuse_surplus(self) -> None:
        self.refuse(
            503,
            f"there are {self.most} connections, and no more are taken; try again later, or give "
            "the server more with --connections",
            retry_after=RETRY_SECONDS,
        )

    def data_received(self, data: bytes) -> None:
        if self._surplus:
            self._refuse_surplus()
            return
        super().data_received(data)
        if self._phase == _HEAD:
            self._head += len(data)
            if self._head > MOST_HEAD:
                self.refuse(431, f"a request's head must have at most {MOST_HEAD} bytes")
        elif (
            self._phase == _IDLE
            and self.timeout_keep_alive_task is None
            and self.cycle.response_complete
        ):
            self._begin_head()  # blank lines between two requests: the next one is awaited

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begin_head()
        self.scope[BREAK] = self.transport.abort  # type: ignore[literal-required]

    def on_headers_complete(self) -> None:
        self._phase = _BODY
        super().on_headers_complete()
        if self.scope["method"] != "HEAD":  # to which nothing follows the head
            self.cycle.transport = Joined(self.transport)  # type: ignore[assignment]

    def on_message_complete(self) -> None:
        self._phase = _IDLE
        super().on_message_complete()

    def _begin_head(self) -> None:
        self._phase = _HEAD
        self._since = self.loop.time()
        self._head = 0

    def send_400_response(self, msg: str) -> None:
        self.refuse(400, "this is not an HTTP request that can be understood")

    def refuse(self, status: int, sentence: str, *, retry_after: int | None = None) -> None:
        """Answer without a request, and close."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.transport.abort()  # an answer is under way, and this must not look like part of it
        if self.transport.is_closing():
            return
        body = msgspec.json.encode({"error": sentence, "status": status})
        head = [STATUS_LINE[status]]
        for name, value in self.server_state.default_headers:
            head += [name, b": ", value, b"\r\n"]
        head.append(b"content-type: application/json\r\nconnection: close\r\n")
        if retry_after is not None:
            head.append(b"retry-after: %d\r\n" % retry_after)
        head.append(b"content-length: %d\r\n\r\n" % len(body))
        self.transport.write(b"".join(head) + body)
        self.transport.close()

    def timeout_keep_alive_handler(self) -> None:
        if not self.transport.get_write_buffer_size():
            super().timeout_keep_alive_handler()
            return
        # Not idle yet: it still takes its last answer, or the sweep will find that it does not.
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def look(self, now: float, head: float, stall: float) -> None:
        """Cut the client off if it has had its time."""
        if self._phase == _HEAD:
            if now - self._since > head:
                self.refuse(408, f"a request's head must come within {head:g} seconds")
        elif (
            self._phase == _BODY
            and self.cycle.response_complete
            and now - self._since > head + stall
        ):
            # It was answered before its end was read: what remains is only to be thrown away.
            self.transport.abort()
        answering = self.cycle is not None and not self.cycle.response_complete
        waiting = self.transport.get_write_buffer_size()
        pending = waiting + self._in_system() if answering or waiting else 0
        if not pending or pending < self._pending or not self._pending:
            self._pending_since = now
        elif now - self._pending_since > stall:
            self.transport.abort()
        self._pending = pending

    def _in_system(self) -> int:
        """The bytes that the system has taken from us, and the client not from it."""
        socket = self.transport.get_extra_info("socket")
        try:
            found = fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
        except (OSError, ValueError):  # closed meanwhile, or no such question here
            return 0
        return int(struct.unpack("i", found)[0])


def sweep(connections: Iterable[object], now: float, options: Options) -> None:
    """Look at each connection."""
    head = min(HEAD_SECONDS, options.body_timeout)
    for connection in list(connections):
        if isinstance(connection, Connection):
            connection.look(now, head, options.stall)
