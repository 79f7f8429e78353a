"""Events in: POST /streams/{name}. And what is there: GET /streams, GET /streams/{name}/records.

A request is answered after its records are on disk. The answer says how many were accepted, and
which lines were refused and why; when something is wrong with the whole request, or with the disk,
none is accepted. With an Idempotency-Key a request that is sent again counts once.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.description import SourceDescription
from millstream.errors import LogError, LogLocked
from millstream.log.reader import NOWHERE
from millstream.log.writer import Appended, Entry, TagMismatch
from millstream.server.answers import Refusal, json_answer
from millstream.server.appender import Appenders, Overloaded
from millstream.server.catalogue import Catalogue
from millstream.server.numbered import begin_at
from millstream.server.paths import Route, query, whole_number
from millstream.server.records import MANY, PIECE_BYTES, Checked, RecordCheck
from millstream.server.service import Service
from millstream.server.tail import Tails

ONE = ("application/json",)
TEXT: tuple[str, ...] = ("text/plain",)
MOST_LINES = 500_000
"""In one body; what is held for a line, however short it is, comes to some hundred bytes."""
LONGEST_TAG = 200
PAGE, LONGEST_PAGE = 100, 1000
PAGE_BYTES = 4 << 20


def _say(sentence: str) -> None:
    print(f"millstream: {sentence}", file=sys.stderr, flush=True)


def routes(service: Service, catalogue: Catalogue, posting: Posting) -> list[Route]:
    reading = Reading(service, catalogue)
    return [
        Route("GET", ("streams",), reading.streams),
        Route("POST", ("streams", "{name}"), posting.post),
        Route("GET", ("streams", "{name}", "records"), reading.records),
        *Tails(service, catalogue).routes(),
    ]


class Check(Protocol):
    """Makes records of bodies."""

    most_lines: int
    """That a body may have."""
    many_types: tuple[str, ...]
    """The Content-Types of a body of many records."""

    def one(self, body: bytes) -> Checked:
        """Of a body that is a single value."""
        ...

    def many(self, body: bytes) -> Iterator[Checked]:
        """Of a body of one value a line, a piece at a time; the last result holds all."""
        ...

    def lines(self, checked: Checked) -> list[bytes]:
        """What is appended of what was accepted, asked for just before it is."""
        ...


class Posting:
    """Takes events in. One a server: it has the writers of all source logs."""

    def __init__(self, service: Service, catalogue: Catalogue) -> None:
        self._service = service
        self._catalogue = catalogue
        self._appenders = Appenders(_say, service.options.retention)
        self._checks: dict[tuple[type, SourceDescription], SourceCheck] = {}

    async def close(self) -> None:
        await self._appenders.close()

    async def post(self, request: Request) -> Response:
        query(request, ())
        name = request.path_params["name"]
        source, path = self._catalogue.source(name)
        kind = TextCheck if _type_of(request) in TEXT else SourceCheck
        check = self._checks.get((kind, source))
        if check is None:
            check = self._checks[kind, source] = kind(source)
        checked, appended = await self.taken(request, name, path, check)
        return json_answer(answer_of(name, checked, appended))

    async def taken(
        self, request: Request, name: str, path: Path, check: Check
    ) -> tuple[Checked, Appended]:
        """The records of a request, which are in the log of the source now.

        Refusal if nothing of it can be.
        """
        single = _is_single(request, check.many_types)
        tag = _tag(request)
        self.refuse_behind(name, path)
        body = await request.body()
        checked = await self._checked(check, body, single)
        if not checked.lines and not checked.refused_count:
            raise Refusal(400, "the body is empty; send one JSON value, or one a line as NDJSON")
        self._service.counters.refused += checked.refused_count
        if not checked.lines:
            count, first = checked.refused_count, checked.refused[0]
            raise Refusal(
                422,
                f"nothing was accepted: {'the record' if count == 1 else f'all {count} records'} "
                f"cannot be taken, the first (line {first.line}) because {first.error}",
                more=answer_of(name, checked, None),
            )
        digested = await self._digest(body) if tag else 0
        entry = Entry(check.lines(checked), tag, digested)
        return checked, await self.append(path, entry, len(body))

    async def append(self, path: Path, entry: Entry, size: int) -> Appended:
        """Append about `size` bytes to the log of a source; Refusal if that cannot be done now.

        Entries are appended in the order of the calls.
        """
        try:
            appended = await self._appenders.of(path).append(entry, size)
        except TagMismatch:
            raise Refusal(
                422,
                f"the Idempotency-Key {entry.tag!r} was used before, for another body; send this "
                "one with a key of its own; nothing was accepted",
            ) from None
        except Overloaded as error:
            raise Refusal(503, str(error), headers={"Retry-After": "1"}) from None
        except LogLocked as error:
            raise Refusal(409, str(error)) from None
        except LogError as error:
            raise Refusal(507, f"{error}; nothing was accepted") from None
        if not appended.repeated:
            self._service.counters.accepted += appended.count
        return appended

    async def _checked(self, check: Check, body: bytes, single: bool) -> Checked:
        if single:
            return check.one(body) if body.strip() else Checked()
        large, most = len(body) > PIECE_BYTES, check.most_lines
        if body.removesuffix(b"\n").count(b"\n") >= most:
            raise Refusal(413, f"a body must have at most {most} lines; send it in parts")
        checked = Checked()
        for part in check.many(body):
            checked = part
            if large:
                await asyncio.sleep(0)  # others are served between two pieces
        return checked

    async def _digest(self, body: bytes) -> int:
        large = len(body) > PIECE_BYTES
        return await self._service.in_thread(digest, body) if large else digest(body)

    def refuse_behind(self, name: str, path: Path) -> None:
        """Turn events away while the application has too many to take in still."""
        taken = self._service.store.progress().sources.get(name)
        position = NOWHERE if taken is None or taken.position is None else taken.position
        behind = self._catalogue.log(path).bytes_after(position)
        most = self._service.options.backlog_bytes
        if behind > most:
            raise Refusal(
                503,
                f"the application is {behind} bytes behind in source {name!r}, and at most {most} "
                "may wait; send it again later, or start the application if it does not run",
                headers={"Retry-After": "1"},
            )


class SourceCheck(RecordCheck):
    """Takes lines as they come."""

    most_lines = MOST_LINES
    many_types = MANY + TEXT  # of which text is for `TextCheck`

    def lines(self, checked: Checked) -> list[bytes]:
        return checked.lines


class TextCheck(SourceCheck):
    """Makes records of lines of text."""

    many_types = TEXT

    def many(self, body: bytes) -> Iterator[Checked]:
        return self.text(body)


class Reading:
    """Says which streams there are, and what is in their logs."""

    def __init__(self, service: Service, catalogue: Catalogue) -> None:
        self._service = service
        self._catalogue = catalogue

    async def streams(self, request: Request) -> Response:
        query(request, ())
        found = []
        for stream in self._catalogue.streams().values():
            logged = stream.log is not None
            found.append(
                {
                    "name": stream.name,
                    "kind": stream.kind,
                    "posts": stream.posts,
                    "tails": logged,
                    "address": stream.source and stream.source.address,
                    "records": self._catalogue.log(stream.log).end if stream.log else None,
                }
            )
        return json_answer({"streams": found})

    async def records(self, request: Request) -> Response:
        """A page of records; it may be shorter than asked for when they are large."""
        name = request.path_params["name"]
        found = query(request, ("from", "limit"))
        limit = whole_number(found, "limit", PAGE, 1, LONGEST_PAGE)
        log = self._catalogue.log_of(name)
        begin = max(log.start, begin_at(found.get("from", "end"), log.start, log.end))
        await log.locate(begin, self._service)
        at, size = begin, 0
        records: list[dict[str, Any]] = []
        while len(records) < limit and size < PAGE_BYTES:
            lines = log.lines(at, limit - len(records), PAGE_BYTES - size)
            if not lines:
                break
            records += [
                {"record": number, "value": msgspec.Raw(line)}
                for number, line in enumerate(lines, at)
            ]
            at += len(lines)
            size += sum(map(len, lines))
        return json_answer({"stream": name, "records": records, "next": at, "end": log.end})


def answer_of(name: str, checked: Checked, appended: Appended | None) -> dict[str, Any]:
    """What whoever has sent records is told."""
    return {
        "stream": name,
        "accepted": appended.count if appended else 0,
        "refused": checked.refused,
        "refused_count": checked.refused_count,
        "first": appended.first if appended else None,
        "repeated": appended.repeated if appended else False,
    }


def _type_of(request: Request) -> str:
    given: str = request.headers.get("content-type", "")
    return given.partition(";")[0].strip().lower()


def _is_single(request: Request, many: tuple[str, ...]) -> bool:
    """Whether the body is one value; False if it is one a line. Refusal for other types."""
    given = request.headers.get("content-type", "")
    kind, parameters = _type_of(request), (one.strip().lower() for one in given.split(";")[1:])
    charsets = [one for one in parameters if one.startswith("charset=")]
    if kind not in ONE + many:
        text = f", or {TEXT[0]} for lines of text" if TEXT[0] in many else ""
        raise Refusal(
            415,
            f"the Content-Type must be application/json for one event or {MANY[0]} for one a "
            f"line{text}; got {given[:80] or 'none'}",
        )
    if any(one.removeprefix("charset=").strip('"') != "utf-8" for one in charsets):
        raise Refusal(415, f"the body must be in UTF-8; its Content-Type says {charsets[0][:80]}")
    coding = request.headers.get("content-encoding", "identity")
    if coding.strip().lower() != "identity":
        raise Refusal(415, f"the body must not be compressed; its coding is {coding[:80]}")
    return kind in ONE


def _tag(request: Request) -> str:
    """The request's idempotency key; nothing if it has none."""
    tag: str | None = request.headers.get("idempotency-key")
    if tag is None:
        return ""
    if not 1 <= len(tag) <= LONGEST_TAG or not (tag.isascii() and tag.isprintable()):
        raise Refusal(
            400, f"the Idempotency-Key must be 1 to {LONGEST_TAG} printable ASCII characters"
        )
    return tag


def digest(body: bytes) -> int:
    """Tells whether two bodies are the same."""
    return int.from_bytes(sha256(body).digest()[:7])
