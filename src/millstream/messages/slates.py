"""Slates: GET /slates, /slates/{update}, /slates/{update}/{key}, their dumps and watches.

A slate is JSON. The server writes it as it is stored (`msgspec.Raw`); the client reads its value.
"""

from __future__ import annotations

from typing import Any

import msgspec


class UpdateRow(msgspec.Struct, frozen=True):
    """An update."""

    name: str
    kind: str
    """Its kind of slate: dict, dataclass, table or aggregate:NAME."""
    slates: int | None
    """The number of its slates; None before the first batch."""


class UpdatesAnswer(msgspec.Struct, frozen=True):
    """All updates, as of the last committed batch."""

    batch: int
    updates: list[UpdateRow]


class SlateAnswer(msgspec.Struct, frozen=True):
    """One slate, as of the last committed batch."""

    update: str
    key: str
    slate: Any
    ts: int
    """The greatest ts that updated it, in microseconds since the epoch."""
    batch: int
    age: float
    """Seconds since the batch was committed."""


class SlateLine(msgspec.Struct, frozen=True):
    """A slate in a page, or a line of a dump."""

    key: str
    slate: Any
    ts: int


class SlatePage(msgspec.Struct, frozen=True):
    """Slates in key order, as of one batch. It may be shorter than its limit."""

    update: str
    batch: int
    slates: list[SlateLine]
    next: str | None
    """The `after` of the next page; None at the end."""


class SlateEvent(msgspec.Struct, frozen=True):
    """The event `slate` of a watch: the slate has changed, or the watch begins."""

    key: str
    slate: Any
    ts: int
    batch: int
    age: float


class SlateGone(msgspec.Struct, frozen=True):
    """The event `gone` of a watch: there is no slate."""

    key: str
    batch: int
