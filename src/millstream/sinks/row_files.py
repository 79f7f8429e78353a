"""The two formats of a sink's files: JSON lines and Parquet.

A file is only ever written whole: what it held up to a length, and rows after that. The length is
the format's own, bytes or rows.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any, Protocol

import msgspec

from millstream.codec import encode_value
from millstream.errors import CodecError, DefinitionError, StoreError
from millstream.sinks.columns import Columns

Row = dict[str, Any]
VALUE, BYTES = "value", "bytes"

_encode = msgspec.json.Encoder().encode
_encode_lines = msgspec.json.Encoder().encode_lines
_decode = msgspec.json.Decoder().decode


class RowFile(Protocol):
    """A format of files of rows."""

    suffix: str

    def extended(self, path: str, base: int, rows: list[Row]) -> tuple[bytes, int]:
        """The content of the file with only its first `base`, then the rows; and its new length.

        With a base of 0 the file need not be there. StoreError if it is shorter than its base.
        """

    def read(self, path: str) -> Iterator[Row]:
        """The rows as they were given."""


def row_file(format: str, columns: Columns) -> RowFile:
    """The format of that name."""
    if format == "json":
        return JsonRows(columns)
    if format == "parquet":
        return ParquetRows(columns)
    raise DefinitionError(f"a sink's format must be json or parquet; got {format!r}")


class JsonRows:
    """One JSON object a line; its length is in bytes."""

    suffix = ".jsonl"

    def __init__(self, columns: Columns = ()) -> None:
        self._names = [column.name for column in columns]

    def extended(self, path: str, base: int, rows: list[Row]) -> tuple[bytes, int]:
        old = b""
        if base:
            with open(path, "rb") as file:
                old = file.read(base)
            _check_length(path, len(old), base, "bytes")
        content = old + _told(_encode_lines, [self._plain(row) for row in rows])
        return content, len(content)

    def lines(self, rows: list[Row]) -> list[bytes]:
        """The rows as lines without their ends."""
        return [_told(_encode, self._plain(row)) for row in rows]

    def _plain(self, row: Row) -> Row:
        plain = {name: row[name] for name in self._names}
        value = plain.get(VALUE)
        if isinstance(value, bytes):
            del plain[VALUE]
            plain[BYTES] = base64.b64encode(value).decode()
        return plain

    def read(self, path: str) -> Iterator[Row]:
        with open(path, "rb") as file:
            yield from map(decode_row, file)


def decode_row(line: bytes) -> Row:
    """A row as it was given, from its line."""
    row: Row = _decode(line)
    if BYTES in row and VALUE not in row:
        row[VALUE] = base64.b64decode(row.pop(BYTES))
    return row


def _told(encode: Callable[[Any], bytes], rows: Any) -> bytes:
    try:
        return encode(rows)
    except (TypeError, ValueError, RecursionError) as error:
        raise CodecError(f"a row must be what JSON can carry: {error}") from None


class ParquetRows:
    """A table; its length is in rows."""

    suffix = ".parquet"

    def __init__(self, columns: Columns = ()) -> None:
        self._columns = columns

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
                table = pa.concat_tables([old.slice(0, base), table])
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
        arrays: dict[str, Any] = {}
        for name, kind in self._columns:
            values = [row[name] for row in rows]
            if kind != "value":
                arrays[name] = pa.array(values, kinds[kind])
                continue
            texts = [None if isinstance(value, bytes) else encode_value(value) for value in values]
            arrays[VALUE] = pa.array(texts, pa.binary()).cast(pa.string())
            raw = [value if isinstance(value, bytes) else None for value in values]
            arrays[BYTES] = pa.array(raw, pa.binary())
        return arrays

    def read(self, path: str) -> Iterator[Row]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        file = pq.ParquetFile(pa.py_buffer(_content(path)))
        for batch in file.iter_batches(8192, use_threads=False):
            names = batch.schema.names
            columns = [
                (one.cast(pa.int64()) if pa.types.is_timestamp(one.type) else one).to_pylist()
                for one in batch.columns
            ]
            for values in zip(*columns, strict=True):
                row = dict(zip(names, values, strict=True))
                raw = row.pop(BYTES)
                row[VALUE] = _decode(row[VALUE]) if raw is None else raw
                yield row


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def _check_length(path: str, length: int, base: int, unit: str) -> None:
    if length < base:
        raise StoreError(
            f"sink file {path}: must hold the {base} {unit} that were published to it; it has "
            f"{length}; restore it, or move it away to go on in a new one"
        )
