"""Derives columns from the fields of a dataclass, and the cells of a row from a value.

A dataclass is a **record**, and each of its fields is a column. `column_type` derives the type of a
column from a type hint; tables of databases and Parquet files both use it, and a store keeps the
record of its slates, so that they can be dumped without the application's code.

    str          text            datetime, date, time        a moment, a day, a time of day
    int          integer         timedelta, Decimal, UUID    kept as text
    float        real            Literal, Enum of text       choice: text
    bool         boolean         list, set, tuple[X, ...]    list
    bytes        bytes           dict[str, X]                map
    a dataclass  record          anything else               json

`| None` is allowed everywhere: None is null, and so is an absent field. A field that the record
does not have is left out. `ColumnReader` returns None for a value that does not fit, such as a
whole number past 64 bits; it must be stored in another way.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence, Set
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints
from uuid import UUID

import msgspec

ColumnTypeKind = Literal[
    "text",
    "integer",
    "real",
    "boolean",
    "bytes",
    "moment",
    "day",
    "clock",
    "span",
    "decimal",
    "uuid",
    "choice",
    "list",
    "map",
    "record",
    "json",
]
_INT64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_SCALARS: dict[Any, ColumnTypeKind] = {
    str: "text",
    int: "integer",
    float: "real",
    bool: "boolean",
    bytes: "bytes",
    datetime: "moment",
    date: "day",
    time: "clock",
    timedelta: "span",
    Decimal: "decimal",
    UUID: "uuid",
}
READ_AS: dict[ColumnTypeKind, Any] = {
    "text": str,
    "integer": _INT64,
    "real": float,
    "boolean": bool,
    "bytes": bytes,
    "moment": datetime,
    "day": date,
    "clock": time,
    "span": str,
    "decimal": str,
    "uuid": str,
    "choice": str,
    "json": Any,
}
"""The Python type as which the JSON of a scalar is read."""
_LISTS = (list, set, frozenset, Sequence, Set)
_MAPS = (dict, Mapping)


class ColumnType(msgspec.Struct, frozen=True, omit_defaults=True):
    """The type of a column, or of the values within it."""

    kind: ColumnTypeKind
    names: tuple[str, ...] = ()
    """The fields of a record."""
    parts: tuple[ColumnType, ...] = ()
    """The types of a record's fields; of a list or a map, the type of its items."""


JSON = ColumnType("json")


def column_type(hint: Any, _within: tuple[type, ...] = ()) -> ColumnType:
    """Returns the column type for a type hint.

    >>> column_type(int | None).kind, column_type(list[float]).parts[0].kind
    ('integer', 'real')
    >>> column_type(int | str).kind
    'json'
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return column_type(arguments[0], _within)
    if hasattr(hint, "__supertype__"):  # a NewType
        return column_type(hint.__supertype__, _within)
    if origin in (Union, UnionType):
        rest = [part for part in arguments if part is not NoneType]
        return column_type(rest[0], _within) if len(rest) == 1 else JSON
    if isinstance(hint, type) and hint in _SCALARS:
        return ColumnType(_SCALARS[hint])
    if origin is Literal:
        return ColumnType("choice") if all(isinstance(word, str) for word in arguments) else JSON
    if isinstance(hint, type) and issubclass(hint, Enum):
        return ColumnType("choice") if all(isinstance(word.value, str) for word in hint) else JSON
    if origin in _LISTS or (origin is tuple and arguments[1:] == (...,)):
        return ColumnType("list", parts=(column_type(arguments[0], _within),))
    if origin in _MAPS and arguments[0] is str:
        return ColumnType("map", parts=(column_type(arguments[1], _within),))
    if isinstance(hint, type) and dataclasses.is_dataclass(hint) and hint not in _within:
        return record_type(hint, _within) or JSON
    return JSON


def record_type(kind: type, _within: tuple[type, ...] = ()) -> ColumnType | None:
    """Returns the record of a dataclass; None if `kind` is not one, has no fields, or has type
    hints that cannot be resolved in its module."""
    if not dataclasses.is_dataclass(kind):
        return None
    try:
        hints = get_type_hints(kind, include_extras=True)
    except (NameError, TypeError):
        return None
    names = tuple(field.name for field in dataclasses.fields(kind))
    parts = tuple(column_type(hints[name], (*_within, kind)) for name in names)
    return ColumnType("record", names, parts) if names else None


class ColumnReader:
    """Decodes values of a record into cells.

    >>> reader = ColumnReader(ColumnType("record", ("count",), (ColumnType("integer"),)))
    >>> reader.decoded(b'{"count": 3, "more": 1}'), reader.decoded(b'{}'), reader.decoded(b'[]')
    ([3], [None], None)
    """

    def __init__(self, record: ColumnType) -> None:
        self._parts = record.parts
        self._decode = msgspec.json.Decoder(_read_as(record)).decode

    def decoded(self, encoded: bytes) -> list[Any] | None:
        """Returns the cells of a JSON value, in the order of the fields; None if it does not fit.

        Nested records are dicts, and cells of type json are text.
        """
        try:
            cells = msgspec.structs.astuple(self._decode(encoded))
        except msgspec.DecodeError:
            return None
        return [_cell(value, part) for value, part in zip(cells, self._parts, strict=True)]


def _read_as(kind: ColumnType) -> Any:
    """Returns the type as which msgspec reads a value of the column type."""
    if kind.kind == "list":
        return list[_optional(kind.parts[0])]  # type: ignore[misc]
    if kind.kind == "map":
        return dict[str, _optional(kind.parts[0])]  # type: ignore[misc]
    if kind.kind != "record":
        return READ_AS[kind.kind]
    fields = [(f"field{n}", _optional(part), None) for n, part in enumerate(kind.parts)]
    rename = {f"field{n}": name for n, name in enumerate(kind.names)}
    return msgspec.defstruct("Record", fields, rename=rename)


def _optional(kind: ColumnType) -> Any:
    return _read_as(kind) | None


def _cell(value: Any, kind: ColumnType) -> Any:
    if value is None or kind.kind not in ("json", "list", "map", "record"):
        return value
    if kind.kind == "json":
        return msgspec.json.encode(value).decode()
    if kind.kind == "list":
        return [_cell(item, kind.parts[0]) for item in value]
    if kind.kind == "map":
        return {name: _cell(item, kind.parts[0]) for name, item in value.items()}
    items = msgspec.structs.astuple(value)
    named = zip(kind.names, items, kind.parts, strict=True)
    return {name: _cell(item, part) for name, item, part in named}
