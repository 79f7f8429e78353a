"""The columns of a sink's rows. A row is a dict with these names, whatever the format.

A `value` is anything that JSON can carry, or bytes. In JSON lines it is the field `value`, or for
bytes the field `bytes` in base64; in Parquet there are both columns, `value` as JSON text and
`bytes` as binary, and one of them is null. A change of a slate has a `slate` instead of a `value`;
it is null if the slate is gone.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Kind = Literal["time", "text", "integer", "flag", "value"]
"""A time is whole microseconds since the epoch: a number in JSON, a timestamp in Parquet."""


class Column(NamedTuple):
    """A field of every row."""

    name: str
    kind: Kind


Columns = tuple[Column, ...]

EVENT_COLUMNS: Columns = (Column("ts", "time"), Column("key", "text"), Column("value", "value"))
LATE_COLUMNS: Columns = (Column("stream", "text"), *EVENT_COLUMNS)
DROPPED_COLUMNS: Columns = (Column("function", "text"), *LATE_COLUMNS)
DEADLETTER_COLUMNS: Columns = (
    Column("function", "text"),
    *LATE_COLUMNS,
    Column("error", "text"),
    Column("batch", "integer"),
    Column("timer", "text"),
    Column("file", "text"),
    Column("line", "integer"),
    Column("form", "text"),
    Column("attributes", "text"),
)
"""The fields of `DeadLetter`."""
CHANGE_COLUMNS: Columns = (
    Column("key", "text"),
    Column("slate", "value"),
    Column("ts", "time"),
    Column("batch", "integer"),
)
"""The fields of a change of a slate; see millstream/slate_changes.py."""
ENTRY_CHANGE_COLUMNS: Columns = (
    Column("key", "text"),
    Column("entry", "text"),
    Column("slate", "value"),
    Column("deleted", "flag"),
    Column("ts", "time"),
    Column("batch", "integer"),
)
"""The fields of a change of a table's entry, whose value may be null although it is not gone."""
