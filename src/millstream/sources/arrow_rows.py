"""Converts rows of Arrow into records with values that JSON can carry.

    timestamp with a zone       text, ISO 8601 in UTC with microseconds and Z
    timestamp without           the same without Z
    date, time                  text, ISO 8601
    duration                    whole microseconds
    decimal, UUID, other        text
    binary                      text, base64
    map                         an object if its keys are text, else a list of [key, value]
    NaN                         null; an infinity makes its row bad

Nanoseconds are cut to microseconds, the resolution of an event's time. A value that JSON cannot
carry makes only its own row bad. Parquet files and DataFrames are both read this way.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

FIRST_MICROSECOND = -62_135_596_800_000_000
LAST_MICROSECOND = 253_402_300_799_999_999
"""The years 1 to 9999, which ISO-8601 text can express."""
Convert = Callable[[Any], Any]


class BadRow(NamedTuple):
    """A row with a value that JSON cannot carry."""

    row: int
    """Its number in the batch, counted from 0."""
    text: str
    """The row as text, for messages."""
    error: str


class ArrowRows(NamedTuple):
    """The rows of a batch, in its order."""

    records: list[dict[str, Any]]
    numbers: list[int] | None
    """Each record's row, counted from 0; None: every row has a record."""
    bad: list[BadRow]


def rows_of(batch: Any) -> ArrowRows:
    """Returns the rows of an Arrow record batch, whose columns have different names."""
    try:
        return ArrowRows(_records(batch), None, [])
    except (pa.ArrowException, ValueError, OverflowError):
        records: list[dict[str, Any]] = []
        numbers: list[int] = []
        bad: list[BadRow] = []
    for row in range(batch.num_rows):
        slice_of_one = batch.slice(row, 1)
        try:
            records.extend(_records(slice_of_one))
        except (pa.ArrowException, ValueError, OverflowError) as error:
            message = f"a row must hold what JSON can carry; got this: {str(error)[:200]}"
            bad.append(BadRow(row, _text(slice_of_one), message))
        else:
            numbers.append(row)
    return ArrowRows(records, numbers, bad)


def _text(row: Any) -> str:
    """Formats a bad row for a message; a column that cannot be shown is a question mark."""
    parts = []
    for name, column in zip(row.schema.names, row.columns, strict=True):
        try:
            parts.append(f"{name}={column[0].as_py()!r}")
        except (pa.ArrowException, ValueError, OverflowError):
            parts.append(f"{name}=?")
    return ", ".join(parts)


def _records(batch: Any) -> list[dict[str, Any]]:
    columns = []
    for column in batch.columns:
        plain = _plain(column.type)
        if plain != column.type:
            column = pc.cast(column, options=pc.CastOptions(plain, allow_time_truncate=True))
        if pa.types.is_timestamp(plain):
            columns.append(_timestamps(column))
        elif pa.types.is_floating(plain) and pc.all(pc.is_finite(column)).as_py():
            columns.append(column.to_pylist())
        elif convert := _converter(plain):
            columns.append([convert(value) for value in column.to_pylist()])
        else:
            columns.append(column.to_pylist())
    names = batch.schema.names
    if not columns:
        return [{} for _ in range(batch.num_rows)]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _timestamps(column: Any) -> list[str | None]:
    """Converts a column of times to text with Arrow, six times as fast as one by one."""
    least, most = pc.min_max(column.cast(pa.int64())).as_py().values()
    if least is not None and (least < FIRST_MICROSECOND or most > LAST_MICROSECOND):
        raise ValueError("a time outside the years 1 to 9999")
    text = pc.replace_substring(column.cast(pa.string()), " ", "T", max_replacements=1)
    times: list[str | None] = text.to_pylist()
    return times


def _plain(kind: Any) -> Any:
    """Returns the nearest type whose values Python's own types can hold: microseconds, UTC."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    if pa.types.is_time64(kind):
        return pa.time64("us")
    if pa.types.is_duration(kind):
        return pa.duration("us")
    if pa.types.is_dictionary(kind):
        return _plain(kind.value_type)
    if pa.types.is_map(kind):
        return pa.map_(_plain(kind.key_type), _plain(kind.item_type))
    if pa.types.is_large_list(kind):
        return pa.large_list(_plain(kind.value_type))
    if pa.types.is_list(kind):
        return pa.list_(_plain(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _plain(field.type)) for field in kind.fields])
    return kind


def _converter(kind: Any) -> Convert | None:
    """Returns a function that converts values of a plain type for JSON; None if none is needed."""
    convert = _converter_of_value(kind)
    return None if convert is None else lambda value: None if value is None else convert(value)


def _converter_of_value(kind: Any) -> Convert | None:
    types = pa.types
    if (
        types.is_integer(kind)
        or types.is_boolean(kind)
        or types.is_null(kind)
        or types.is_string(kind)
        or types.is_large_string(kind)
        or types.is_string_view(kind)
    ):
        return None
    if types.is_floating(kind):
        return _finite
    if types.is_timestamp(kind):
        zone = "" if kind.tz is None else "Z"
        return lambda value: value.replace(tzinfo=None).isoformat(timespec="microseconds") + zone
    if types.is_date(kind) or types.is_time(kind):
        return lambda value: value.isoformat()
    if types.is_duration(kind):
        return lambda value: (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    if (
        types.is_binary(kind)
        or types.is_large_binary(kind)
        or types.is_fixed_size_binary(kind)
        or types.is_binary_view(kind)
    ):
        return lambda value: base64.b64encode(value).decode()
    if types.is_map(kind):
        return _map(kind)
    if types.is_nested(kind) and not types.is_struct(kind) and not types.is_union(kind):
        item = _converter(kind.value_type)
        return None if item is None else lambda value: [item(element) for element in value]
    if types.is_struct(kind):
        return _struct(kind)
    return str


def _finite(value: float) -> float | None:
    if math.isinf(value):
        raise ValueError(f"{value} in a column of floating point; use null")
    return None if math.isnan(value) else value


def _map(kind: Any) -> Convert:
    key, item = _converter(kind.key_type), _converter(kind.item_type)
    text = key is None and not pa.types.is_integer(kind.key_type)

    def convert(value: Any) -> Any:
        pairs = [[key(k) if key else k, item(v) if item else v] for k, v in value]
        return dict(pairs) if text else pairs

    return convert


def _struct(kind: Any) -> Convert | None:
    converters = {
        field.name: converter for field in kind.fields if (converter := _converter(field.type))
    }
    if not converters:
        return None

    def convert(value: dict[str, Any]) -> dict[str, Any]:
        return {
            name: converters[name](item) if name in converters else item
            for name, item in value.items()
        }

    return convert
