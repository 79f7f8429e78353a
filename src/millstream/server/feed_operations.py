"""What the routes of feeds take and give, for the OpenAPI document."""

from __future__ import annotations

from millstream.server.answers import NDJSON
from millstream.server.operations import (
    ACCEPTED,
    ANY,
    EVENTS,
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
    """The same object, which need not have these."""
    return {**schema, "required": [one for one in schema["required"] if one not in fields]}


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
    409: "The records come from elsewhere than an event log, or another process writes it.",
    507: "The disk is full.",
}
FROM_CURSOR = ("query", "next or previous of an answer.", TEXT)
COHERENCY = {**TEXT, "enum": ["global", "per-producer"]}

FEED_OPERATIONS = (
    Operation(
        "GET",
        "/feeds",
        "The feeds of the application: how many pairs are on push and on pull, what that rests on.",
        "Counted some seconds ago, at most.",
        record(feeds=by_name(NETWORK)),
    ),
    Operation(
        "GET",
        "/feeds/{consumer}",
        "A page of a feed, newest first.",
        "All that was acknowledged before the request. next goes on to older items, previous to "
        "newer ones; complete is false where something is left out, and left_out says what.",
        FEED,
        parameters={
            "limit": ("query", "Items; the application says how many if it is left out.", WHOLE),
            "cursor": FROM_CURSOR,
            "coherency": ("query", "Else the application's.", COHERENCY),
            "k": ("query", "Items of each producer, with per-producer coherency.", WHOLE),
            "t": ("query", "How old they may be to be sure of a place, such as 7d.", TEXT),
            "why": ("query", "1: say of each item why it was pushed or pulled.", TEXT),
            "unread": ("query", "1: count what is newer than what was seen.", TEXT),
            "view": ("query", "0: do not count this as a view.", TEXT),
            **FEEDS,
        },
        errors=NO_FEEDS,
    ),
    Operation(
        "POST",
        "/feeds/events",
        "Tell feeds something: one record, or one a line.",
        "On disk, and seen by every later read. A record has a kind and what that needs; at is "
        "the server's if it is left out, and so is the id of a post. ids are those of the posts.",
        POSTED,
        parameters={
            "Idempotency-Key": (
                "header",
                "1 to 200 printable characters: the same body sent again under it counts once.",
                TEXT,
            ),
            **FEEDS,
        },
        body={"application/json": {"type": "object"}, NDJSON: TEXT},
        errors={
            **NO_FEEDS,
            **WRITING,
            408: "The body came too slowly.",
            413: "The body is too large.",
            415: "The body is of a type that is not taken.",
            422: "Every line was refused, or the Idempotency-Key was used for another body.",
        },
    ),
    Operation(
        "PUT",
        "/feeds/{consumer}/follows/{producer}",
        "Follow a producer.",
        "On disk: its posts are in the feed from here on, the old ones too.",
        FOLLOWED,
        parameters=FEEDS,
        errors={**NO_FEEDS, **WRITING, 409: f"The producer is blocked. {WRITING[409]}"},
    ),
    Operation(
        "DELETE",
        "/feeds/{consumer}/follows/{producer}",
        "Follow a producer no more.",
        "On disk: none of its posts is in the feed from here on.",
        FOLLOWED,
        parameters=FEEDS,
        errors={**NO_FEEDS, **WRITING},
    ),
    Operation(
        "GET",
        "/feeds/{consumer}/follows",
        "Whom a consumer follows, in the order of their names.",
        "A page, each producer with its side: push or pull. next, if not null, is the cursor of "
        "the one that follows.",
        FOLLOWS,
        parameters={
            "cursor": ("query", "next of an answer: only producers past this one.", TEXT),
            "coherency": ("query", "Means nothing here.", COHERENCY),
            "limit": ("query", "", {**WHOLE, "minimum": 1, "maximum": 1_000, "default": 100}),
            **FEEDS,
        },
        errors=NO_FEEDS,
    ),
    Operation(
        "GET",
        "/feeds/{consumer}/live",
        "What comes into a feed, and what goes.",
        "Server-sent events: items with {items, batch}, new ones and those that were edited; gone "
        "with {items}, deleted or followed no more. The id of an event is a cursor: with it, or "
        "another, first comes what was missed, and kept with {items, since}, what is still there.",
        TEXT,
        media=EVENTS,
        parameters={
            "cursor": ("query", "Begin after this; else after the newest item.", TEXT),
            "coherency": ("query", "Else the application's.", COHERENCY),
            "why": ("query", "1: say of each item why it was pushed or pulled.", TEXT),
            **FEEDS,
            **LAST_EVENT,
        },
        errors=NO_FEEDS,
    ),
)
