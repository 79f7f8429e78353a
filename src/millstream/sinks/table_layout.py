"""The columns of a table in any database: for events, slates and entries of tables.

    events    key, ts, batch, number, value, bytes          one row per event, appended
    events whose type is declared: one column per field before `value`
    slates    key, slate, ts, batch                         one row per key, upserted or deleted
    a dataclass's slates: key, one column per field, ts, batch
    entries   key, entry, value, bytes, ts, batch           one row per entry, upserted or deleted
    latest    key, ts, value                                in SQLite: one row per key

`ts` is whole microseconds; `batch` is the batch of the row. `value` and `slate` are JSON; if a
value is bytes, `bytes` has it and `value` is null. `number` counts the events of a batch in content
order, so that `(batch, number)` identifies an event, also when the batch is written again.

A field of a dataclass is a column of its type, if that is text, a whole number, a number, a
Boolean, a time, a date, a decimal, a UUID or bytes, each also with None; anything else is JSON. The
value of an event may be anything, even if a type is declared: a value that fits is only in the
columns, and one that does not is in `value`.

Where there are types now, earlier versions made columns of text, or of JSON for bytes:
`with_earlier_kinds` returns the layout of such a table. SQLite has no such types: `untyped` returns
its layout.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, Literal, NamedTuple, get_type_hints
from uuid import UUID

import msgspec

from millstream.codec import BYTES_TAG, encode_value
from millstream.column_types import READ_AS, ColumnTypeKind, column_type
from millstream.errors import DefinitionError, StoreError
from millstream.sinks.row_files import Row
from millstream.slate_changes import SlateChange, SlateChanges

ColumnKind = Literal[
    "text",
    "integer",
    "real",
    "boolean",
    "json",
    "bytes",
    "time",
    "moment",
    "day",
    "clock",
    "decimal",
    "uuid",
]
"""`time` is the ts of a row, whole microseconds; the values of the last five are as in Python: a
moment is in UTC, and so is a time of day that has a zone."""
Mode = Literal["append", "upsert", "latest"]
Values = tuple[Any, ...]
"""A row's values in the order of the columns; JSON is bytes."""
_SCALARS: dict[ColumnTypeKind, tuple[ColumnKind, Any]] = {
    "text": ("text", str),
    "integer": ("integer", READ_AS["integer"]),
    "real": ("real", float),
    "boolean": ("boolean", bool),
    "bytes": ("bytes", bytes),
    "moment": ("moment", datetime),
    "day": ("day", date),
    "clock": ("clock", time),
    "decimal": ("decimal", Decimal),
    "uuid": ("uuid", UUID),
}
"""For each type of a field: the kind of its column, and the type as which its JSON is read. Other
types are JSON."""
_EARLIER: dict[ColumnKind, tuple[ColumnKind, Any]] = {
    **dict.fromkeys(("moment", "day", "clock", "decimal", "uuid"), ("text", str)),
    "bytes": ("json", msgspec.Raw),
}
"""For the kinds that had another kind of column in earlier versions: that kind, and the type as
which its JSON is read."""
MOST_DIGITS = 1_000
"""The maximum number of digits of a decimal before its point, and after it. Every database can hold
this many."""


class TableColumn(NamedTuple):
    """A column of a table."""

    name: str
    kind: ColumnKind


class TableRows(NamedTuple):
    """The rows that a batch writes to a table and deletes from it."""

    put: list[Values]
    gone: list[Values]
    """For each row to delete: the key columns and the batch; in mode "latest", the ts instead."""


KEY, ENTRY = TableColumn("key", "text"), TableColumn("entry", "text")
TS, BATCH = TableColumn("ts", "time"), TableColumn("batch", "integer")
NUMBER = TableColumn("number", "integer")
VALUE, BYTES = TableColumn("value", "json"), TableColumn("bytes", "bytes")
SLATE = TableColumn("slate", "json")


@dataclass(frozen=True, slots=True)
class TableLayout:
    """The columns of a table, the key first. Turns events and changes into rows."""

    mode: Mode
    columns: tuple[TableColumn, ...]
    key: int
    """The number of key columns."""
    cells: Callable[[SlateChange], Values] | None = None
    """For changes: returns the cells between the key and the ts."""
    fields: RecordCells | None = None
    """For events: reads the fields that are columns, if a type is declared."""
    remade: Callable[[Collection[str]], TableLayout] | None = None
    """Returns the layout in which the named columns have the kind of earlier versions."""

    @property
    def names(self) -> list[str]:
        return [column.name for column in self.columns]

    def with_earlier_kinds(
        self, types: Mapping[str, str], database_types: Mapping[ColumnKind, str]
    ) -> TableLayout:
        """Returns the layout for a table that exists, from the types of its columns by name.

        `database_types` has the database's type for each kind.
        """
        earlier = {
            column.name
            for column in self.columns
            if column.kind in _EARLIER
            and types.get(column.name) == database_types[_EARLIER[column.kind][0]]
        }
        return self.remade(earlier) if self.remade is not None and earlier else self

    def untyped(self) -> TableLayout:
        """Returns the layout for a database without the types that were added later."""
        return self if self.remade is None else self.remade(self.names)

    def events(self, batch: int, rows: Iterable[Row]) -> TableRows:
        """Returns the rows of a batch's events; in mode "latest", the latest of each key."""
        if self.mode == "latest":
            return _latest(rows)
        put, fields = list[Values](), self.fields
        for number, row in enumerate(rows):
            encoded = encode_value(row["value"])
            cells: Values = ()
            value, raw = _value_cells(encoded)
            if fields is not None:
                cells, fits = _event_cells(fields, encoded)
                value = None if fits else value
            put.append((row["key"], row["ts"], batch, number, *cells, value, raw))
        return TableRows(put, [])

    def changes(self, changes: SlateChanges) -> TableRows:
        """Returns the rows for the last change of each slate or entry."""
        put: list[Values] = []
        gone: list[Values] = []
        cells, entries = self.cells, self.key == 2
        assert cells is not None
        for change in changes.latest():
            key = (change.key, change.entry) if entries else (change.key,)
            if change.slate is None:
                gone.append((*key, change.batch))
            else:
                put.append((*key, *cells(change), change.ts, change.batch))
        return TableRows(put, gone)


def _event_cells(fields: RecordCells, encoded: bytes) -> tuple[Values, bool]:
    """Returns the cells of an event's value, and True if the value fits the fields."""
    try:
        if encoded[:1] != BYTES_TAG:
            return fields.read(encoded), True
    except msgspec.ValidationError:
        pass
    return (None,) * len(fields.columns), False


EVENTS = TableLayout("append", (KEY, TS, BATCH, NUMBER, VALUE, BYTES), 4)
LATEST = TableLayout("latest", (KEY, TS, VALUE), 1)


def _latest(rows: Iterable[Row]) -> TableRows:
    """Returns the last row of each key in content order; null deletes. The rows may be of several
    batches."""
    values: dict[str, tuple[int, bytes]] = {}
    for row in rows:
        key, value = row["key"], (row["ts"], encode_value(row["value"]))
        if key not in values or values[key] < value:
            values[key] = value
    latest = TableRows([], [])
    for key, (ts, encoded) in values.items():
        if encoded == b"null":
            latest.gone.append((key, ts))
        else:
            is_bytes = encoded[:1] == BYTES_TAG
            latest.put.append((key, ts, encoded[1:] if is_bytes else encoded.decode()))
    return latest


def _value_cells(encoded: bytes) -> tuple[bytes | None, bytes | None]:
    return (None, encoded[1:]) if encoded[:1] == BYTES_TAG else (encoded, None)


def _entry_cells(change: SlateChange) -> Values:
    return _value_cells(change.slate or b"null")


def _slate_cells(change: SlateChange) -> Values:
    return (change.slate,)


ENTRIES = TableLayout("upsert", (KEY, ENTRY, VALUE, BYTES, TS, BATCH), 2, _entry_cells)
SLATES = TableLayout("upsert", (KEY, SLATE, TS, BATCH), 1, _slate_cells)


def slate_layout(
    slate: type, where: str, *, typed: bool = True, earlier: Collection[str] = ()
) -> TableLayout:
    """Returns the layout for changes of slates of that type, which is dict or a dataclass.

    The columns of `earlier` have the kind that earlier versions gave them.
    """
    if not typed or not dataclasses.is_dataclass(slate):
        return SLATES
    fields = record_cells(slate, (KEY, TS, BATCH), where, earlier)

    def cells(change: SlateChange) -> Values:
        try:
            return fields.read(change.slate or b"null")
        except msgspec.ValidationError as error:
            raise StoreError(
                f"{where}: the slate of {change.key!r} must fit its columns: {error}; make a new "
                "table with the option columns=json"
            ) from None

    def remade(earlier: Collection[str]) -> TableLayout:
        return slate_layout(slate, where, earlier=earlier)

    return TableLayout("upsert", (KEY, *fields.columns, TS, BATCH), 1, cells, remade=remade)


def event_layout(
    value: type | None, where: str, *, typed: bool = True, earlier: Collection[str] = ()
) -> TableLayout:
    """Returns the layout for events whose values have the declared dataclass, if there is one.

    The columns of `earlier` have the kind that earlier versions gave them.
    """
    if value is None or not typed:
        return EVENTS
    first = (KEY, TS, BATCH, NUMBER)
    fields = record_cells(value, (*first, VALUE, BYTES), where, earlier)

    def remade(earlier: Collection[str]) -> TableLayout:
        return event_layout(value, where, earlier=earlier)

    columns = (*first, *fields.columns, VALUE, BYTES)
    return TableLayout("append", columns, 4, fields=fields, remade=remade)


class RecordCells(NamedTuple):
    """The fields of a dataclass as columns."""

    columns: tuple[TableColumn, ...]
    read: Callable[[bytes], Values]
    """Returns the cells of a JSON value; ValidationError if it does not fit."""


def record_cells(
    record: type, others: Iterable[TableColumn], where: str, earlier: Collection[str] = ()
) -> RecordCells:
    """Returns the columns of a dataclass's fields; DefinitionError if `others` has one of their
    names."""
    hints = get_type_hints(record)
    columns: list[TableColumn] = []
    fields: list[tuple[str, Any, Any]] = []
    for number, field in enumerate(dataclasses.fields(record)):
        kind, read_as = _column_kind(hints[field.name])
        if field.name in earlier:
            kind, read_as = _EARLIER.get(kind, (kind, read_as))
        columns.append(TableColumn(field.name, kind))
        is_json = kind == "json"
        reading = (read_as, msgspec.Raw(b"null")) if is_json else (read_as | None, None)
        fields.append((f"field{number}", *reading))
    _check_names(
        [column.name for column in columns], [column.name for column in others], record, where
    )
    reader = msgspec.defstruct(
        record.__name__,
        fields,
        rename={f"field{number}": column.name for number, column in enumerate(columns)},
    )
    decode = msgspec.json.Decoder(reader).decode
    astuple = msgspec.structs.astuple
    converted = [
        (number, _CONVERTED[column.kind])
        for number, column in enumerate(columns)
        if column.kind in _CONVERTED
    ]

    def read(encoded: bytes) -> Values:
        values = astuple(decode(encoded))
        if not converted:
            return values
        cells = list(values)
        for number, convert in converted:
            if cells[number] is not None:
                cells[number] = convert(cells[number])
        return tuple(cells)

    return RecordCells(tuple(columns), read)


def _raw_cell(value: msgspec.Raw) -> bytes | None:
    encoded = bytes(value)
    return None if encoded == b"null" else encoded


def _moment(value: datetime) -> datetime:
    """Returns the moment in UTC. One without a zone counts as UTC."""
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:
        raise msgspec.ValidationError(f"{value} is not in the years 1 to 9999") from None


def _clock(value: time) -> time:
    """Returns the time of day in UTC, if it has a zone; no column here has one."""
    if value.tzinfo is None:
        return value
    return datetime.combine(date(2000, 1, 2), value).astimezone(UTC).time()


def _decimal(value: Decimal) -> Decimal:
    exponent = value.as_tuple().exponent
    if not isinstance(exponent, int):
        raise msgspec.ValidationError(f"{value} is not a finite number")
    if value.adjusted() >= MOST_DIGITS or exponent < -MOST_DIGITS or exponent > MOST_DIGITS:
        raise msgspec.ValidationError(f"a decimal has more than {MOST_DIGITS:,} digits")
    return value


_CONVERTED: dict[ColumnKind, Callable[[Any], Any]] = {
    "json": _raw_cell,
    "moment": _moment,
    "clock": _clock,
    "decimal": _decimal,
}
"""The conversions that cells of a kind need after decoding."""


def _column_kind(hint: Any) -> tuple[ColumnKind, Any]:
    """Returns the kind of a field's column, and the type as which the field is read."""
    return _SCALARS.get(column_type(hint).kind, ("json", msgspec.Raw))


def _check_names(fields: list[str], others: list[str], record: type, where: str) -> None:
    taken = set(others)
    for name in fields:
        if name.lower() in taken:
            raise DefinitionError(
                f"{where}: the field {name!r} of {record.__name__} cannot be a column, since there "
                "is one of that name; rename the field, or set the option columns=json"
            )
        taken.add(name.lower())
