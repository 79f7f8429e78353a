"""The results of the client's calls."""

from __future__ import annotations

from typing import Any

import msgspec

from millstream.messages.feeds import Item, Position


class Slate(msgspec.Struct, frozen=True):
    """A slate as of a committed batch. A table's value is a dict of its entries."""

    key: str
    value: Any
    ts: int
    """The greatest ts that updated it, in microseconds since the epoch."""
    batch: int
    """The committed batch that it was read at."""
    age: float | None = None
    """Seconds since that batch was committed; None from `scan` and `dump`, which do not say."""


class Refused(msgspec.Struct, frozen=True):
    """An event that the server refused."""

    line: int
    """The number of the event, from 1, among all events of the call."""
    error: str
    text: str
    """The beginning of the event."""


class Sent(msgspec.Struct, frozen=True):
    """The result of sending the events of one call."""

    accepted: int = 0
    """Events that are on the server's disk."""
    refused: tuple[Refused, ...] = ()
    """The first refused events; see `refused_count`."""
    refused_count: int = 0


class Record(msgspec.Struct, frozen=True):
    """A record of a stream's log."""

    number: int
    value: Any


class Gap(msgspec.Struct, frozen=True):
    """Records that are missing because the log's retention has removed them.

    The next record is number `last` + 1. If that is less than `first`, this is a different log: the
    old one was removed and a new one started.
    """

    first: int
    last: int


class FeedsSent(msgspec.Struct, frozen=True):
    """The result of sending the records of one call."""

    accepted: int = 0
    refused: tuple[Refused, ...] = ()
    refused_count: int = 0
    ids: tuple[str, ...] = ()
    """The id of each accepted post, generated if it had none."""


class Live(msgspec.Struct, frozen=True):
    """A change of a feed."""

    items: tuple[Item, ...] = ()
    """New or edited items."""
    gone: tuple[Position, ...] = ()
    """Posts that must no longer be shown."""
    kept: tuple[Position, ...] | None = None
    """After a break: the posts from `since` on that still exist. Any other post of that time must
    no longer be shown."""
    since: int = 0
    cursor: str | None = None
    """The cursor to continue from."""
