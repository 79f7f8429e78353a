"""The record of what was poured into the log of a source (`driver.pour.poured_log`).

In a store's folder it is `poured/SOURCE/last.json`, with files of lines beside it. In a place it is
the last of the objects `poured/SOURCE/records/NUMBER`, with `poured/SOURCE/lines/`.
"""

from __future__ import annotations

import msgspec

POURED = "poured"
LAST = "last.json"
ID_BYTES = 16
"""Bytes of the unique id that a record in a place begins with."""


class PendingPour(msgspec.Struct, frozen=True):
    """A large batch that is completely in files; the log may have parts of it."""

    query: str
    batch: int
    files: list[str]


class Poured(msgspec.Struct):
    """The batches that were poured into a source."""

    batches: dict[str, int] = {}
    """The last batch of each query; the query that was poured last comes last."""
    end: list[int] = msgspec.field(default_factory=lambda: [0, 0])
    """The end of the log when this was written."""
    pending: PendingPour | None = None


def records_of(source: str) -> str:
    """The prefix of a source's records in a place."""
    return f"{POURED}/{source}/records/"


def lines_of(source: str) -> str:
    """The prefix of a source's files of lines in a place."""
    return f"{POURED}/{source}/lines/"
