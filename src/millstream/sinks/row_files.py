"""The two formats of a sink's files: JSON lines and Parquet.

A file is only ever written whole: its old content up to a length, then new rows. The unit of the
length is the format's own, bytes or rows. In Parquet, values of a declared type have a column for
each of its fields (`parquet_columns`); a change of a slate then has a column `deleted`.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from hashlib import sha256
from types import NoneType
from typing import Any, Protocol

import msgspec

from millstream.codec import encode_value
from millstream.column_types import ColumnType
from millstream.errors import CodecError, DefinitionError, StoreError
from millstream.sinks.columns import DEADLETTER_COLUMNS, Columns
from millstream.sinks.parquet_columns import RecordColumns

Row = dict[str, Any]
VALUE, BYTES, DELETED = "value", "bytes", "deleted"

_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines
_decode = msgspec.json.Decoder().decode


class RowFile(Protocol):
    """A format of files of rows."""

    suffix: str
    form: str
    """Identifies the columns, if they depend on a type: rows of two forms cannot share a file."""

    def extended(self, path: str, base: int, rows: list[Row]) -> tuple[bytes, int]:
        """Returns the file's content up to the length `base` followed by the rows, and its new
        length.

        With a base of 0 the file need not exist. Raises StoreError if it is shorter than its base.
        """


def row_file(format: str, columns: Columns, record: ColumnType | None = None) -> RowFile:
    """Returns the format of that name; `record` is the type of the values, if it is declared."""
    if format == "json":
        return JsonRows(columns)
    if format == "parquet":
        return ParquetRows(columns, record)
    raise DefinitionError(f"a sink's format must be json or parquet; got {format!r}")


class JsonRows:
    """One JSON object per line; the length of a file is in bytes."""

    suffix = ".jsonl"
    form = ""

    def __init__(self, columns: Columns) -> None:
        self._names = [column.name for column in columns]
        self._value = value_name(columns)

    def extended(self, path: str, base: int, rows: list[Row]) -> tuple[bytes, int]:
        old = b""
        if base:
            with open(path, "rb") as file:
                old = file.read(base)
            _check_length(path, len(old), base, "bytes")
        content = old + _encoded(_encode_lines, [self._plain(row) for row in rows])
        return content, len(content)

    def lines(self, rows: list[Row]) -> list[bytes]:
        """Returns the rows as lines without newlines."""
        return [_encoded(_encode, self._plain(row)) for row in rows]

    def _plain(self, row: Row) -> Row:
        plain = {name: row[name] for name in self._names}
        value = plain.get(self._value)
        if isinstance(value, bytes):
            del plain[self._value]
            plain[BYTES] = base64.b64encode(value).decode()
        return plain


def value_name(columns: Columns) -> str:
    """Returns the name of the column for the value: `value`, or a change's `slate`."""
    return next((name for name, kind in columns if kind == VALUE), VALUE)


def decode_row(line: bytes) -> Row:
    row: Row = _decode(line)
    if BYTES in row and VALUE not in row:
        row["slate" if "deleted" in row else VALUE] = base64.b64decode(row.pop(BYTES))
    return row


def _encoded(encode: Callable[[Any], bytes], rows: Any) -> bytes:
    try:
        return encode(rows)
    except (TypeError, ValueError, RecursionError) as error:
        raise CodecError(f"a row must be what JSON can carry: {error}") from None


class ParquetRows:
    """A table of Parquet; the length of a file is in rows."""

    suffix = ".parquet"

    def __init__(self, columns: Columns, record: ColumnType | None = None) -> None:
        self._columns = columns
        self._record = record
        described = b"" if record is None else msgspec.json.encode(record)
        if columns == DEADLETTER_COLUMNS:
            described = b"form attributes"  # files of earlier versions do not have these
        self.form = sha256(described).hexdigest()[:16] if described else ""

    def extended(self, path: str, base: int, rows: list[Row]) -> tuple[bytes, int]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            table = pa.table(self._arrays(rows))
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise CodecError(f"a row must be what its columns can carry: {error}") from None
        if base:
            try:
                old = pq.read_table(pa.py_buffer(_content(path)), use_threads=False)
                old, rest = old.slice(0, base), [table] if rows else []
                table = pa.concat_tables([old, *rest])
            except pa.ArrowException as error:
                raise StoreError(
                    f"sink file {path}: must be as Millstream wrote it; got: {error}; restore it, "
                    "or move it away to go on in a new one"
                ) from None
            _check_length(path, old.num_rows, base, "rows")
        sink = pa.BufferOutputStream()
        pq.write_table(table, sink)
        return sink.getvalue().to_pybytes(), table.num_rows

    def _arrays(self, rows: list[Row]) -> dict[str, Any]:
        import pyarrow as pa

        kinds = {"time": pa.timestamp("us", "UTC"), "text": pa.string(), "integer": pa.int64()}
        kinds["flag"] = pa.bool_()
        arrays: dict[str, Any] = {}
        for name, kind in self._columns:
            values = [row[name] for row in rows]
            if kind != "value":
                arrays[name] = pa.array(values, kinds[kind])
                continue
            if self._record is not None:
                arrays |= _record_arrays(self._record, values, deletes=name != VALUE)
                continue
            # A change without a slate is a deletion; an event's value may be null.
            no_text = (bytes,) if name == VALUE else (bytes, NoneType)
            texts = [None if isinstance(v, no_text) else encode_value(v) for v in values]
            arrays[name] = pa.array(texts, pa.binary()).cast(pa.string())
            raw = [value if isinstance(value, bytes) else None for value in values]
            arrays[BYTES] = pa.array(raw, pa.binary())
        return arrays


def _record_arrays(record: ColumnType, values: list[Any], *, deletes: bool) -> dict[str, Any]:
    """Returns the columns of a record's values; with `deletes`, None is a deletion."""
    import pyarrow as pa

    columns = RecordColumns(record)
    for value in values:
        if deletes and value is None:
            columns.add_none()
        else:
            columns.add(value)
    arrays = columns.take()
    if deletes:
        arrays[DELETED] = pa.array([value is None for value in values], pa.bool_())
    return arrays


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _check_length(path: str, length: int, base: int, unit: str) -> None:
    if length < base:
        raise StoreError(
            f"sink file {path}: must hold the {base} {unit} that were published to it; it has "
            f"{length}; restore it, or move it away to go on in a new one"
        )
