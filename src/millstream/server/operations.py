"""What each route takes and gives, for the OpenAPI document. Data, and short words to write it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from millstream.server.answers import NDJSON

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
YES_NO: Schema = {"type": "boolean"}
ANY: Schema = {}


def maybe(schema: Schema) -> Schema:
    """It, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def record(**fields: Schema) -> Schema:
    """An object that has all of these."""
    return {"type": "object", "required": list(fields), "properties": fields}


def listed(schema: Schema) -> Schema:
    return {"type": "array", "items": schema}


def by_name(schema: Schema) -> Schema:
    """An object with any names, each of which has one of these."""
    return {"type": "object", "additionalProperties": schema}


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
    """By name: where it is (query, header), what it says, its schema."""
    body: Mapping[str, Schema] = field(default_factory=dict)
    """By its media type."""
    errors: Mapping[int, str] = field(default_factory=dict)
    answer_headers: Mapping[str, tuple[str, Schema]] = field(default_factory=dict)


EVENTS = "text/event-stream"
SLATE = record(key=TEXT, slate=ANY, ts=WHOLE)
ONE_SLATE = record(update=TEXT, key=TEXT, slate=ANY, ts=WHOLE, batch=WHOLE, age=NUMBER)
NO_UPDATE = {404: "There is no such update."}
NO_SLATE = {404: "There is no such update, or it has no slate for this key."}
NO_STREAM = {404: "There is no such stream.", 409: "The stream is not in an event log."}
LAST_EVENT = {"Last-Event-ID": ("header", "The id of the last event received.", TEXT)}
FROM = ("query", "end, start, a record's number, or -N for N records before the end.", TEXT)
ACCEPTED = record(
    stream=TEXT,
    accepted=WHOLE,
    refused=listed(record(line=WHOLE, error=TEXT, text=TEXT)),
    refused_count=WHOLE,
    first=maybe(WHOLE),
    repeated=YES_NO,
)
DELIVERIES = record(
    taken=WHOLE,
    processed=WHOLE,
    dropped=WHOLE,
    diverted=WHOLE,
    waiting=WHOLE,
    dead_letters=WHOLE,
    late=WHOLE,
    residual=WHOLE,
)
NODE_ACCOUNT = record(
    read=WHOLE, on_time=WHOLE, late=WHOLE, shed=WHOLE, dead=WHOLE, residual=WHOLE, gaps=WHOLE
)
"""Of a node of a job: read = on_time + late + shed + dead; `gaps`: panes that have lost bytes."""
JOB_SUMMARY = record(nodes=by_name(NODE_ACCOUNT), residual=WHOLE, open=WHOLE, closed=WHOLE)
STATUS = record(
    app=TEXT,
    order=TEXT,
    running=YES_NO,
    batch=WHOLE,
    written=maybe(WHOLE),
    age=maybe(NUMBER),
    clock=maybe(WHOLE),
    events=WHOLE,
    late=WHOLE,
    dead_letters=WHOLE,
    waiting=WHOLE,
    deliveries=DELIVERIES,
    intake=record(bytes=maybe(WHOLE), pressure=NUMBER, held=WHOLE),
    feedback=WHOLE,
    horizon=maybe(WHOLE),
    rate=NUMBER,
    seconds=NUMBER,
    batch_seconds=maybe(NUMBER),
    latency=record(last=maybe(NUMBER), p50=maybe(NUMBER), p99=maybe(NUMBER)),
    sources=listed(
        record(
            name=TEXT,
            address=TEXT,
            events=WHOLE,
            rate=NUMBER,
            lag_bytes=maybe(WHOLE),
            lag_events=maybe(WHOLE),
            lag_seconds=maybe(NUMBER),
            highest=maybe(WHOLE),
            dead_letters=WHOLE,
        )
    ),
    streams=listed(record(name=TEXT, events=WHOLE, rate=NUMBER)),
    functions=listed(
        record(
            name=TEXT,
            kind=TEXT,
            processed=WHOLE,
            rate=NUMBER,
            seconds=NUMBER,
            microseconds=maybe(NUMBER),
            busy=NUMBER,
            dead_letters=WHOLE,
            waiting=WHOLE,
            deliveries=DELIVERIES,
            slates=maybe(WHOLE),
            swept=maybe(WHOLE),
            evicted=maybe(WHOLE),
            unranked=maybe(WHOLE),
            largest=maybe(record(key=TEXT, bytes=WHOLE)),
        )
    ),
    queues=listed(record(function=TEXT, waiting=WHOLE)),
    slowest=listed(TEXT),
    troubles=listed(record(name=TEXT, since=WHOLE, error=TEXT)),
    actions=listed(
        record(
            name=TEXT,
            address=TEXT,
            done=WHOLE,
            waiting=WHOLE,
            failed=WHOLE,
            dead_letters=WHOLE,
            missed=WHOLE,
            retrying=maybe(record(since=WHOLE, tries=WHOLE, error=TEXT)),
            trouble=maybe(TEXT),
        )
    ),
    jobs=by_name(JOB_SUMMARY),
    server=record(
        since=WHOLE,
        requests=WHOLE,
        accepted=WHOLE,
        refused=WHOLE,
        answers={"type": "object", "additionalProperties": WHOLE},
        url=TEXT,
    ),
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
        errors=NO_SLATE,
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
            "key": ("query", "This slate only; any characters.", TEXT),
            "prefix": ("query", "Only keys that begin so.", TEXT),
            "after": ("query", "Only keys past this one.", TEXT),
            "limit": ("query", "", {**WHOLE, "minimum": 1, "maximum": 1_000, "default": 100}),
        },
        errors=NO_SLATE,
    ),
    Operation(
        "GET",
        "/slates/{update}/dump",
        "Every slate, one JSON object a line, in key order.",
        "All of one batch. A connection that breaks before the answer's end is not the whole.",
        SLATE,
        media=NDJSON,
        errors=NO_UPDATE,
        answer_headers={"Millstream-Batch": ("The batch that it is of.", WHOLE)},
    ),
    *(
        Operation(
            "GET",
            path,
            "A slate now and whenever it changes.",
            "Server-sent events: slate with {key, slate, ts, batch, age}; gone with {key, batch}.",
            TEXT,
            media=EVENTS,
            parameters={**parameters, **LAST_EVENT},
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
        "All of them, with what can be done with each.",
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
        "Send events to a source: one, or one a line.",
        "On disk. Each line that was refused is named with its reason, up to a hundred.",
        ACCEPTED,
        parameters={
            "Idempotency-Key": (
                "header",
                "1 to 200 printable characters: the same body sent again under it counts once.",
                TEXT,
            )
        },
        body={"application/json": ANY, NDJSON: TEXT, "text/plain": TEXT},
        errors={
            404: "There is no such source.",
            408: "The body came too slowly.",
            409: "The source reads something else than an event log, or another writes its log.",
            413: "The body is too large.",
            415: "The body is of a type that is not taken.",
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
        TEXT,
        media=EVENTS,
        parameters={
            "from": FROM,
            "limit": ("query", "End after so many records.", WHOLE),
            **LAST_EVENT,
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
    Operation("GET", "/status", "How the application is doing.", "Now.", STATUS),
    Operation(
        "GET",
        "/history",
        "The last minutes, in equal steps.",
        "Lists of equal length.",
        {"type": "object", "additionalProperties": listed(maybe(NUMBER))},
        parameters={
            "seconds": ("query", "", {**WHOLE, "minimum": 1, "maximum": 600, "default": 300})
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
        ),
        errors={404: "The application has not left a description yet."},
    ),
    Operation("GET", "/metrics", "For Prometheus.", "Its text format.", TEXT, media="text/plain"),
    Operation(
        "GET",
        "/healthz",
        "Whether the store can be read.",
        "It can.",
        record(ok=YES_NO, running=YES_NO, batch=WHOLE),
    ),
    Operation("GET", "/openapi.json", "This document.", "It.", {"type": "object"}),
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
