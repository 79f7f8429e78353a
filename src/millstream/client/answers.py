"""The server's answers, as far as the client reads them."""

from __future__ import annotations

from typing import Any

import msgspec

from millstream.client.feed_values import Follow, Item
from millstream.client.values import Refused


class Taken(msgspec.Struct):
    """The answer to events. Without `refused` it is an error that is not about single lines."""

    refused: list[Refused] | None = None
    accepted: int = 0
    refused_count: int = 0


class PutBackSaid(msgspec.Struct):
    """The answer to a request to put an action's dead letters back."""

    given: int


class Row(msgspec.Struct):
    """A slate in a page, or a line of a dump."""

    key: str
    slate: Any
    ts: int


class Page(msgspec.Struct):
    """Slates in key order; `next` is None at the end."""

    batch: int
    slates: list[Row]
    next: str | None


class Named(msgspec.Struct):
    name: str


class Updates(msgspec.Struct):
    updates: list[Named]


class Streams(msgspec.Struct):
    streams: list[dict[str, Any]]


class RecordSaid(msgspec.Struct):
    record: int


class Records(msgspec.Struct):
    """A page of a log's records; `next` is the number of the record after it."""

    records: list[RecordSaid]
    next: int


class GapSaid(msgspec.Struct, rename={"start": "from"}):
    start: int
    to: int
    """The first record after the gap."""


class FeedsTaken(msgspec.Struct):
    """The answer to records of feeds. `ids` are those of the accepted posts, None if unknown."""

    refused: list[Refused] | None = None
    accepted: int = 0
    refused_count: int = 0
    ids: list[str] | None = None


class Follows(msgspec.Struct):
    """A page of the producers that a consumer follows."""

    follows: list[Follow]
    next: str | None = None


class NewItems(msgspec.Struct):
    items: tuple[Item, ...]


class GonePost(msgspec.Struct):
    id: str
    producer: str
    ts: int


class Gone(msgspec.Struct):
    items: list[GonePost]


class Kept(msgspec.Struct):
    items: list[GonePost]
    since: int
