"""A client's connection: uvicorn's, with the defences against hostile clients that it lacks.

- A head (request line and headers) has a limit of bytes and of time. Time counts from the first
  byte, or from the start of the connection if no byte comes. The framing of a chunked body (chunk
  extensions and trailers) is limited likewise. Trailers are read and discarded; they are never
  treated as headers.
- A body that is still sent after its answer is discarded, up to a limit of bytes and of time.
- Pipelined requests are parsed a few at a time, and not while the client leaves its answers
  unread.
- A client that reads nothing of its answer is cut off after a while. Bytes that the system still
  holds count as unread; any progress in sending them counts as reading. When all unread answers
  together are too large (`unread_answers`), the client that has left the most unread for longest
  is cut off sooner.
- The number of connections is limited (`descriptors`). Room is made for a further one
  (`connection_room`); if none can be made, its first request is refused.
- Refusals that are sent before there is a request are JSON too.

`sweep` checks all connections about once a second, so a request needs no timer.
"""

from __future__ import annotations

import asyncio
import fcntl
import re
import struct
import termios
from collections.abc import Iterable
from typing import Any

import msgspec
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from millstream.server.access.access_log import AccessLog
from millstream.server.http.connection_room import Standing, address_group, to_close
from millstream.server.http.descriptors import CONNECTIONS
from millstream.server.http.streamed import BREAK
from millstream.server.http.unread_answers import UnreadAnswers
from millstream.server.options import ServerOptions

RETRY_SECONDS = 5
MOST_HEAD = 64 << 10
MOST_FRAMING = 64 << 10
"""Bytes of chunk extensions and trailers between two pieces of a body, or after the last."""
MOST_DRAINED = 16 << 20
"""Bytes of a body that are discarded after its answer before the connection is closed."""
HEAD_SECONDS = 10.0
PIECE = 16 << 10
"""Bytes that are parsed at once; the counts above are exact to one piece."""
PIPELINED = 16
"""Requests that are parsed while another one is being answered."""
PROVEN = "millstream.proven"
"""A key of a request's scope: the function to call once its client has shown a valid token."""

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"

_IDLE, _HEAD, _BODY = range(3)


class Joined:
    """A transport for one answer: writes its head together with the first piece of its body."""

    __slots__ = ("_connection", "_head", "_transport", "is_closing")

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._transport = transport = connection.transport
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
        self._connection.wrote(len(data))

    def close(self) -> None:
        self._transport.close()


unread: UnreadAnswers[Connection] = UnreadAnswers()
"""The unread answers of all connections of this process."""


class Connection(HttpToolsProtocol):
    """One connection of a client."""

    most = CONNECTIONS
    """The most connections at once; set by the process before it serves."""
    refusals: AccessLog | None = None
    """Logs refusals that are sent before there is a request; also set by the process."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._phase = _HEAD
        self._since = self.loop.time()
        self._begun = False
        """True if a head began in the current piece."""
        self._body_came = False
        """True if the current piece had bytes of a body."""
        self._head = 0
        self._framing = 0
        self._drained = 0
        self._unparsed = b""
        self._unread = 0
        self._postponed = False
        """True if the next request waits until the client has read its answers."""
        self._pending = 0
        self._pending_since = 0.0
        self._surplus = False
        self._proven = False
        self.group = ""
        """The address group of the client (`connection_room.address_group`)."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.group = address_group(self.client[0] if self.client else "")
        if len(self.connections) <= self.most:
            return
        others = [
            other
            for other in self.connections
            if isinstance(other, Connection) and other is not self
        ]
        leaving = to_close(others, self.most)
        for connection in leaving:
            connection.transport.abort()
        # Aborted connections are still in `connections` until the loop has called connection_lost.
        self._surplus = len(self.connections) - len(leaving) > self.most

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._unparsed = b""
        unread.forget(self)

    def standing(self) -> Standing | None:
        """Returns how dispensable the connection is; None if it is at work."""
        if self.transport.is_closing():
            return None
        if self.pipeline or (self.cycle is not None and not self.cycle.response_complete):
            waits = self._phase == _BODY and not self._proven and not self.cycle.response_started
            return Standing(2, self._since) if waits and not self.pipeline else None
        return Standing(int(self._proven), self._since)

    def wrote(self, size: int) -> None:
        """Notes that `size` bytes of an answer were written at once."""
        left = self.transport.get_write_buffer_size()
        if left:
            # The transport holds all bytes of a write as long as any of them is left.
            self._unread = size if left <= size else self._unread + size
            unread.note(self, self._unread, self.loop.time())

    def unread_bytes(self) -> int:
        """Returns the bytes of unread answers that are held in memory."""
        return self._unread if self.transport.get_write_buffer_size() else 0

    def cut_off(self) -> None:
        self.transport.abort()

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
        elif self._unparsed:
            self._unparsed += data
            self.flow.pause_reading()
        else:
            self._parse(data)

    def _parse(self, data: bytes) -> None:
        """Parses data piece by piece; keeps the rest for later while this client is busy."""
        for at in range(0, len(data), PIECE):
            if self._is_busy():
                self._unparsed = data[at:]
                self.flow.pause_reading()
                return
            piece = data[at : at + PIECE]
            self._begun = self._body_came = False
            super().data_received(piece)
            if self.transport.is_closing():
                return
            self._count(len(piece))

    def _is_busy(self) -> bool:
        """True if a further request of this client must wait."""
        return self._phase != _BODY and (self.flow.write_paused or len(self.pipeline) >= PIPELINED)

    def _go_on(self) -> None:
        """Parses the data that was kept, if it need not wait any more."""
        if self._unparsed and not self._is_busy() and not self.transport.is_closing():
            data, self._unparsed = self._unparsed, b""
            self._parse(data)
            if not self._unparsed and not self.pipeline:
                self.flow.resume_reading()
        if self._unparsed:
            self.flow.pause_reading()

    def on_response_complete(self) -> None:
        self._postponed = bool(self.pipeline) and self.flow.write_paused
        if not self._postponed:  # else the next answer would be built and held in memory meanwhile
            super().on_response_complete()
            self._go_on()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._postponed:
            self.on_response_complete()
        else:
            self._go_on()

    def _count(self, size: int) -> None:
        """Counts a parsed piece of `size` bytes, and refuses what is over a limit."""
        if self._phase == _HEAD:
            # The parser does not say where in a piece a head begins: its first piece counts as 0.
            self._head = 0 if self._begun else self._head + size
            if self._head > MOST_HEAD:
                self.refuse(431, f"a request's head must have at most {MOST_HEAD} bytes")
        elif self._phase == _BODY:
            self._framing = 0 if self._body_came else self._framing + size
            if self._framing > MOST_FRAMING:
                self.refuse(
                    431,
                    f"the trailers of a body, and the extensions of a chunk, must have at most "
                    f"{MOST_FRAMING} bytes",
                )
            elif self.cycle.response_complete:
                self._drained += size
                if self._drained > MOST_DRAINED:
                    self.transport.abort()
        elif self.timeout_keep_alive_task is None and self.cycle.response_complete:
            self._begin_head()  # blank lines between two requests start the time of the next head

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._begin_head()
        self._begun = True
        self.scope[BREAK] = self.transport.abort  # type: ignore[literal-required]
        self.scope[PROVEN] = self._prove  # type: ignore[literal-required]

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._phase == _HEAD:  # else it is a trailer
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._phase = _BODY
        self._framing = self._drained = 0
        if self.parser.get_http_version() not in ("1.1", "1.0"):
            self.refuse(505, "this server speaks HTTP/1.1")
            return
        if not self.url.startswith((b"/", b"*")) and not self._is_under_host():
            self.refuse(400, "the name in the request's line must be that of its Host header")
            return
        super().on_headers_complete()
        if self.scope["method"] != "HEAD":  # its answer has no body to join
            self.cycle.transport = Joined(self)  # type: ignore[assignment]

    def _is_under_host(self) -> bool:
        """True if the host of an absolute URL in the request line equals the Host header.

        The guard checks only the Host header.
        """
        name = re.fullmatch(rb"https?://([^/?#]*).*", self.url, re.IGNORECASE | re.DOTALL)
        hosts = [value.lower() for header, value in self.headers if header == b"host"]
        return name is not None and hosts == [name[1].lower()]

    def on_body(self, body: bytes) -> None:
        self._body_came = True
        if not self.transport.is_closing():
            super().on_body(body)

    def on_message_complete(self) -> None:
        self._phase = _IDLE
        if not self.transport.is_closing():
            super().on_message_complete()

    def _begin_head(self) -> None:
        self._phase = _HEAD
        self._since = self.loop.time()
        self._head = 0

    def _prove(self) -> None:
        self._proven = True

    def send_400_response(self, msg: str) -> None:
        self.refuse(400, "this is not a valid HTTP request")

    def refuse(self, status: int, sentence: str, *, retry_after: int | None = None) -> None:
        """Sends a refusal outside any request's answer, and closes the connection."""
        if self.cycle is not None and not self.cycle.response_complete:
            if self.pipeline or self.cycle.response_started:
                self.transport.abort()  # the refusal must not look like part of another answer
            self.cycle.disconnected = True  # its route must not answer as well
            self.cycle.message_event.set()
        if self.transport.is_closing():
            return
        if self.refusals is not None:
            self.refusals.add(self.client[0] if self.client else "", status)
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
        # Not idle yet: the client still reads its last answer. If it does not, `sweep` cuts it off.
        self.timeout_keep_alive_task = self.loop.call_later(
            self.timeout_keep_alive, self.timeout_keep_alive_handler
        )

    def look(self, now: float, head: float, stall: float) -> None:
        """Cuts the client off if its time for a head, a body or reading is over."""
        if self._phase == _HEAD:
            if now - self._since > head:
                self.refuse(408, f"a request's head must come within {head:g} seconds")
        elif self._phase == _BODY and self.cycle.response_complete and now - self._since > head:
            # The request was answered before all of its body was read; the rest is only discarded.
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
        """Returns the bytes in the system's send buffer that the client has not received."""
        socket = self.transport.get_extra_info("socket")
        try:
            queued = fcntl.ioctl(socket.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
        except (OSError, ValueError):  # closed meanwhile, or the system has no TIOCOUTQ
            return 0
        return int(struct.unpack("i", queued)[0])


def sweep(connections: Iterable[object], now: float, options: ServerOptions) -> None:
    """Checks the limits of each connection."""
    head = min(HEAD_SECONDS, options.body_timeout)
    for connection in list(connections):
        if isinstance(connection, Connection):
            connection.look(now, head, options.stall)
