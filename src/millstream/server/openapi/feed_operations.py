"""The parameters, bodies and answers of the routes of feeds, for the OpenAPI document."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from millstream.feeds.reads.answers import MOST_K, MOST_LIMIT, Age, Flag
from millstream.feeds.reads.cursor import CursorText
from millstream.messages.feeds import (
    FeedPage,
    FeedPostAnswer,
    FeedsAnswer,
    FollowAnswer,
    FollowsPage,
)
from millstream.messages.streams import ServerSentEvent
from millstream.server.feeds.feed_stamps import SentRecord
from millstream.server.http.answers import NDJSON
from millstream.server.openapi.operations import (
    EVENTS,
    IDEMPOTENCY_KEY,
    LIMIT,
    Lines,
    Operation,
    Parameter,
    whole,
)

FEEDS = Parameter("feeds", "Which feeds, where the application has several.")
NO_FEEDS = {404: "The application has no feeds, or none of this name."}
NO_PAGE = {
    404: "The application has no feeds, or none of this name; or the cursor is not from an answer.",
    409: "The cursor does not fit the other parameters.",
}
WRITING = {
    409: "The records of the feeds are not in an event log, or another process writes it.",
    507: "The disk is full.",
}
COHERENCY = Parameter("coherency", "Default: the application's.", Literal["global", "per-producer"])
UNUSED_COHERENCY = Parameter("coherency", "Has no effect here.", COHERENCY.type)
WHY = Parameter("why", "1: say of each item why it was pushed or pulled.", Flag)

FEED_OPERATIONS = (
    Operation(
        "GET",
        "/feeds",
        "The feeds of the application: how many pairs are on push and on pull, and why.",
        "At most a few seconds old.",
        FeedsAnswer,
    ),
    *(
        Operation(
            "GET",
            path,
            summary,
            "Includes all that was acknowledged before the request. next leads to older items, "
            "previous to newer ones; complete is false if something is left out, and left_out "
            "says what.",
            FeedPage,
            parameters=(
                Parameter(
                    "limit",
                    "The number of items; the application's default if it is left out.",
                    whole(1, MOST_LIMIT),
                ),
                Parameter("cursor", "next or previous of an answer.", CursorText),
                COHERENCY,
                Parameter(
                    "k",
                    "Items of each producer, with per-producer coherency.",
                    whole(1, MOST_K),
                ),
                Parameter("t", "The age up to which items are sure of a place, such as 7d.", Age),
                WHY,
                Parameter(
                    "unread",
                    "1: count the items that are newer than those seen.",
                    Flag,
                ),
                Parameter(
                    "Millstream-View",
                    "1: count this as a view of the feed by its consumer; views decide what is "
                    "pushed. Only for a first page, and with a token that may send.",
                    Literal["1"],
                    location="header",
                ),
                FEEDS,
            ),
            errors=NO_PAGE,
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
        FeedPostAnswer,
        parameters=(IDEMPOTENCY_KEY, FEEDS),
        body={"application/json": SentRecord, NDJSON: Lines},
        errors={
            **NO_FEEDS,
            **WRITING,
            415: "The body has a type that is not accepted.",
            422: "Every line was refused, or the Idempotency-Key was used for another body.",
        },
    ),
    Operation(
        "PUT",
        "/feeds/{consumer}/follows/{producer}",
        "Follow a producer.",
        "On disk: from now on the producer's posts are in the feed, the old ones too.",
        FollowAnswer,
        parameters=(FEEDS,),
        errors={**NO_FEEDS, **WRITING, 409: f"The producer is blocked. {WRITING[409]}"},
    ),
    Operation(
        "DELETE",
        "/feeds/{consumer}/follows/{producer}",
        "Stop following a producer.",
        "On disk: from now on none of its posts is in the feed.",
        FollowAnswer,
        parameters=(FEEDS,),
        errors={**NO_FEEDS, **WRITING},
    ),
    Operation(
        "GET",
        "/feeds/{consumer}/follows",
        "The producers that a consumer follows, by name.",
        "A page, each producer with its side: push or pull. next, if not null, is the cursor of "
        "the next page.",
        FollowsPage,
        parameters=(
            Parameter("cursor", "next of an answer: only producers after this one."),
            UNUSED_COHERENCY,
            LIMIT,
            FEEDS,
        ),
        errors=NO_FEEDS,
    ),
    Operation(
        "GET",
        "/feeds/{consumer}/live",
        "The changes of a feed, live.",
        "Server-sent events: items with {items, batch}, new and edited ones; gone with {items}, "
        "deleted or no longer followed. The id of an event is a cursor. With a cursor, the first "
        "events are the missed changes, and kept with {items, since}: the items still in the feed.",
        ServerSentEvent,
        media=EVENTS,
        parameters=(
            Parameter("cursor", "Begin after this; default: after the newest item.", CursorText),
            UNUSED_COHERENCY,
            WHY,
            FEEDS,
            Parameter(
                "Last-Event-ID",
                "The id of the last event received; takes precedence over cursor.",
                CursorText | Annotated[str, Meta(max_length=0)],
                location="header",
            ),
        ),
        errors=NO_PAGE,
    ),
)
