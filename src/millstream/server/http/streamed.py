"""Answers that are sent in pieces: dumps and server-sent events.

The client sets the pace: the next piece is requested when the previous one was read. A client that
reads nothing for long is cut off by its connection (see `connection`). If a stream does not reach
its end, because of an error or a server that stops, the connection is broken instead of ending the
answer, so that no client takes a part for the whole. In every case the generator is closed, and its
resources are released.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractContextManager, nullcontext

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from millstream.errors import MillstreamError
from millstream.server.http.answers import Refusal

logger = logging.getLogger("millstream.server")

BREAK = "millstream.break"
"""The key in a request's scope of the function that breaks its connection."""


class CutOff(Exception):
    """Raised by a generator that cannot continue, when there is nothing to log."""


class Streamed(Response):
    """An answer from an async generator of bytes.

    `held` is entered before anything is sent, and left at the end, even if the generator never ran.
    """

    def __init__(
        self,
        pieces: AsyncGenerator[bytes, None],
        media_type: str,
        headers: Mapping[str, str] | None = None,
        held: AbstractContextManager[object] | None = None,
    ) -> None:
        self._pieces = pieces
        self._held = held or nullcontext()
        self.status_code = 200
        self.media_type = media_type
        self.background = None
        self.init_headers(headers)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with self._held:
            await self._stream(scope, receive, send)

    async def _stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        sending = asyncio.ensure_future(self._send_all(send))
        leaving = asyncio.ensure_future(_left(receive))
        try:
            await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sending.cancel()
            leaving.cancel()
            await asyncio.wait({sending, leaving})
            await self._pieces.aclose()
            if sending.cancelled():
                scope[BREAK]()
            elif (error := sending.exception()) is not None:
                _log(scope["path"], error)
                scope[BREAK]()

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        async for piece in self._pieces:
            await send({"type": "http.response.body", "body": piece, "more_body": True})
            del piece
            # Waits until the piece was read: the next one is not created before.
            await send({"type": "http.response.body", "body": b"", "more_body": True})
        await send({"type": "http.response.body", "body": b""})


async def _left(receive: Receive) -> None:
    """Returns when the client has disconnected."""
    try:
        while (await receive())["type"] != "http.disconnect":
            pass
    except Refusal:
        pass  # the client sends a body that was not wanted, and it is too large or too slow


def _log(path: str, error: BaseException) -> None:
    if isinstance(error, MillstreamError):
        logger.error("%r was cut off: %s", path[:200], error)
    elif not isinstance(error, CutOff):
        logger.error("%r was cut off", path[:200], exc_info=error)
