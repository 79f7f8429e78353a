"""What the client gives back."""

from __future__ import annotations

from typing import Any

import msgspec


class Slate(msgspec.Struct, frozen=True, rename={"value": "slate"}):
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
    """An event that the server did not take."""

    line: int
    """Which one it was, from 1, among all that were sent in the call."""
    error: str
    text: str
    """How it begins."""


class Sent(msgspec.Struct, frozen=True):
    """What became of the events of one call."""

    accepted: int = 0
    """Events that are on the server's disk."""
    refused: tuple[Refused, ...] = ()
    """The first of those refused; see `refused_count`."""
    refused_count: int = 0


class Record(msgspec.Struct, frozen=True):
    """A record of a stream's log."""

    number: int
    value: Any


class Gap(msgspec.Struct, frozen=True):
    """Records that were to come and are not there: the log's retention has removed them.

    The next record is number `last` + 1. If that is less than `first`, the log is not the one that
    it was: it was removed, and another begun.
    """

    first: int
    last: int
