"""Addresses: `json:DIR`, where a source reads from or a sink writes to.

`log:DIR` is an event log; `log` alone is the stream's own, in the store. `sqlite:FILE` is a file of
SQLite, for a sink only.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.errors import InputError
from millstream.nearest import nearest

LOG = "log"
SQLITE = "sqlite"
FORMATS = {"json": "json", "jsonl": "json", "csv": "csv", "text": "text"}
FORMATS |= {"parquet": "parquet", LOG: LOG, SQLITE: SQLITE}
"""Every name that a format may be given by, and its right name."""


@dataclass(frozen=True, slots=True)
class Address:
    """A format by its right name, and a path as it was given; none for the store's own log."""

    format: str
    path: str

    def __str__(self) -> str:
        return f"{self.format}:{self.path}"


def parse_address(text: str, where: str = "address") -> Address:
    """The address that the text means; `where` begins the error if it means none."""
    known = ", ".join(sorted(set(FORMATS.values())))
    name, colon, path = text.partition(":")
    if not path and name.strip().lower() == LOG:
        return Address(LOG, "")
    if not colon:
        raise InputError(
            f"{where}: must be FORMAT:DIRECTORY; got {text!r} without a colon; "
            f"write for example json:{text or 'data'}"
        )
    right = FORMATS.get(name.strip().lower())
    if right is None:
        near = nearest(name.strip(), FORMATS)
        hint = "" if near is None else f"; did you mean {FORMATS[near]}:{path}?"
        raise InputError(f"{where}: the format must be one of {known}; got {name!r}{hint}")
    if not path:
        what, such = ("file", "data.db") if right == SQLITE else ("directory", "data")
        raise InputError(f"{where}: {text!r} names no {what}; write for example {right}:{such}")
    return Address(right, path)
