"""GET /slates: which there are, one, and pages of them in key order.

One slate is read on the event loop's thread: it takes microseconds, less than passing it to
another. Pages and tables may be long, and are read beside it. A page ends at its limit or at
`PAGE_BYTES`, whichever comes first; `next` is the cursor of the one after it.
"""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.nearest import did_you_mean
from millstream.server.answers import Refusal, Written, json_answer
from millstream.server.paths import Route, query, whole_number
from millstream.server.service import Service
from millstream.stores.progress import Progress
from millstream.stores.reader import SlateReader, WrittenSlate

PAGE, LONGEST_PAGE = 100, 1_000
PAGE_BYTES = 4 << 20

_text = msgspec.json.Encoder().encode


def routes(service: Service) -> list[Route]:
    store = service.store

    async def updates(request: Request) -> Response:
        query(request, ())
        progress = store.progress()
        listed = [
            {"name": name, "kind": kind, "slates": progress.slates.get(name)}
            for name, kind in store.home.facts.updates.items()
        ]
        return json_answer({"batch": progress.batch, "updates": listed})

    async def by_path(request: Request) -> Response:
        if request.scope["query_string"]:
            query(request, ())
        params = request.scope["path_params"]
        return await one(params["update"], params["key"])

    async def by_query(request: Request) -> Response:
        update = request.path_params["update"]
        found = query(request, ("key", "prefix", "after", "limit"))
        if "key" in found:
            if len(found) > 1:
                raise Refusal(400, "parameter 'key' asks for one slate: give it alone")
            return await one(update, found["key"])
        return await page(update, found)

    async def one(update: str, key: str) -> Response:
        progress, slate = await read_slate(service, update, key)
        if slate is None:
            raise Refusal(404, f"update {update!r} has no slate for key {key[:100]!r}")
        if slate.batch != progress.batch:  # one was committed meanwhile
            progress = store.progress()
        return Written(
            b'{"update":%b,"key":%b,"slate":%b,"ts":%d,"batch":%d,"age":%.3f}'
            % (_text(update), _text(key), slate.json, slate.ts, slate.batch, service.age(progress))
        )

    async def page(update: str, found: dict[str, str]) -> Response:
        limit = whole_number(found, "limit", PAGE, 1, LONGEST_PAGE)
        known_kind(store.reader, update)
        with store.lease() as reader:
            body = await service.in_thread(
                _page, reader, update, found.get("prefix", ""), found.get("after"), limit
            )
        return Written(body)

    return [
        Route("GET", ("slates",), updates),
        Route("GET", ("slates", "{update}", "{key}"), by_path),
        Route("GET", ("slates", "{update}"), by_query),
    ]


async def read_slate(
    service: Service, update: str, key: str
) -> tuple[Progress, WrittenSlate | None]:
    """The slate of a key, and the progress that was known before it was read.

    Refusal if there is no such update.
    """
    progress, reader = service.store.now()
    if known_kind(reader, update) != "table":
        return progress, reader.get_written(update, key, progress.batch)
    with service.store.lease() as leased:
        return progress, await service.in_thread(leased.get_written, update, key)


def known_kind(reader: SlateReader, update: str) -> str:
    """The kind of an update's slates; Refusal if there is no such update."""
    if update not in reader.updates:
        hint = did_you_mean(update, reader.updates)
        raise Refusal(404, f"there is no update {update[:100]!r}; {hint}")
    return reader.kind(update)


def line(slate: WrittenSlate) -> bytes:
    """A slate in a page or a dump."""
    return b'{"key":%b,"slate":%b,"ts":%d}' % (_text(slate.key), slate.json, slate.ts)


def _page(reader: SlateReader, update: str, prefix: str, after: str | None, limit: int) -> bytes:
    lines: list[bytes] = []
    size, last, more = 0, "", False
    with reader.written(update, prefix=prefix, after=after) as (batch, slates):
        for slate in slates:
            if len(lines) == limit or size > PAGE_BYTES:
                more = True
                break
            lines.append(line(slate))
            size += len(lines[-1])
            last = slate.key
    return b'{"update":%b,"batch":%d,"slates":[%b],"next":%b}' % (
        _text(update),
        batch,
        b",".join(lines),
        _text(last if more else None),
    )
