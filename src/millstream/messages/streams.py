"""Streams: GET /streams, POST /streams/{name}, their records and tails."""

from __future__ import annotations

from typing import Any

import msgspec


class StreamRow(msgspec.Struct, frozen=True):
    """A stream of the application."""

    name: str
    kind: str
    """source, output, late, deadletters, dropped, failed (the dead letters of an action), or inner
    (between functions)."""
    posts: bool
    """True if events can be sent to it."""
    tails: bool
    """True if it can be read and tailed."""
    address: str | None
    """Where a source reads; None for other streams."""
    records: int | None
    """The number of records so far; None if it has no log."""


class StreamsAnswer(msgspec.Struct, frozen=True):
    """All streams, the sources first."""

    streams: list[StreamRow]


class RefusedLine(msgspec.Struct, frozen=True):
    """A line that was not accepted."""

    line: int
    """Counted from 1, blank lines too."""
    error: str
    text: str
    """The beginning of the line."""


class PostAnswer(msgspec.Struct, frozen=True):
    """The records of a request are on disk, except for those that were refused."""

    stream: str
    accepted: int
    refused: list[RefusedLine]
    """The first hundred refused lines."""
    refused_count: int
    first: int | None
    """The number of the first accepted record; None if none was, or the stream is a topic."""
    repeated: bool
    """True if the request came before, under the same Idempotency-Key."""


class PostRefused(PostAnswer, frozen=True):
    """Every line of a request was refused."""

    error: str
    status: int


class StreamRecord(msgspec.Struct, frozen=True):
    """A record of a stream's log, with its number."""

    record: int
    value: Any


class RecordPage(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of a stream's records."""

    stream: str
    records: list[StreamRecord]
    next: int
    """The number of the record after the page."""
    end: int
    """The number of the record after the last one."""
    retried: list[int] = []
    """The numbers of dead letters, late and dropped events among them that were retried."""


class RecordGap(msgspec.Struct, frozen=True, rename={"start": "from"}):
    """The event `gap` of a tail: records from `start` up to `to`, exclusive, are not kept."""

    start: int
    to: int


class ServerSentEvent(msgspec.Struct, frozen=True):
    """An event of an event stream; `data` is JSON."""

    event: str = ""
    id: str = ""
    data: str = ""
