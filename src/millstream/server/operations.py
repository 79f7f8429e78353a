"""The parameters, bodies and answers of each route, as data for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from millstream.letters.selection import KINDS
from millstream.server.answers import NDJSON
from millstream.server.schema_words import ANY as ANY
from millstream.server.schema_words import NUMBER as NUMBER
from millstream.server.schema_words import TEXT as TEXT
from millstream.server.schema_words import WHOLE as WHOLE
from millstream.server.schema_words import YES_NO as YES_NO
from millstream.server.schema_words import Schema as Schema
from millstream.server.schema_words import by_name as by_name
from millstream.server.schema_words import listed as listed
from millstream.server.schema_words import maybe as maybe
from millstream.server.schema_words import options as options
from millstream.server.schema_words import record as record
from millstream.server.status_schema import DELIVERIES as DELIVERIES
from millstream.server.status_schema import JOB_SUMMARY as JOB_SUMMARY
from millstream.server.status_schema import NODE_ACCOUNT as NODE_ACCOUNT
from millstream.server.status_schema import STATUS as STATUS


@dataclass(frozen=True, slots=True)
class Operation:
    """One route."""

    method: str
    path: str
    summary: str
    answer: str
    schema: Schema
    media: str = "application/json"
    parameters: Mapping[str, tuple[str, str, Schema]] = field(default_factory=dict)
    """By name: its location (query, header), its description, its schema."""
    required: tuple[str, ...] = ()
    """The required parameters besides those in the path."""
    body: Mapping[str, Schema] = field(default_factory=dict)
    """The schema of the body, by media type."""
    body_required: bool = True
    errors: Mapping[int, str] = field(default_factory=dict)
    answer_headers: Mapping[str, tuple[str, Schema]] = field(default_factory=dict)


EVENTS = "text/event-stream"
EVENT: Schema = {"type": "object", "properties": {"event": TEXT, "id": TEXT, "data": TEXT}}
"""Each event of an event stream; its data is JSON."""
SLATE = record(key=TEXT, slate=ANY, ts=WHOLE)
ONE_SLATE = record(update=TEXT, key=TEXT, slate=ANY, ts=WHOLE, batch=WHOLE, age=NUMBER)
NO_UPDATE = {404: "There is no such update."}
ELSEWHERE = {421: "This server has only some shards of the store, and not the one that is needed."}
FRESH = {
    "Millstream-Asked-Age": (
        "Of a mirror of a shared store: seconds since the place last answered.",
        NUMBER,
    )
}
NO_SLATE = {404: "There is no such update, or it has no slate for this key."}
NO_STREAM = {404: "There is no such stream.", 409: "The stream is not in an event log."}
LAST_EVENT = {"Last-Event-ID": ("header", "The id of the last event received.", TEXT)}
FROM = (
    "query",
    "end, start, a record's number, or -N for N records before the end.",
    {**TEXT, "pattern": "^(start|end|-?[0-9]{1,18})$"},
)
LINES: Schema = {**TEXT, "pattern": "\\S"}
"""A body of lines, not all of them blank."""
IDEMPOTENCY_KEY = {
    "Idempotency-Key": (
        "header",
        "1 to 200 printable characters: the same body sent again under it counts once.",
        {**TEXT, "pattern": "^[!-~]([ -~]{0,198}[!-~])?$"},
    )
}
ACCEPTED = record(
    stream=TEXT,
    accepted=WHOLE,
    refused=listed(record(line=WHOLE, error=TEXT, text=TEXT)),
    refused_count=WHOLE,
    first=maybe(WHOLE),
    repeated=YES_NO,
)
OPERATIONS = (
    Operation(
        "GET",
        "/slates",
        "The updates and how many slates each has.",
        "As of the last committed batch.",
        record(batch=WHOLE, updates=listed(record(name=TEXT, kind=TEXT, slates=maybe(WHOLE)))),
    ),
    Operation(
        "GET",
        "/slates/{update}/{key}",
        "One slate. The keys dump, watch and the empty one go into ?key=.",
        "The slate as of the last committed batch.",
        ONE_SLATE,
        errors={**NO_SLATE, **ELSEWHERE},
        answer_headers=FRESH,
    ),
    Operation(
        "GET",
        "/slates/{update}",
        "A page of slates in key order; or one slate, with key.",
        "A page; it may be shorter than its limit. next, if not null, is the after of the one "
        "that follows. With key: the slate, as at /slates/{update}/{key}.",
        {
            "oneOf": [
                record(update=TEXT, batch=WHOLE, slates=listed(SLATE), next=maybe(TEXT)),
                ONE_SLATE,
            ]
        },
        parameters={
            "key": (
                "query",
                "Only this slate; any characters. With prefix or after: only if they include it.",
                TEXT,
            ),
            "prefix": ("query", "Only keys with this prefix.", TEXT),
            "after": ("query", "Only keys after this one.", TEXT),
            "limit": ("query", "", {**WHOLE, "minimum": 1, "maximum": 1_000, "default": 100}),
        },
        errors={**NO_SLATE, **ELSEWHERE},
        answer_headers=FRESH,
    ),
    Operation(
        "GET",
        "/slates/{update}/dump",
        "Every slate, one JSON object per line, in key order.",
        "All as of one batch. If the connection breaks, the answer is incomplete.",
        SLATE,
        media=NDJSON,
        errors={**NO_UPDATE, **ELSEWHERE},
        answer_headers={"Millstream-Batch": ("The batch of the slates.", WHOLE), **FRESH},
    ),
    *(
        Operation(
            "GET",
            path,
            "A slate now and whenever it changes.",
            "Server-sent events: slate with {key, slate, ts, batch, age}; gone with {key, batch}.",
            EVENT,
            media=EVENTS,
            parameters={**parameters, **LAST_EVENT},
            required=tuple(parameters),
            errors=NO_UPDATE,
        )
        for path, parameters in {
            "/slates/{update}/{key}/watch": {},
            "/slates/{update}/watch": {"key": ("query", "Any characters; required.", TEXT)},
        }.items()
    ),
    Operation(
        "GET",
        "/streams",
        "The streams.",
        "All of them; of each, whether it can be sent to (posts) and followed (tails).",
        record(
            streams=listed(
                record(
                    name=TEXT,
                    kind=TEXT,
                    posts=YES_NO,
                    tails=YES_NO,
                    address=maybe(TEXT),
                    records=maybe(WHOLE),
                )
            )
        ),
    ),
    Operation(
        "POST",
        "/streams/{name}",
        "Send events to a source: one, or one per line.",
        "The records are on disk. Refused lines are listed with the reason, up to a hundred.",
        ACCEPTED,
        parameters=IDEMPOTENCY_KEY,
        body={"application/json": ANY, NDJSON: LINES, "text/plain": LINES},
        errors={
            404: "There is no such source.",
            408: "The body came too slowly.",
            409: "The source does not read an event log, or another process writes its log.",
            413: "The body is too large.",
            415: "The body has a type that is not accepted.",
            422: "Every line was refused, or the Idempotency-Key was used for another body.",
            507: "The disk is full.",
        },
    ),
    Operation(
        "GET",
        "/streams/{name}/tail",
        "The records of a stream as they come.",
        "Server-sent events: record, whose id is its number; gap with {from, to} where records "
        "are no longer kept.",
        EVENT,
        media=EVENTS,
        parameters={
            "from": FROM,
            "limit": (
                "query",
                "End after this many records.",
                {**WHOLE, "minimum": 1, "maximum": 10**18},
            ),
            "Last-Event-ID": (
                "header",
                "The number of the last record received; takes precedence over from.",
                {**TEXT, "pattern": "^(-1|[0-9]{1,18})?$"},
            ),
        },
        errors=NO_STREAM,
    ),
    Operation(
        "GET",
        "/streams/{name}/records",
        "A page of a stream's records.",
        "The records, and where the next page begins.",
        record(
            stream=TEXT,
            records=listed(record(record=WHOLE, value=ANY)),
            next=WHOLE,
            end=WHOLE,
        ),
        parameters={
            "from": FROM,
            "limit": ("query", "", {**WHOLE, "minimum": 1, "maximum": 1_000, "default": 100}),
        },
        errors=NO_STREAM,
    ),
    Operation(
        "POST",
        "/deadletters/retry",
        "Give dead letters, or late, dropped or diverted events, to their functions once more.",
        "On disk. Letters that were given again earlier are skipped.",
        record(given=WHOLE, before=WHOLE, impossible=by_name(WHOLE)),
        body={
            "application/json": options(
                kind={"type": "string", "enum": list(KINDS)},
                function=maybe(TEXT),
                stream=maybe(TEXT),
                error=maybe(TEXT),
                key=maybe(TEXT),
                since=maybe(WHOLE),
                until=maybe(WHOLE),
                limit=maybe({**WHOLE, "minimum": 0, "maximum": 1 << 53}),
                dry_run=YES_NO,
            )
        },
        body_required=False,
        errors={
            404: "For diverted events: function does not name an update that diverts.",
            408: "The body came too slowly.",
            413: "The body is too large.",
        },
    ),
    Operation(
        "POST",
        "/actions/{name}/retry",
        "Put the dead letters of an action back: they are carried out again, under new ids.",
        "Their number; with dry_run, the number that would be put back.",
        record(given=WHOLE),
        body={"application/json": options(dry_run=YES_NO)},
        body_required=False,
        errors={
            404: "There is no such action.",
            408: "The body came too slowly.",
            413: "The body is too large.",
        },
    ),
    Operation("GET", "/status", "How the application is doing.", "Now.", STATUS),
    Operation(
        "GET",
        "/history",
        "The last minutes, in equal steps.",
        "Lists of equal length.",
        {"type": "object", "additionalProperties": listed(maybe(NUMBER))},
        parameters={
            "seconds": ("query", "", {**WHOLE, "minimum": 1, "maximum": 3600, "default": 300}),
            "step": (
                "query",
                "Seconds per step.",
                {**WHOLE, "minimum": 1, "maximum": 60, "default": 1},
            ),
        },
    ),
    Operation(
        "GET",
        "/graph",
        "The application: its functions, its streams, and how to draw them.",
        "As of its last start.",
        record(
            app=TEXT,
            order=TEXT,
            sources=listed(ANY),
            functions=listed(ANY),
            streams=listed(TEXT),
            outputs=listed(TEXT),
            graph={"type": "object"},
            parts={"type": "object"},
            addresses=by_name(TEXT),
            folded={"type": "object"},
        ),
        errors={404: "The application has not left a description yet."},
    ),
    Operation("GET", "/metrics", "For Prometheus.", "Its text format.", TEXT, media="text/plain"),
    Operation(
        "GET",
        "/healthz",
        "Check that the store can be read.",
        "The store can be read.",
        record(ok=YES_NO, running=YES_NO, batch=WHOLE),
    ),
    Operation("GET", "/openapi.json", "This document.", "This document.", {"type": "object"}),
    Operation("GET", "/", "The live page.", "HTML.", TEXT, media="text/html"),
    Operation(
        "GET",
        "/page/{file}",
        "A part of the live page.",
        "The file.",
        TEXT,
        media="*/*",
        errors={404: "The page has no such file."},
    ),
)
