"""GET /slates: the updates, one slate, and pages of slates in key order.

A single slate is read on the event loop's thread: that takes microseconds, less than handing it to
another thread. But a slate may have megabytes, and hundreds of clients may ask for it at once. So
for a while after a large slate, slates are read one at a time, and other requests are served in
between.

Pages and tables may be long, and are read in a thread. A page ends at its limit or at `PAGE_BYTES`,
whichever comes first; `next` is the cursor of the next page.
"""

from __future__ import annotations

import asyncio
import time

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.messages.slates import SlateAnswer, SlateLine, SlatePage, UpdateRow, UpdatesAnswer
from millstream.nearest import did_you_mean
from millstream.server.http.answers import Refusal, Written, json_answer
from millstream.server.http.paths import Route, query, segment, whole_number
from millstream.server.http.unread_answers import LARGE
from millstream.server.service import Service
from millstream.stores.progress import Progress
from millstream.stores.reader import SlateReader, WrittenSlate

PAGE, LONGEST_PAGE = 100, 1_000
PAGE_BYTES = 4 << 20
LARGE_SECONDS = 1.0
"""Seconds after a large slate during which further slates are assumed to be large."""

_encode = msgspec.json.Encoder().encode


def routes(service: Service) -> list[Route]:
    store = service.store

    async def updates(request: Request) -> Response:
        query(request, ())
        progress = store.progress()
        known = progress.functions
        rows = [
            UpdateRow(name, kind, counts.slates if (counts := known.get(name)) else None)
            for name, kind in store.home.facts.updates.items()
        ]
        return json_answer(UpdatesAnswer(progress.batch, rows))

    async def by_path(request: Request) -> Response:
        if request.scope["query_string"]:
            query(request, ())
        params = request.scope["path_params"]
        return await one(params["update"], params["key"])

    async def by_query(request: Request) -> Response:
        update = segment(request, "update")
        parameters = query(request, ("key", "prefix", "after", "limit"))
        if "key" in parameters:
            key = parameters["key"]
            whole_number(parameters, "limit", PAGE, 1, LONGEST_PAGE)
            if (
                not key.startswith(parameters.get("prefix", ""))
                or key <= parameters.get("after", "") != ""
            ):
                known_kind(store.reader, update)
                raise Refusal(404, f"key {key[:100]!r} is not in the range of prefix and after")
            return await one(update, key)
        return await page(update, parameters)

    async def one(update: str, key: str) -> Response:
        progress, slate = await read_slate(service, update, key)
        if slate is None:
            raise Refusal(404, f"update {update!r} has no slate for key {key[:100]!r}")
        if slate.batch != progress.batch:  # another batch was committed meanwhile
            progress = store.progress()
        age = round(service.age(progress), 3)
        answer = SlateAnswer(update, key, msgspec.Raw(slate.json), slate.ts, slate.batch, age)
        return Written(_encode(answer), headers=service.fresh_headers())

    async def page(update: str, parameters: dict[str, str]) -> Response:
        limit = whole_number(parameters, "limit", PAGE, 1, LONGEST_PAGE)
        known_kind(store.reader, update)
        with store.lease() as reader:
            body = await service.in_thread(
                _page, reader, update, parameters.get("prefix", ""), parameters.get("after"), limit
            )
        return Written(body, headers=service.fresh_headers())

    return [
        Route("GET", ("slates",), updates),
        Route("GET", ("slates", "{update}", "{key}"), by_path),
        Route("GET", ("slates", "{update}"), by_query, heavy=True),
    ]


async def read_slate(
    service: Service, update: str, key: str
) -> tuple[Progress, WrittenSlate | None]:
    """Returns the slate of a key, and the progress record from before it was read.

    Raises Refusal if there is no such update.
    """
    if time.monotonic() >= service.large_until:
        progress, slate = await _read_slate(service, update, key)
    else:  # one at a time, and other requests are served between two of them
        async with service.large_reads:
            await asyncio.sleep(0)
            progress, slate = await _read_slate(service, update, key)
    if slate is not None and len(slate.json) > LARGE:
        service.large_until = time.monotonic() + LARGE_SECONDS
    return progress, slate


async def _read_slate(
    service: Service, update: str, key: str
) -> tuple[Progress, WrittenSlate | None]:
    progress, reader = service.store.now()
    if known_kind(reader, update) != "table":
        return progress, reader.get_written(update, key, progress.batch)
    with service.store.lease() as leased:
        return progress, await service.in_thread(leased.get_written, update, key)


def known_kind(reader: SlateReader, update: str) -> str:
    """Returns the kind of an update's slates; raises Refusal if there is no such update."""
    if update not in reader.updates:
        hint = did_you_mean(update, reader.updates)
        raise Refusal(404, f"there is no update {update[:100]!r}; {hint}")
    return reader.kind(update)


def line(slate: WrittenSlate) -> bytes:
    """Encodes a slate as a line of a dump."""
    return _encode(SlateLine(slate.key, msgspec.Raw(slate.json), slate.ts))


def _page(reader: SlateReader, update: str, prefix: str, after: str | None, limit: int) -> bytes:
    rows: list[SlateLine] = []
    size, more = 0, False
    with reader.written(update, prefix=prefix, after=after) as (batch, slates):
        for slate in slates:
            if len(rows) == limit or size > PAGE_BYTES:
                more = True
                break
            rows.append(SlateLine(slate.key, msgspec.Raw(slate.json), slate.ts))
            size += len(slate.key) + len(slate.json)
    return _encode(SlatePage(update, batch, rows, rows[-1].key if more else None))
