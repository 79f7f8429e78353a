"""GET /slates/{update}/dump: every slate of an update as of one batch, one per line.

Pieces are written in a thread, each when the client has read the one before, so memory does not
grow with the store. During a dump the store cannot reuse the space of the rows that it shows. So at
most two dumps run at once, and a client that does not read is cut off.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import ExitStack

from starlette.requests import Request
from starlette.responses import Response

from millstream.server.http.answers import NDJSON, Refusal
from millstream.server.http.paths import Route, query, segment
from millstream.server.http.streamed import CutOff, Streamed
from millstream.server.service import Service
from millstream.server.slates.slate_routes import known_kind, line
from millstream.stores.reader import WrittenSlate

PIECE = 64 << 10


def routes(service: Service) -> list[Route]:
    async def dump(request: Request) -> Response:
        query(request, ())
        update = segment(request, "update")
        known_kind(service.store.reader, update)
        if request.method == "HEAD":
            return Streamed(_pieces(service, iter(())), NDJSON)  # only its head is sent
        if service.dumps.full:
            raise Refusal(
                503,
                f"{service.dumps.most} dumps are running, the most at a time; try again later",
                headers={"Retry-After": "10"},
            )
        with ExitStack() as stack:
            stack.enter_context(service.dumps.one())
            reader = stack.enter_context(service.store.lease())
            batch, slates = stack.enter_context(reader.written(update))
            headers = {"Millstream-Batch": str(batch), **service.fresh_headers()}
            return Streamed(_pieces(service, slates), NDJSON, headers, stack.pop_all())

    return [Route("GET", ("slates", "{update}", "dump"), dump)]


async def _pieces(service: Service, slates: Iterator[WrittenSlate]) -> AsyncGenerator[bytes, None]:
    """Yields the lines in pieces. When it has ended, in whatever way, no thread still reads."""
    reading: asyncio.Future[bytes] | None = None
    try:
        while not service.stopping.is_set():
            reading = asyncio.ensure_future(service.in_thread(_piece, slates))
            # A thread cannot be stopped: even if the client disconnects, the read goes to its end.
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
