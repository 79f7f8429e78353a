"""The tables that an update with `across_keys=True` gets, and the slates that it returns.

The function gets two Arrow tables:

- *events*: `row` (the row of the event's slate), `key`, `ts` (microseconds), `stream`, and a column
  for each field of the values. A key's events stand together, in content order.
- *slates*: `key`, and a column for each field of the slate, one row for each key.

It returns the new slates, row by row as they came: an Arrow table, a DataFrame, or a dict of
columns (Arrow, NumPy or lists). A field that it leaves out stays as it was. A column must fit its
field exactly: 1.5, "1" and True do not fit an int, NaN fits no field, and null fits only a field
that may be None.

One event is a table of one row. Both the reference and the engine make their tables here.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from operator import attrgetter
from typing import Annotated, Any, NamedTuple

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from millstream.codec import BYTES_TAG, encode_value
from millstream.columnar.arrow_arrays import (
    Integers,
    bytes_array,
    integer_array,
    numbers_of,
    text_array,
)
from millstream.columnar.line_layout import LineLayout
from millstream.errors import FunctionError
from millstream.model.batch_update import EVENT_COLUMNS, SLATE_COLUMNS, FieldColumn, table_columns
from millstream.model.event import Event
from millstream.model.function import Update

_INT64 = Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)]
_ARROW: dict[type, pa.DataType] = {
    int: pa.int64(),
    float: pa.float64(),
    bool: pa.bool_(),
    str: pa.string(),
}


def _is_number(kind: pa.DataType) -> bool:
    types = pa.types
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind))


_FITS: dict[type, Callable[[pa.DataType], bool]] = {
    int: _is_number,
    float: _is_number,
    bool: pa.types.is_boolean,
    str: lambda kind: kind in (pa.string(), pa.large_string(), pa.string_view()),
}
"""The types of returned columns that may be cast to that of a field."""
_encode_lines = msgspec.json.Encoder().encode_lines
_encode_json = msgspec.json.Encoder().encode
NewSlates = list[pa.Array]
"""The columns of the slates that a call returned, in the order of the fields."""


class TableEvents(NamedTuple):
    """The events of a call. Each column has an item for each event."""

    rows: Any
    """The row of the event's slate. This and the next two are lists or arrays."""
    ts: Any
    streams: Any
    values: Sequence[pa.Array]
    """The columns of the values."""


class TableForm:
    """The columns of one update's slates and values."""

    def __init__(self, slate: type, values: type | None) -> None:
        self._columns = table_columns(slate, SLATE_COLUMNS, "slate")
        self._values: tuple[FieldColumn, ...] = ()
        self._record: Any = None
        if values is not None:
            self._values = table_columns(values, EVENT_COLUMNS, "values")
            self._record = _record_type(values, self._values)
            self._read_record = msgspec.json.Decoder(self._record).decode
            self._read_records = msgspec.json.Decoder(list[self._record]).decode  # type: ignore
        self._slate: Any = msgspec.defstruct("Slate", [(c.name, Any) for c in self._columns])
        stored = _record_type(slate, self._columns)
        self._read_slates = msgspec.json.Decoder(list[stored]).decode  # type: ignore[valid-type]
        numbers = all(c.kind in (int, float) and not c.optional for c in self._columns)
        self._layout = _layout_of(self._columns) if numbers else None

    @property
    def has_values(self) -> bool:
        """True if the values have a declared type."""
        return self._record is not None

    def record(self, encoded: bytes) -> Any:
        """Returns the fields of an event's value; raises if it does not fit the declared type."""
        return self._read_record(encoded)

    def records(self, encoded: Sequence[bytes]) -> list[Any]:
        """Returns the fields of many values; raises if one of them does not fit."""
        joined = b",".join(encoded)
        if BYTES_TAG in joined:
            return [self._read_record(value) for value in encoded]
        records: list[Any] = self._read_records(b"[" + joined + b"]")
        return records

    def value_columns(self, records: Sequence[Any]) -> list[pa.Array]:
        """Returns the columns of values; None stands for one that does not fit, and is null."""
        return [_column_of(column, records) for column in self._values]

    def columns_of(self, number: Callable[[str], Integers | None]) -> list[pa.Array] | None:
        """Returns the columns of values, given those of their fields that hold whole numbers; None
        if there are others."""
        columns: list[pa.Array] = []
        for column in self._values:
            numbers = number(column.name)
            if numbers is None or column.kind not in (int, float):
                return None
            columns.append(integer_array(numbers).cast(_ARROW[column.kind], safe=False))
        return columns

    def slate_columns(self, slates: Sequence[Any]) -> list[pa.Array]:
        return [_column_of(column, slates) for column in self._columns]

    def stored_columns(self, encoded: Sequence[bytes]) -> list[pa.Array]:
        """Returns the columns of stored slates; raises if one does not fit as it is."""
        return self.slate_columns(self._read_slates(b"[" + b",".join(encoded) + b"]"))

    def call(
        self, update: Update, events: TableEvents, keys: Sequence[str], stored: list[pa.Array]
    ) -> NewSlates:
        """Calls the function with tables; raises if it fails or its slates do not fit.

        `stored` are the columns of the slates.
        """
        key = pa.array(keys, pa.string())
        table = pa.table([key, *stored], names=["key", *(c.name for c in self._columns)])
        rows = pa.array(events.rows, pa.int64())
        columns = [
            rows,
            pa.DictionaryArray.from_arrays(rows.cast(pa.int32()), key),
            pa.array(events.ts, pa.int64()),
            pa.array(events.streams, pa.string()),
            *events.values,
        ]
        names = [*EVENT_COLUMNS, *(c.name for c in self._values)]
        returned = update.function(pa.table(columns, names=names), table)
        return self._checked(returned, table)

    def _checked(self, returned: Any, slates: pa.Table) -> NewSlates:
        columns = _as_columns(returned, len(slates))
        if unknown := columns.keys() - set(slates.column_names):
            raise FunctionError(
                f"returned the columns {', '.join(sorted(unknown))}, which its slate does not "
                f"have; it has {', '.join(c.name for c in self._columns)}"
            )
        if "key" in columns and not slates["key"].equals(_chunked(columns["key"], pa.string())):
            raise FunctionError(
                "must return the slates in the order in which they came; the column 'key' differs"
            )
        return [
            _fitting(column, columns.get(column.name, slates[column.name]))
            for column in self._columns
        ]

    def encoded(self, slates: NewSlates) -> pa.Array:
        """Returns the slates as they are stored, as the codec of the dataclass writes them, in an
        array of large_binary."""
        if self._layout is not None:
            return self._layout.lines([_as_written(column) for column in slates])
        made = list(map(self._slate, *(column.to_pylist() for column in slates)))
        return bytes_array(_encode_lines(made).split(b"\n")[:-1])

    def call_with_one(self, update: Update, event: Event, slate: Any) -> None:
        """Calls the function with tables of one event, and puts the new slate into `slate`."""
        records = [self.record(encode_value(event.value))] if self.has_values else []
        columns = self.value_columns(records)
        events = TableEvents([0], [event.ts], [event.stream], columns)
        returned = self.call(update, events, [event.key], self.slate_columns([slate]))
        for column, new in zip(self._columns, returned, strict=True):
            setattr(slate, column.name, new[0].as_py())


@cache
def table_form(slate: type, values: type | None) -> TableForm:
    """Returns the form of the tables of an update with such slates and values."""
    return TableForm(slate, values)


def _column_of(column: FieldColumn, records: Sequence[Any]) -> pa.Array:
    name = column.name
    try:
        items = list(map(attrgetter(name), records))
    except AttributeError:  # of a None
        items = [None if record is None else getattr(record, name) for record in records]
    return pa.array(items, _ARROW[column.kind])


def _layout_of(columns: tuple[FieldColumn, ...]) -> LineLayout:
    """Returns the layout of slates; numbers that are no ints are given to it as text."""
    names = [f"{msgspec.json.encode(column.name).decode()}:".encode() for column in columns]
    pieces = (b"{" + names[0], *(b"," + name for name in names[1:]), b"}")
    texts = tuple(column.kind is float for column in columns)
    return LineLayout(tuple(column.name for column in columns), texts, pieces)


def _as_written(column: pa.Array) -> Any:
    """Returns a column of numbers as its layout writes it: the ints, or the text of each float."""
    if column.type == pa.int64():
        return numbers_of(column)
    return text_array(_encode_json(column.to_pylist())[1:-1].decode().split(","))


def _record_type(values: type, columns: tuple[FieldColumn, ...]) -> Any:
    """Returns the type as which msgspec reads the values: only whole numbers of 64 bits fit."""
    fields: list[Any] = []
    for field, column in zip(dataclasses.fields(values), columns, strict=True):
        kind: Any = _INT64 if column.kind is int else column.kind
        hint = kind | None if column.optional else kind
        if field.default is not dataclasses.MISSING:
            fields.append((column.name, hint, field.default))
        elif field.default_factory is not dataclasses.MISSING:
            made = msgspec.field(default_factory=field.default_factory)
            fields.append((column.name, hint, made))
        else:
            fields.append((column.name, hint))
    return msgspec.defstruct("Record", fields, kw_only=True, gc=False)


def _as_columns(returned: Any, size: int) -> dict[str, pa.ChunkedArray]:
    """Returns the columns that a function returned; FunctionError unless all have `size` rows."""
    if isinstance(returned, Mapping):
        columns = {name: _chunked(column) for name, column in returned.items()}
        sizes = {len(column) for column in columns.values()}
    elif hasattr(returned, "__arrow_c_stream__"):
        table = pa.table(returned)
        for name, count in Counter(table.column_names).items():
            if count > 1:
                raise FunctionError(f"returned the column {name} more than once")
        columns = dict(zip(table.column_names, table.columns, strict=True))
        sizes = {len(table)}
    else:
        raise FunctionError(
            "an update with across_keys=True must return its slates: an Arrow table, a DataFrame "
            f"or a dict of columns; it returned {type(returned).__name__}"
        )
    if not sizes <= {size}:
        raise FunctionError(
            f"must return a row for each of its slates, in their order; there are {size}, and it "
            f"returned {' and '.join(map(str, sorted(sizes)))}"
        )
    return columns


def _chunked(column: Any, kind: pa.DataType | None = None) -> pa.ChunkedArray:
    if isinstance(column, pa.Array):
        column = pa.chunked_array([column])
    elif not isinstance(column, pa.ChunkedArray):
        column = pa.chunked_array([pa.array(column)])
    return column if kind is None or column.type == kind else column.cast(kind)


def _fitting(column: FieldColumn, given: pa.ChunkedArray) -> pa.Array:
    """Returns a column in the type of its field; FunctionError if it does not fit."""
    kind = given.type.value_type if pa.types.is_dictionary(given.type) else given.type
    wrong = f"the column {column.name!r} must be {column.kind.__name__}; got {given.type}"
    if not (_FITS[column.kind](kind) or pa.types.is_null(kind)):
        raise FunctionError(wrong)
    try:
        array = _chunked(given, _ARROW[column.kind]).combine_chunks()
    except pa.ArrowException as error:
        raise FunctionError(f"{wrong}: {error}") from None
    if isinstance(array, pa.ChunkedArray):  # what older versions of Arrow return
        array = pa.concat_arrays(array.chunks)
    if array.null_count and not column.optional:
        raise FunctionError(
            f"the column {column.name!r} must not have nulls: declare the field as "
            f"{column.kind.__name__} | None, or fill them"
        )
    if column.kind is float and not pc.all(pc.is_finite(array), min_count=0).as_py():
        raise FunctionError(
            f"the column {column.name!r} must be what JSON can carry, and NaN and infinity are not"
        )
    return array
