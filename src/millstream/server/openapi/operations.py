"""The parameters, bodies and answers of each route, as data for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from msgspec import Meta

from millstream.description import Description
from millstream.feeds.records import Name
from millstream.messages.letters import (
    ActionRetryAnswer,
    ActionRetryQuestion,
    Retried,
    RetryQuestion,
)
from millstream.messages.slates import SlateAnswer, SlateLine, SlatePage, UpdatesAnswer
from millstream.messages.status import HealthAnswer, History, Status
from millstream.messages.streams import PostAnswer, RecordPage, ServerSentEvent, StreamsAnswer
from millstream.server.http.answers import NDJSON
from millstream.trees.messages import NodeName

PLACES = {"consumer": Name, "node": NodeName, "producer": Name}
"""The types of parameters in paths that are not any text."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a route besides those in its path, or a header of its answer."""

    name: str
    description: str
    type: Any = str
    location: Literal["query", "header"] = "query"
    required: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """One route. Bodies, answers and parameters have types, which become schemas."""

    method: str
    path: str
    summary: str
    answer: str
    type: Any
    """The type of the answer; a tuple: one of these types."""
    media: str = "application/json"
    parameters: tuple[Parameter, ...] = ()
    body: Mapping[str, Any] = field(default_factory=dict)
    """The type of the body, by media type."""
    body_required: bool = True
    errors: Mapping[int, str] = field(default_factory=dict)
    headers: tuple[Parameter, ...] = ()
    """The headers of the answer."""

    @property
    def places(self) -> list[str]:
        """The names of the parameters in the path."""
        return [word[1:-1] for word in self.path.split("/") if word.startswith("{")]

    def types(self) -> list[Any]:
        """Returns all types: the answer, parameters of the path, others, bodies, headers."""
        return [
            *self.answer_types,
            *(PLACES.get(place, str) for place in self.places),
            *(parameter.type for parameter in self.parameters),
            *self.body.values(),
            *(header.type for header in self.headers),
        ]

    @property
    def answer_types(self) -> tuple[Any, ...]:
        return self.type if isinstance(self.type, tuple) else (self.type,)


def whole(least: int, most: int, default: int | None = None) -> Any:
    """The type of a whole number within bounds."""
    extra = None if default is None else {"default": default}
    return Annotated[int, Meta(ge=least, le=most, extra_json_schema=extra)]


EVENTS = "text/event-stream"
NO_UPDATE = {404: "There is no such update."}
ELSEWHERE = {421: "This server has only some shards of the store, and not the one that is needed."}
FRESH = Parameter(
    "Millstream-Asked-Age",
    "Of a mirror of a shared store: seconds since the place last answered.",
    float,
)
NO_SLATE = {404: "There is no such update, or it has no slate for this key."}
NO_STREAM = {404: "There is no such stream.", 409: "The stream is not in an event log."}
LAST_EVENT = Parameter("Last-Event-ID", "The id of the last event received.", location="header")
FROM = Parameter(
    "from",
    "end, start, a record's number, or -N for N records before the end.",
    Annotated[str, Meta(pattern="^(start|end|-?[0-9]{1,18})$")],
)
LIMIT = Parameter("limit", "", whole(1, 1_000, default=100))
Lines = Annotated[str, Meta(pattern="\\S")]
"""A body of lines, not all of them blank."""
IDEMPOTENCY_KEY = Parameter(
    "Idempotency-Key",
    "1 to 200 printable characters: the same body sent again under it counts once.",
    Annotated[str, Meta(pattern="^[!-~]([ -~]{0,198}[!-~])?$")],
    location="header",
)
OPERATIONS = (
    Operation(
        "GET",
        "/slates",
        "The updates and how many slates each has.",
        "As of the last committed batch.",
        UpdatesAnswer,
    ),
    Operation(
        "GET",
        "/slates/{update}/{key}",
        "One slate. The keys dump, watch and the empty one go into ?key=.",
        "The slate as of the last committed batch.",
        SlateAnswer,
        errors={**NO_SLATE, **ELSEWHERE},
        headers=(FRESH,),
    ),
    Operation(
        "GET",
        "/slates/{update}",
        "A page of slates in key order; or one slate, with key.",
        "A page; it may be shorter than its limit. next, if not null, is the after of the "
        "next page. With key: the slate, as at /slates/{update}/{key}.",
        (SlatePage, SlateAnswer),
        parameters=(
            Parameter(
                "key",
                "Only this slate; any characters. With prefix or after: only if they include it.",
            ),
            Parameter("prefix", "Only keys with this prefix."),
            Parameter("after", "Only keys after this one."),
            LIMIT,
        ),
        errors={**NO_SLATE, **ELSEWHERE},
        headers=(FRESH,),
    ),
    Operation(
        "GET",
        "/slates/{update}/dump",
        "Every slate, one JSON object per line, in key order.",
        "All as of one batch. If the connection breaks, the answer is incomplete.",
        SlateLine,
        media=NDJSON,
        errors={**NO_UPDATE, **ELSEWHERE},
        headers=(Parameter("Millstream-Batch", "The batch of the slates.", int), FRESH),
    ),
    *(
        Operation(
            "GET",
            path,
            "A slate now and whenever it changes.",
            "Server-sent events: slate with {key, slate, ts, batch, age}; gone with {key, batch}.",
            ServerSentEvent,
            media=EVENTS,
            parameters=(*parameters, LAST_EVENT),
            errors=NO_UPDATE,
        )
        for path, parameters in {
            "/slates/{update}/{key}/watch": (),
            "/slates/{update}/watch": (
                Parameter("key", "Any characters; required.", required=True),
            ),
        }.items()
    ),
    Operation(
        "GET",
        "/streams",
        "The streams.",
        "All of them; for each, whether it takes events (posts) and can be followed (tails).",
        StreamsAnswer,
    ),
    Operation(
        "POST",
        "/streams/{name}",
        "Send events to a source: one, or one per line.",
        "The records are on disk. Refused lines are listed with the reason, up to a hundred.",
        PostAnswer,
        parameters=(IDEMPOTENCY_KEY,),
        body={"application/json": Any, NDJSON: Lines, "text/plain": Lines},
        errors={
            404: "There is no such source.",
            409: "The source does not read an event log, or another process writes its log.",
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
        ServerSentEvent,
        media=EVENTS,
        parameters=(
            FROM,
            Parameter("limit", "End after this many records.", whole(1, 10**18)),
            Parameter(
                "Last-Event-ID",
                "The number of the last record received; takes precedence over from.",
                Annotated[str, Meta(pattern="^(-1|[0-9]{1,18})?$")],
                location="header",
            ),
        ),
        errors=NO_STREAM,
    ),
    Operation(
        "GET",
        "/streams/{name}/records",
        "A page of a stream's records.",
        "The records, and where the next page begins.",
        RecordPage,
        parameters=(FROM, LIMIT),
        errors=NO_STREAM,
    ),
    Operation(
        "POST",
        "/deadletters/retry",
        "Retry dead letters, or late, dropped or diverted events.",
        "The letters to retry are on disk. Letters that were retried earlier are skipped.",
        Retried,
        body={"application/json": RetryQuestion},
        body_required=False,
        errors={
            404: "function names none, or, for diverted events, not an update that diverts.",
        },
    ),
    Operation(
        "POST",
        "/actions/{name}/retry",
        "Put the dead letters of an action back: they are carried out again, under new ids.",
        "Their number; with dry_run, the number that would be put back.",
        ActionRetryAnswer,
        body={"application/json": ActionRetryQuestion},
        body_required=False,
        errors={404: "There is no such action."},
    ),
    Operation("GET", "/status", "The state of the application.", "As of now.", Status),
    Operation(
        "GET",
        "/history",
        "The last minutes, in equal steps.",
        "Lists of equal length.",
        History,
        parameters=(
            Parameter("seconds", "", whole(1, 3600, default=300)),
            Parameter("step", "Seconds per step.", whole(1, 60, default=1)),
        ),
    ),
    Operation(
        "GET",
        "/graph",
        "The application: its functions, its streams, and how to draw them.",
        "As of its last start.",
        Description,
        errors={404: "The application has not left a description yet."},
    ),
    Operation("GET", "/metrics", "For Prometheus.", "Its text format.", str, media="text/plain"),
    Operation(
        "GET",
        "/healthz",
        "Check that the store can be read.",
        "The store can be read.",
        HealthAnswer,
    ),
    Operation("GET", "/openapi.json", "This document.", "This document.", dict[str, Any]),
    Operation("GET", "/", "The live page.", "HTML.", str, media="text/html"),
    Operation(
        "GET",
        "/page/{file}",
        "A part of the live page.",
        "The file.",
        str,
        media="*/*",
        errors={404: "The page has no such file."},
    ),
)
