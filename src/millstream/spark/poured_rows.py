"""Converts the rows of a DataFrame to the JSON lines of a source's event log.

A row becomes a record as a row of a Parquet file does (see `sources.arrow_rows`), and a record
becomes an event as any record of the source does: by the source's own key and ts. `RowColumns` says
which columns make the record. A row that cannot be written as JSON becomes a line that is not JSON,
and so a dead letter.

Spark's tasks make the lines. A task returns a few lines with its result; it writes many lines to
files in the store, or to objects in its place, which it reaches as the tasks of Millstream's own
batches do. So no process holds a large batch in memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal
from uuid import uuid4

import msgspec
import pyarrow as pa
from pyspark import TaskContext
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, types
from pyspark.sql import functions as sql

from millstream.driver.pour.place_pour_storage import written_lines
from millstream.driver.pour.poured_log import Piece
from millstream.errors import DefinitionError, InputError
from millstream.model.source import TIME_UNITS, Source
from millstream.nearest import did_you_mean
from millstream.sources.arrow_rows import rows_of

INLINE_BYTES = 256 * 1024
"""The most that a task returns with its result; more goes into a file."""
PIECE = "part int, lines binary, file string, size long"
KEY, TIME, VALUE = "millstream.key", "millstream.ts", "millstream.value"
_NO_KEY = (
    *(types.FloatType, types.DoubleType, types.BooleanType, types.BinaryType),
    *(types.StructType, types.ArrayType, types.MapType),
)
_TIMES = (types.TimestampType, types.TimestampNTZType, types.DateType, types.StringType)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode


@dataclass(frozen=True, slots=True)
class RowColumns:
    """Names the columns that make a record. Without any, the record is the whole row."""

    source: Source
    key: str | None = None
    """The column whose value is put into the field of the source's key."""
    ts: str | None = None
    """The column whose value is put into the field of the source's ts."""
    value: str | None = None
    """The column that is the record itself, to which key and ts are added."""
    json: str | None = None
    """The column that holds the record as JSON text."""

    def __post_init__(self) -> None:
        if self.value is not None and self.json is not None:
            raise DefinitionError(
                f"into(value={self.value!r}, json={self.json!r}): a record is either the value of "
                "a column (value=) or the JSON text in it (json=); leave one out"
            )
        for name, column in self._given():
            if not isinstance(column, str) or not column:
                raise DefinitionError(
                    f"into({name}=): must be the name of a column; got {column!r}"
                )
        self._path("key", self.key, self.source.key)
        self._path("ts", self.ts, self.source.ts)

    def _given(self) -> list[tuple[str, str]]:
        named = (("key", self.key), ("ts", self.ts), ("value", self.value), ("json", self.json))
        return [(name, column) for name, column in named if column is not None]

    def _path(self, name: str, column: str | None, field: object) -> tuple[str, ...] | None:
        """Returns the path of the field into which a column goes: the one that the source picks."""
        if column is None:
            return None
        if not isinstance(field, str):
            takes = "has none" if field is None else "is a function of the record"
            raise DefinitionError(
                f"into({name}={column!r}): the {name} of source {self.source.name!r} {takes}, and "
                f"must be a field for the column to go to; declare it, as in "
                f"app.source({self.source.name!r}, {name}={column!r}), or leave {name}= out"
            )
        return tuple(field.split("."))

    def selected(self, rows: DataFrame) -> tuple[DataFrame, RecordShape]:
        """Selects the needed columns; also returns how to make records from them.

        Raises InputError if a column is missing or has a type that does not fit.
        """
        columns: list[Any] = []
        if self.key is not None:
            self._check_key(_type_of(rows, "key", self.key))
            columns.append(sql.col(self.key).alias(KEY))
        if self.ts is not None:
            self._check_ts(_type_of(rows, "ts", self.ts))
            columns.append(sql.col(self.ts).alias(TIME))
        kind: RecordKind = "row"
        name = self.value or self.json or ""
        if self.json is not None:
            kind = "json"
            column_type = _type_of(rows, "json", self.json)
            if not isinstance(column_type, types.StringType | types.BinaryType):
                raise InputError(
                    f"into(json={self.json!r}): the column must hold JSON text, as string or "
                    f"binary; it is {column_type.simpleString()}: take it with value={self.json!r}"
                )
            columns.append(sql.col(self.json).cast("string").alias(VALUE))
        elif self.value is not None:
            kind = "object" if _is_object(_type_of(rows, "value", self.value)) else "value"
            columns.append(sql.col(self.value).alias(VALUE))
        else:
            _check_unique(rows.columns)
            columns += [
                rows[f"`{column.replace('`', '``')}`"]
                for column in rows.columns
                if column not in (self.key, self.ts)
            ]
        key = self._path("key", self.key, self.source.key)
        ts = self._path("ts", self.ts, self.source.ts)
        # As one struct column: Spark reads a dot in a column's name as a path, not in a field's.
        return rows.select(sql.struct(*columns).alias("row")), RecordShape(kind, name, key, ts)

    def _check_key(self, column_type: types.DataType) -> None:
        if isinstance(column_type, _NO_KEY):
            raise InputError(
                f"into(key={self.key!r}): a key must be text or a whole number; the column is "
                f"{column_type.simpleString()}: cast it to string"
            )

    def _check_ts(self, column_type: types.DataType) -> None:
        if isinstance(column_type, _TIMES):
            return
        if not isinstance(column_type, types.NumericType):
            raise InputError(
                f"into(ts={self.ts!r}): a time must be a timestamp, a date, ISO-8601 text or a "
                f"number; the column is {column_type.simpleString()}"
            )
        if self.source.unit is None:
            raise InputError(
                f"into(ts={self.ts!r}): the column is {column_type.simpleString()}, and source "
                f"{self.source.name!r} does not say its unit; declare it with unit= (one of "
                f"{', '.join(TIME_UNITS)}), or cast the column to timestamp"
            )


RecordKind = Literal["row", "object", "value", "json"]


@dataclass(frozen=True, slots=True)
class RecordShape:
    """Makes a record from the selected columns. Sent to the tasks."""

    kind: RecordKind
    """The kind of record: all columns, an object in a column, any other value, or JSON text."""
    name: str
    """The column of the value."""
    key: tuple[str, ...] | None
    ts: tuple[str, ...] | None

    def lines(self, batch: Any) -> Iterator[bytes]:
        """Yields the records of an Arrow batch, one line each; its only column holds the rows."""
        rows = rows_of(pa.RecordBatch.from_struct_array(batch.column(0)))
        for row in rows.records:
            line = self.line(row)
            if line and not line.isspace():
                yield line
        for bad in rows.bad:
            yield f"{bad.error}: {bad.text}".replace("\n", " ").encode(errors="replace")

    def line(self, row: dict[str, Any]) -> bytes:
        """Returns the record of a row as JSON.

        >>> shape = RecordShape("value", "amount", ("user",), None)
        >>> shape.line({KEY: "ann", VALUE: 3.5})
        b'{"amount":3.5,"user":"ann"}'
        """
        key, ts = row.pop(KEY, None), row.pop(TIME, None)
        alone = self.key is None and self.ts is None
        if self.kind == "row":
            record: Any = row
        elif self.kind == "object":
            record = row[VALUE] if alone else dict(row[VALUE] or {})
        elif self.kind == "value":
            record = row[VALUE] if alone else {self.name: row[VALUE]}
        else:
            text = b"null" if row[VALUE] is None else row[VALUE].encode()
            record = None if alone else _object(text)
            if record is None:
                # In JSON text a newline can only be whitespace between tokens.
                return text.replace(b"\n", b" ")
        if self.key is not None:
            _put(record, self.key, key)
        if self.ts is not None:
            _put(record, self.ts, ts)
        return _encode(record)


def pieces_of(rows: DataFrame, columns: RowColumns, place: str, target: str) -> list[Piece]:
    """Runs one Spark job that makes the lines of all rows.

    Large results are in files whose names begin with `target`: in a place or, without one, in a
    folder.
    """
    selected, shape = columns.selected(rows)
    stem = f"{target}{uuid4().hex}"
    pieces = selected.mapInArrow(partial(_pieces, shape, place, stem), PIECE).collect()
    return [
        Piece(bytes(row.lines), row.file, row.size)
        for row in sorted(pieces, key=lambda row: row.part)
    ]


def _pieces(
    shape: RecordShape, place: str, stem: str, batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """Yields the lines of a task's rows: in memory, or in files that are durable."""
    context = TaskContext.get()
    assert context is not None
    part = context.partitionId()
    stem = f"{stem}-{part}-{context.taskAttemptId()}"
    in_memory: list[bytes] = []
    size, files = 0, written_lines(place, stem)
    with closing(files):
        for batch in batches:
            lines = b"".join(line + b"\n" for line in shape.lines(batch))
            in_memory.append(lines)
            size += len(lines)
            if size > INLINE_BYTES:
                files.write(in_memory)
                in_memory = []
        written = files.finished()
    rows = [Piece(b"", *file) for file in written] or [Piece(b"".join(in_memory))]
    if size:
        columns: list[Sequence[object]] = [
            [part] * len(rows),
            *([row.lines for row in rows], [row.file for row in rows], [row.size for row in rows]),
        ]
        kinds = (pa.int32(), pa.binary(), pa.string(), pa.int64())
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, names=["part", "lines", "file", "size"])


def _type_of(rows: DataFrame, name: str, column: str) -> types.DataType:
    try:
        return rows.select(sql.col(column)).schema[0].dataType
    except AnalysisException:
        raise InputError(
            f"into({name}={column!r}): the rows have no such column; "
            f"{did_you_mean(column, rows.columns)}"
        ) from None


def _is_object(column_type: types.DataType) -> bool:
    if isinstance(column_type, types.MapType):
        return isinstance(column_type.keyType, types.StringType)
    return isinstance(column_type, types.StructType)


def _check_unique(names: Sequence[str]) -> None:
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"a row as a record: a column's name must be unique; got twice: {', '.join(twice)}; "
            "rename one, or name the columns with key=, ts= and value="
        )


def _object(text: bytes) -> dict[str, Any] | None:
    """Parses a JSON object; None if the text is another value, or not JSON."""
    try:
        value = _decode(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _put(record: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    *steps, last = path
    for step in steps:
        inner = record.get(step)
        record[step] = record = dict(inner) if isinstance(inner, dict) else {}
    record[last] = value
