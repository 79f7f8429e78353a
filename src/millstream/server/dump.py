"""GET /slates/{update}/dump: every slate of an update as of one batch, a line each.

Written piece by piece beside the event loop, each when the client has taken the one before: memory
does not grow with the store. While a dump is under way the store cannot reuse the room of what it
shows, so there are at most two at once, and a client that takes nothing is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack

from starlette.requests import Request
from starlette.responses import Response

from millstream.server.answers import NDJSON, Refusal
from millstream.server.paths import Route, query
from millstream.server.service import Service
from millstream.server.slates import known_kind, line
from millstream.server.streamed import CutOff, Streamed
from millstream.stores.reader import WrittenSlate

PIECE = 64 << 10


def routes(service: Service) -> list[Route]:
    async def dump(request: Request) -> Response:
        query(request, ())
        update = request.path_params["update"]
        known_kind(service.store.reader, update)
        if request.method == "HEAD":
            return Streamed(_pieces(service, iter(())), NDJSON)  # not begun
        if service.dumps.full:
            raise Refusal(
                503,
                f"{service.dumps.most} dumps are under way, and no more at once; try again later",
                headers={"Retry-After": "10"},
            )
        with ExitStack() as stack:
            stack.enter_context(service.dumps.one())
            reader = stack.enter_context(service.store.lease())
            batch, slates = stack.enter_context(reader.written(update))
            headers = {"Millstream-Batch": str(batch)}
            return Streamed(_pieces(service, slates), NDJSON, headers, stack.pop_all())

    return [Route("GET", ("slates", "{update}", "dump"), dump)]


async def _pieces(service: Service, slates: Iterator[WrittenSlate]) -> AsyncGenerator[bytes, None]:
    """The lines in pieces. Whatever ends it, no thread reads any more when it has ended."""
    reading: asyncio.Future[bytes] | None = None
    try:
        while not service.stopping.is_set():
            reading = asyncio.ensure_future(service.in_thread(_piece, slates))
            # A thread cannot be stopped: the client may leave, but this read goes to its end.
            piece = await asyncio.shield(reading)
            if not piece:
                return
            yield piece
        raise CutOff
    finally:
        if reading is not None and not reading.done():
            await asyncio.wait({reading})


def _piece(slates: Iterator[WrittenSlate]) -> bytes:
    lines: list[bytes] = []
    size = 0
    for slate in slates:
        lines.append(line(slate) + b"\n")
        size += len(lines[-1])
        if size >= PIECE:
            break
    return b"".join(lines)
