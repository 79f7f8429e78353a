"""Sending events (POST /streams/{name}), listing streams (GET /streams) and reading their records
(GET /streams/{name}/records).

A POST is answered after its records are on disk. The answer says how many were accepted, and which
lines were refused and why. If something is wrong with the whole request, or with the disk, no
record is accepted. A request that is sent again with the same Idempotency-Key counts once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from millstream.description import SourceDescription
from millstream.errors import InputError, LogError, LogLocked
from millstream.kafka.topic_producer import ProducerFull
from millstream.log.reader import NOWHERE
from millstream.log.writer import Appended, Entry, TagMismatch
from millstream.messages.streams import (
    PostAnswer,
    PostRefused,
    RecordPage,
    StreamRecord,
    StreamRow,
    StreamsAnswer,
)
from millstream.places.place_address import place_at
from millstream.server.http.answers import Refusal, json_answer
from millstream.server.http.paths import Route, query, segment, whole_number
from millstream.server.service import Service
from millstream.server.streams.appender import WAITING_BYTES, Appenders, Overloaded
from millstream.server.streams.catalogue import OWN, Catalogue
from millstream.server.streams.numbered_records import begin_at
from millstream.server.streams.records import MANY, PIECE_BYTES, CheckedBody, RecordCheck
from millstream.server.streams.tail import Tails

ONE = ("application/json",)
TEXT: tuple[str, ...] = ("text/plain",)
MOST_LINES = 500_000
"""In one body. Even the shortest line takes about a hundred bytes of memory."""
LONGEST_TAG = 200
BEHIND_SECONDS = 0.05
"""No disk takes WAITING_BYTES in that time."""
PAGE, LONGEST_PAGE = 100, 1000
PAGE_BYTES = 4 << 20


def _say(sentence: str) -> None:
    print(f"millstream: {sentence}", file=sys.stderr, flush=True)


def routes(service: Service, catalogue: Catalogue, posting: Posting) -> list[Route]:
    reading = StreamReads(service, catalogue)
    return [
        Route("GET", ("streams",), reading.streams),
        Route("POST", ("streams", "{name}"), posting.post, "send"),
        Route("GET", ("streams", "{name}", "records"), reading.records, heavy=True),
        *Tails(service, catalogue).routes(),
    ]


class Check(Protocol):
    """Turns bodies into records."""

    most_lines: int
    """The most lines that a body may have."""
    many_types: tuple[str, ...]
    """The Content-Types of a body of many records."""

    def one(self, body: bytes) -> CheckedBody:
        """Checks a body that is a single value."""
        ...

    def many(self, body: bytes) -> Iterator[CheckedBody]:
        """Checks a body of one value per line, piece by piece; the last result holds all lines."""
        ...

    def entry(self, checked: CheckedBody, tag: str, digest: int) -> Entry:
        """Returns what to append for the accepted records; called just before the append."""
        ...


class Posting:
    """Accepts events. One per server: it has the writers of all source logs."""

    def __init__(self, service: Service, catalogue: Catalogue) -> None:
        self._service = service
        self._catalogue = catalogue
        place = place_at(service.options.place) if service.options.place else None
        self._appenders = Appenders(_say, service.options.retention, place)
        self._admitted_until: dict[Path, float] = {}
        """By log: the time until which the application surely is not too far behind."""
        self._checks: dict[tuple[type, SourceDescription], SourceCheck] = {}

    async def close(self) -> None:
        await self._appenders.close()

    async def post(self, request: Request) -> Response:
        query(request, ())
        name = segment(request, "name")
        source, path = self._catalogue.source(name)
        kind = TextCheck if _type_of(request) in TEXT else SourceCheck
        check = self._checks.get((kind, source))
        if check is None:
            check = self._checks[kind, source] = kind(source)
        into = source if path is None else path
        checked, appended = await self.taken(request, name, into, check)
        answer = PostAnswer(
            stream=name,
            accepted=appended.count,
            refused=checked.refused,
            refused_count=checked.refused_count,
            first=appended.first if path is not None else None,  # a topic does not number records
            repeated=appended.repeated,
        )
        return json_answer(answer)

    async def taken(
        self, request: Request, name: str, into: Path | SourceDescription, check: Check
    ) -> tuple[CheckedBody, Appended]:
        """Appends the records of a request to the source's log, or sends them to its topic.

        Raises Refusal if no record can be accepted.
        """
        single = _is_single(request, check.many_types)
        tag = _tag(request)
        if isinstance(into, Path):
            self.refuse_behind(name, into)
        body = await request.body()
        checked = await self._checked(check, body, single)
        if not checked.count and not checked.refused_count:
            raise Refusal(400, "the body is empty; send one JSON value, or one a line as NDJSON")
        self._service.counters.refused += checked.refused_count
        if not checked.count:
            raise _nothing_accepted(name, checked)
        body_digest = await self._digest(body) if tag else 0
        entry = check.entry(checked, tag, body_digest)
        return checked, await self.append(into, entry, len(body))

    async def append(self, into: Path | SourceDescription, entry: Entry, size: int) -> Appended:
        """Appends about `size` bytes to the log of a source, or sends them to its topic.

        Raises Refusal if that cannot be done now. Entries are appended in the order of the calls.
        """
        try:
            if isinstance(into, Path):
                appended = await self._appenders.of(into).append(entry, size)
            else:
                keys, topics = record_keys(into, entry.lines), self._catalogue.topics
                appended = await topics.send(self._service, self._appenders, into, entry, keys)
        except TagMismatch:
            raise Refusal(
                422,
                f"the Idempotency-Key {entry.tag!r} was used before, for another body; send this "
                "one with a key of its own; nothing was accepted",
            ) from None
        except (Overloaded, ProducerFull) as error:
            raise Refusal(503, str(error), headers={"Retry-After": "1"}) from None
        except LogLocked as error:
            raise Refusal(409, str(error)) from None
        except InputError as error:
            raise Refusal(503, str(error)) from None
        except LogError as error:
            if not isinstance(into, Path):
                advice = "send it again, under an Idempotency-Key, which lets it count once"
                raise Refusal(503, f"{error}; {advice}", headers={"Retry-After": "1"}) from None
            raise Refusal(507, f"{error}; nothing was accepted") from None
        if not appended.repeated:
            self._service.counters.accepted += appended.count
        return appended

    async def _checked(self, check: Check, body: bytes, single: bool) -> CheckedBody:
        large, most = len(body) > PIECE_BYTES, check.most_lines
        if single:
            if not body.strip():
                return CheckedBody()
            return await self._service.in_thread(check.one, body) if large else check.one(body)
        if len(body) >= most and body.removesuffix(b"\n").count(b"\n") >= most:
            raise Refusal(413, f"a body must have at most {most} lines; send it in parts")
        checked, parts = CheckedBody(), check.many(body)
        if not large:
            return next(reversed(list(parts)), checked)
        while (part := await self._service.in_thread(next, parts, None)) is not None:
            checked = part  # other requests are served between two parts
        return checked

    async def _digest(self, body: bytes) -> int:
        large = len(body) > PIECE_BYTES
        return await self._service.in_thread(digest, body) if large else digest(body)

    def refuse_behind(self, name: str, path: Path) -> None:
        """Raises Refusal while the application is too far behind the source's log.

        As long as it is far from that, the log is looked at every BEHIND_SECONDS only.
        """
        now = time.monotonic()
        if now < self._admitted_until.get(path, 0):
            return
        read = self._service.store.progress().sources.get(name)
        position = NOWHERE if read is None or read.position is None else read.position
        behind = self._catalogue.log(path).bytes_after(position)
        most = self._service.options.backlog_bytes
        if behind > most:
            raise Refusal(
                503,
                f"the application is {behind} bytes behind in source {name!r}, and at most {most} "
                "may wait; send it again later, or start the application if it does not run",
                headers={"Retry-After": "1"},
            )
        if behind + WAITING_BYTES < most:
            self._admitted_until[path] = now + BEHIND_SECONDS


class SourceCheck(RecordCheck):
    """Checks bodies of JSON; accepted lines are appended as they are."""

    most_lines = MOST_LINES
    many_types = MANY + TEXT  # text is handled by `TextCheck`

    def entry(self, checked: CheckedBody, tag: str, digest: int) -> Entry:
        return Entry(checked.payload, checked.count, tag, digest)


class TextCheck(SourceCheck):
    """Turns lines of text into records."""

    many_types = TEXT

    def many(self, body: bytes) -> Iterator[CheckedBody]:
        return self.text(body)


class StreamReads:
    """Lists the streams, and reads pages of their logs."""

    def __init__(self, service: Service, catalogue: Catalogue) -> None:
        self._service = service
        self._catalogue = catalogue

    async def streams(self, request: Request) -> Response:
        query(request, ())
        listing = []
        streams = {**self._catalogue.streams(), **self._catalogue.failed()}
        for stream in streams.values():
            logged = stream.log is not None
            listing.append(
                StreamRow(
                    name=stream.name,
                    kind=stream.kind,
                    posts=stream.posts,
                    tails=logged,
                    address=None if stream.source is None else stream.source.address,
                    records=self._catalogue.log(stream.log).end if stream.log else None,
                )
            )
        return json_answer(StreamsAnswer(listing))

    async def records(self, request: Request) -> Response:
        """Answers with a page of records; it may be shorter than `limit` if they are large."""
        name = segment(request, "name")
        parameters = query(request, ("from", "limit"))
        limit = whole_number(parameters, "limit", PAGE, 1, LONGEST_PAGE)
        log = self._catalogue.log_of(name)
        begin = max(log.start, begin_at(parameters.get("from", "end"), log.start, log.end))
        await log.locate(begin, self._service)
        at, size = begin, 0
        records: list[StreamRecord] = []
        while len(records) < limit and size < PAGE_BYTES:
            lines = log.lines(at, limit - len(records), PAGE_BYTES - size)
            if not lines:
                break
            records += [
                StreamRecord(number, msgspec.Raw(line)) for number, line in enumerate(lines, at)
            ]
            at += len(lines)
            size += sum(map(len, lines))
        retried: list[int] = []
        if name in OWN:
            await self._service.in_thread(self._catalogue.retried.update)
            retried = self._catalogue.retried.among(name, begin, at)
        return json_answer(RecordPage(name, records, at, log.end, retried))


def record_keys(source: SourceDescription, lines: list[bytes]) -> list[bytes | None]:
    """Returns the keys of records in a topic: the keys of their events; None where unknown."""
    if not source.whole or source.key is None:
        return [None] * len(lines)
    extract = replace(source.source(), ts=None).extractor()
    return [extract(msgspec.json.decode(line), 0)[1].encode() for line in lines]


def _nothing_accepted(name: str, checked: CheckedBody) -> Refusal:
    count, first = checked.refused_count, checked.refused[0]
    sentence = (
        f"nothing was accepted: {'the record' if count == 1 else f'all {count} records'} "
        f"cannot be taken, the first (line {first.line}) because {first.error}"
    )
    message = PostRefused(
        stream=name,
        accepted=0,
        refused=checked.refused,
        refused_count=count,
        first=None,
        repeated=False,
        error=sentence,
        status=422,
    )
    return Refusal(422, sentence, message=message)


def _type_of(request: Request) -> str:
    content_type: str = request.headers.get("content-type", "")
    return content_type.partition(";")[0].strip().lower()


def _is_single(request: Request, many: tuple[str, ...]) -> bool:
    """True if the body is one value, False if it is one per line. Raises Refusal otherwise."""
    content_type = request.headers.get("content-type", "")
    kind, parameters = (
        _type_of(request),
        (parameter.strip().lower() for parameter in content_type.split(";")[1:]),
    )
    charsets = [parameter for parameter in parameters if parameter.startswith("charset=")]
    if kind not in ONE + many:
        text = f", or {TEXT[0]} for lines of text" if TEXT[0] in many else ""
        raise Refusal(
            415,
            f"the Content-Type must be application/json for one event or {MANY[0]} for one a "
            f"line{text}; got {content_type[:80] or 'none'}",
        )
    if any(parameter.removeprefix("charset=").strip('"') != "utf-8" for parameter in charsets):
        raise Refusal(415, f"the body must be in UTF-8; its Content-Type says {charsets[0][:80]}")
    coding = request.headers.get("content-encoding", "identity")
    if coding.strip().lower() != "identity":
        raise Refusal(415, f"the body must not be compressed; its coding is {coding[:80]}")
    return kind in ONE


def _tag(request: Request) -> str:
    """Returns the request's idempotency key; empty if it has none."""
    tag: str | None = request.headers.get("idempotency-key")
    if tag is None:
        return ""
    if not 1 <= len(tag) <= LONGEST_TAG or not (tag.isascii() and tag.isprintable()):
        raise Refusal(
            400, f"the Idempotency-Key must be 1 to {LONGEST_TAG} printable ASCII characters"
        )
    return tag


def digest(body: bytes) -> int:
    """Returns a number that identifies the content of a body."""
    return int.from_bytes(sha256(body).digest()[:7])
