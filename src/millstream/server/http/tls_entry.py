"""A connection before its TLS handshake is over.

The event loop calls the protocol of a TLS connection only after the handshake. Clients that never
begin it would not be counted among the connections, and could use up all file descriptors. So the
server listens without TLS, accepts each connection here, and then upgrades it to TLS. A handshake
has a time limit. Connections in their handshake count as connections: if there are too many, the
address with the most such connections loses its oldest one.
"""

from __future__ import annotations

import asyncio
import ssl
from collections import Counter
from collections.abc import Awaitable, Coroutine, Generator
from typing import Any, ClassVar, Generic, TypeVar

from millstream.server.http.connection import HEAD_SECONDS, Connection
from millstream.server.http.connection_room import address_group

T = TypeVar("T")


class TlsEntry(asyncio.Protocol):
    """One connection, until its handshake is over."""

    context: ClassVar[ssl.SSLContext]
    """Set by the process before it serves."""
    waiting: ClassVar[dict[TlsEntry, None]] = {}
    """Connections in their handshake, the oldest first."""

    def __init__(self, **named: Any) -> None:
        self._named = named
        self._early: list[bytes] = []
        """Data that came after the handshake, before the `Connection` was created."""
        self._task: asyncio.Task[None] | None = None
        self.group = ""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport
        peer = transport.get_extra_info("peername")
        self.group = address_group(str(peer[0]) if peer else "")
        others = list(self.waiting)
        self.waiting[self] = None
        if others and len(self._named["server_state"].connections) + len(others) >= Connection.most:
            _oldest_of_most(others).leave()
        # Start the handshake now, and not in a task a moment later: data that came until then would
        # not be read as part of the handshake.
        handshake = asyncio.get_running_loop().start_tls(
            transport, self, self.context, server_side=True, ssl_handshake_timeout=HEAD_SECONDS
        )
        awaited = handshake.send(None)
        self._task = asyncio.ensure_future(self._secure(_Continued(handshake, awaited)))

    def data_received(self, data: bytes) -> None:
        self._early.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.waiting.pop(self, None)

    async def _secure(self, handshake: Awaitable[asyncio.Transport | None]) -> None:
        try:
            secured = await handshake
        except (OSError, RuntimeError, asyncio.CancelledError):
            self.leave()  # the client does not speak TLS, or is too late
            return
        finally:
            self.waiting.pop(self, None)
        if secured is None or secured.is_closing():
            return
        connection = Connection(**self._named)
        secured.set_protocol(connection)
        connection.connection_made(secured)
        for data in self._early:
            connection.data_received(data)

    def leave(self) -> None:
        """Closes the connection at once."""
        self.waiting.pop(self, None)
        self._transport.abort()
        if self._task is not None:
            self._task.cancel()


class _Continued(Generic[T]):
    """Continues a coroutine that was started with `send(None)` and awaits `awaited`."""

    def __init__(self, coroutine: Coroutine[Any, Any, T], awaited: Any) -> None:
        self._coroutine = coroutine
        self._awaited = awaited

    def __await__(self) -> Generator[Any, Any, T]:
        awaited = self._awaited
        while True:
            try:
                try:
                    result = yield awaited
                except BaseException as error:
                    awaited = self._coroutine.throw(error)
                else:
                    awaited = self._coroutine.send(result)
            except StopIteration as end:
                value: T = end.value
                return value


def _oldest_of_most(waiting: list[TlsEntry]) -> TlsEntry:
    held = Counter(entry.group for entry in waiting)
    largest = max(held, key=lambda group: held[group])
    return next(entry for entry in waiting if entry.group == largest)
