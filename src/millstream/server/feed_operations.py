"""The parameters, bodies and answers of the routes of feeds, for the OpenAPI document."""

from __future__ import annotations

from millstream.server.answers import NDJSON
from millstream.server.operations import (
    ACCEPTED,
    ANY,
    EVENT,
    EVENTS,
    IDEMPOTENCY_KEY,
    LAST_EVENT,
    NUMBER,
    TEXT,
    WHOLE,
    YES_NO,
    Operation,
    Schema,
    by_name,
    listed,
    maybe,
    record,
)

FEEDS = {"feeds": ("query", "Which feeds, where the application has several.", TEXT)}
NO_FEEDS = {404: "The application has no feeds, or none of this name."}
KINDS = ("push", "pull", "pending")


def optional(schema: Schema, *fields: str) -> Schema:
    """Returns the schema with these fields no longer required."""
    return {**schema, "required": [name for name in schema["required"] if name not in fields]}


WHY = record(side=TEXT, query_rate=NUMBER, event_rate=NUMBER, ratio=NUMBER)
ITEM = optional(
    record(
        id=TEXT,
        producer=TEXT,
        ts=WHOLE,
        value=ANY,
        edited=maybe(WHOLE),
        via=maybe(TEXT),
        how={**TEXT, "enum": list(KINDS)},
        unread=maybe(YES_NO),
        why=WHY,
    ),
    "why",
)
POSITION: Schema = {"type": "array", "prefixItems": [WHOLE, TEXT, TEXT]}
LEFT_OUT = maybe(record(producers=WHOLE, reason=TEXT))
FEED = record(
    feeds=TEXT,
    consumer=TEXT,
    batch=WHOLE,
    age=NUMBER,
    coherency=TEXT,
    items=listed(ITEM),
    next=maybe(TEXT),
    previous=maybe(TEXT),
    unread=maybe(record(count=WHOLE, more=YES_NO)),
    seen=maybe(POSITION),
    complete=YES_NO,
    left_out=LEFT_OUT,
)
FOLLOWS = record(
    feeds=TEXT,
    consumer=TEXT,
    batch=WHOLE,
    follows=listed(record(producer=TEXT, side=TEXT)),
    count=WHOLE,
    next=maybe(TEXT),
    complete=YES_NO,
    left_out=LEFT_OUT,
)
FOLLOWED = record(consumer=TEXT, producer=TEXT, follows=YES_NO)
NETWORK = record(
    coherency=TEXT,
    policy=TEXT,
    decide=TEXT,
    producers=WHOLE,
    consumers=WHOLE,
    pairs=WHOLE,
    pushed=WHOLE,
    pulled=WHOLE,
    under_way=WHOLE,
    high=maybe(NUMBER),
    low=maybe(NUMBER),
    ratio=NUMBER,
    reads=WHOLE,
    latency=record(p50=maybe(NUMBER), p95=maybe(NUMBER), p99=maybe(NUMBER)),
    batch=WHOLE,
)
POSTED = {
    **ACCEPTED,
    "required": [*ACCEPTED["required"], "ids"],
    "properties": {**ACCEPTED["properties"], "ids": listed(TEXT)},
}
WRITING = {
    409: "The records of the feeds are not in an event log, or another process writes it.",
    507: "The disk is full.",
}
FROM_CURSOR = ("query", "next or previous of an answer.", TEXT)
COHERENCY = {**TEXT, "enum": ["global", "per-producer"]}

FEED_OPERATIONS = (
    Operation(
        "GET",
        "/feeds",
        "The feeds of the application: how many pairs are on push and on pull, and why.",
        "At most a few seconds old.",
        record(feeds=by_name(NETWORK)),
    ),
    *(
        Operation(
            "GET",
            path,
            summary,
            "Includes all that was acknowledged before the request. next leads to older items, "
            "previous to newer ones; complete is false if something is left out, and left_out "
            "says what.",
            FEED,
            parameters={
                "limit": (
                    "query",
                    "The number of items; the application's default if it is left out.",
                    WHOLE,
                ),
                "cursor": FROM_CURSOR,
                "coherency": ("query", "Default: the application's.", COHERENCY),
                "k": ("query", "Items of each producer, with per-producer coherency.", WHOLE),
                "t": ("query", "The age up to which items are sure of a place, such as 7d.", TEXT),
                "why": ("query", "1: say of each item why it was pushed or pulled.", TEXT),
                "unread": ("query", "1: count the items that are newer than those seen.", TEXT),
                "Millstream-View": (
                    "header",
                    "1: count this as a view of the feed by its consumer; views decide what is "
                    "pushed. Only for a first page, and with a token that may send.",
                    {"type": "string", "enum": ["1"]},
                ),
                **FEEDS,
            },
            errors=NO_FEEDS,
        )
        for path, summary in {
            "/feeds/{consumer}": "A page of a feed, newest first.",
            "/feeds/events": "The feed of a consumer whose name is events.",
        }.items()
    ),
    Operation(
        "POST",
        "/feeds/events",
        "Send records to feeds: one, or one per line.",
        "On disk, and seen by every later read. A record has a kind and the fields of that kind. "
        "The server sets at, and the id of a post, if they are left out. ids are those of the "
        "posts.",
        POSTED,
        parameters={
            **IDEMPOTENCY_KEY,
            **FEEDS,
        },
        body={"application/json": {"type": "object"}, NDJSON: TEXT},
        errors={
            **NO_FEEDS,
            **WRITING,
            408: "The body came too slowly.",
            413: "The body is too large.",
            415: "The body has a type that is not accepted.",
            422: "Every line was refused, or the Idempotency-Key was used for another body.",
        },
    ),
    Operation(
        "PUT",
        "/feeds/{consumer}/follows/{producer}",
        "Follow a producer.",
        "On disk: from now on the producer's posts are in the feed, the old ones too.",
        FOLLOWED,
        parameters=FEEDS,
        errors={**NO_FEEDS, **WRITING, 409: f"The producer is blocked. {WRITING[409]}"},
    ),
    Operation(
        "DELETE",
        "/feeds/{consumer}/follows/{producer}",
        "Stop following a producer.",
        "On disk: from now on none of its posts is in the feed.",
        FOLLOWED,
        parameters=FEEDS,
        errors={**NO_FEEDS, **WRITING},
    ),
    Operation(
        "GET",
        "/feeds/{consumer}/follows",
        "The producers that a consumer follows, by name.",
        "A page, each producer with its side: push or pull. next, if not null, is the cursor of "
        "the next page.",
        FOLLOWS,
        parameters={
            "cursor": ("query", "next of an answer: only producers after this one.", TEXT),
            "coherency": ("query", "Has no effect here.", COHERENCY),
            "limit": ("query", "", {**WHOLE, "minimum": 1, "maximum": 1_000, "default": 100}),
            **FEEDS,
        },
        errors=NO_FEEDS,
    ),
    Operation(
        "GET",
        "/feeds/{consumer}/live",
        "The changes of a feed, live.",
        "Server-sent events: items with {items, batch}, new and edited ones; gone with {items}, "
        "deleted or no longer followed. The id of an event is a cursor. With a cursor, the first "
        "events are the missed changes, and kept with {items, since}: the items still in the feed.",
        EVENT,
        media=EVENTS,
        parameters={
            "cursor": ("query", "Begin after this; default: after the newest item.", TEXT),
            "coherency": ("query", "Default: the application's.", COHERENCY),
            "why": ("query", "1: say of each item why it was pushed or pulled.", TEXT),
            **FEEDS,
            **LAST_EVENT,
        },
        errors=NO_FEEDS,
    ),
)
