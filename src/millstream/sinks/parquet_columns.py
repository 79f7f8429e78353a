"""Parquet columns for the fields of a record: the types from `column_types` as types of Arrow.

Rows of a sink, or of a dump, have a column for each field instead of `value` or `slate`, and one
more, `unfit`. It has the JSON text of a value that does not fit the fields, which are then null; it
is null otherwise. So no value is refused, and none is lost.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import msgspec

from millstream.codec import encode_value
from millstream.column_types import ColumnReader, ColumnType

UNFIT = "unfit"


def arrow_type(kind: ColumnType) -> Any:
    """Returns the Arrow type of a column. A moment is in UTC, also one without a zone."""
    import pyarrow as pa

    if kind.kind == "record":
        named = zip(kind.names, kind.parts, strict=True)
        return pa.struct([(name, arrow_type(part)) for name, part in named])
    if kind.kind == "list":
        return pa.list_(arrow_type(kind.parts[0]))
    if kind.kind == "map":
        return pa.map_(pa.string(), arrow_type(kind.parts[0]))
    scalars = {
        "integer": pa.int64(),
        "real": pa.float64(),
        "boolean": pa.bool_(),
        "bytes": pa.binary(),
        "moment": pa.timestamp("us", "UTC"),
        "day": pa.date32(),
        "clock": pa.time64("us"),
    }
    return scalars.get(kind.kind, pa.string())


def taken_name(record: ColumnType, others: Sequence[str]) -> str | None:
    """Returns a field whose name another column has already; None if there is none.

    Case is ignored, since readers of Parquet may ignore it.
    """
    taken = {name.lower() for name in (*others, UNFIT)}
    for name in record.names:
        if name.lower() in taken:
            return name
        taken.add(name.lower())
    return None


class RecordColumns:
    """Gathers the values of rows as columns of a record."""

    def __init__(self, record: ColumnType) -> None:
        self.record = record
        self._reader = ColumnReader(record)
        self._empty = [None] * len(record.names)
        self._rows: list[Sequence[Any]] = []
        self._unfit: list[str | None] = []

    def add(self, value: Any) -> int:
        """Appends a value: what JSON can carry, raw JSON, or bytes. Returns its size as JSON."""
        if isinstance(value, bytes):
            encoded = msgspec.json.encode({"bytes": base64.b64encode(value).decode()})
            cells = None
        else:
            encoded = bytes(value) if isinstance(value, msgspec.Raw) else encode_value(value)
            cells = self._reader.decoded(encoded)
        self._rows.append(self._empty if cells is None else cells)
        self._unfit.append(encoded.decode() if cells is None else None)
        return len(encoded)

    def add_none(self) -> None:
        """Appends a row without a value: all columns are null."""
        self._rows.append(self._empty)
        self._unfit.append(None)

    def take(self) -> dict[str, Any]:
        """Returns the gathered columns as arrays by name, and starts again with none."""
        import pyarrow as pa

        columns = list(zip(*self._rows, strict=True)) or [()] * len(self.record.names)
        named = zip(self.record.names, self.record.parts, columns, strict=True)
        arrays = {name: pa.array(column, arrow_type(part)) for name, part, column in named}
        arrays[UNFIT] = pa.array(self._unfit, pa.string())
        self._rows, self._unfit = [], []
        return arrays
