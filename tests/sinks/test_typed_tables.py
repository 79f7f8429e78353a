"""Columns of times, dates, decimals, UUIDs and bytes in tables of databases."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.types.datetime import DateBinaryLoader, TimeBinaryLoader
from psycopg.types.numeric import NumericBinaryLoader
from sinks.databases import Database
from sinks.test_table_sinks import SERVERS, changes, event, opened

from millstream.codec import encode_value
from millstream.errors import StoreError
from millstream.sinks import cassandra_table, postgres_table
from millstream.sinks.table_layout import TableLayout, event_layout, slate_layout

ID = UUID("12345678-1234-5678-1234-567812345678")
AT = datetime(2026, 11, 18, 12, 30, 0, 250_000, UTC)
NAMES = ("at", "day", "clock", "price", "id", "raw")


@dataclass
class Order:
    at: datetime
    day: date | None
    clock: time
    price: Decimal
    id: UUID
    raw: bytes


@dataclass
class EarlierOrder:
    """Fields for which the columns are those that earlier versions made for an Order."""

    at: str
    day: str
    clock: str
    price: str
    id: str
    raw: dict[str, Any]


ORDER = Order(AT, date(1999, 1, 2), time(23, 59, 1, 5), Decimal("-12345.67890"), ID, b"\0\xff")
TEXTS = {
    "at": "2026-11-18T12:30:00.250000Z",
    "day": "1999-01-02",
    "clock": "23:59:01.000005",
    "price": "-12345.67890",
    "id": str(ID),
    "raw": "AP8=",
}


@pytest.fixture(params=SERVERS)
def service(request: Any, tmp_path: Path) -> Database:
    return opened(request.param, request, tmp_path)


def defined(layout: TableLayout, module: Any) -> list[str]:
    return [module._TYPES[column.kind] for column in layout.columns if column.name in NAMES]


def test_each_type_has_a_column_of_its_own() -> None:
    """The types of the columns, in both databases, of slates and of events."""
    for layout in (slate_layout(Order, "here"), event_layout(Order, "here")):
        assert defined(layout, postgres_table) == [
            *("timestamptz", "date", "time", "numeric", "uuid", "bytea")
        ]
        assert defined(layout, cassandra_table) == [
            *("timestamp", "date", "time", "decimal", "uuid", "blob")
        ]


def test_a_table_that_has_text_keeps_it() -> None:
    """Columns of text, or of JSON for bytes, are written as such; those that are new are typed."""
    for module, json in ((postgres_table, "jsonb"), (cassandra_table, "text")):
        existing = {"at": "text", "price": "text", "raw": json}
        layout = slate_layout(Order, "here").with_earlier_kinds(existing, module._TYPES)
        typed = defined(slate_layout(Order, "here"), module)
        assert defined(layout, module) == ["text", *typed[1:3], "text", typed[4], json]
        (row,) = layout.changes(changes(("a", encode_value(ORDER), 0))).put
        assert row[1] == TEXTS["at"]
        assert row[2:4] == (ORDER.day, ORDER.clock)
        assert row[4:7] == ("-12345.67890", ID, b'"AP8="')


def test_sqlite_keeps_text() -> None:
    """SQLite has none of these types."""
    layout = slate_layout(Order, "here").untyped()
    kinds = [column.kind for column in layout.columns if column.name in NAMES]
    assert kinds == [*["text"] * 5, "json"]


def test_zones() -> None:
    """A moment or a time of day with a zone is written in UTC; a moment without is taken as UTC."""
    layout = event_layout(Order, "here")
    values = [
        {"at": "2026-11-18T12:30:00+02:00", "clock": "01:00:00+02:00"},
        {"at": "2026-11-18T12:30:00", "clock": "01:00:00"},
    ]
    first, second = layout.events(0, [event("a", 1, value) for value in values]).put
    assert first[4] == datetime(2026, 11, 18, 10, 30, tzinfo=UTC)
    assert first[6] == time(23)
    assert second[4] == datetime(2026, 11, 18, 12, 30, tzinfo=UTC)
    assert second[6] == time(1)


@pytest.mark.parametrize(
    "value",
    [
        {"at": "yesterday"},
        {"at": "0001-01-01T00:00:00+14:00"},
        {"price": "NaN"},
        {"price": "Infinity"},
        {"price": "1E+1000"},
        {"price": "1E-1001"},
        {"id": "17"},
        {"raw": "no base64"},
    ],
)
def test_what_does_not_fit(value: dict[str, Any]) -> None:
    """An event's value is whole in `value`; a slate's is an error that names its key."""
    (row,) = event_layout(Order, "here").events(0, [event("a", 1, value)]).put
    assert row[4:10] == (None,) * 6
    assert msgspec.json.decode(row[10]) == value
    with pytest.raises(StoreError, match="slate of 'a' must fit its columns"):
        slate_layout(Order, "here").changes(changes(("a", msgspec.json.encode(value), 0)))


@given(value=st.decimals(-(10**30), 10**30))
def test_decimals_of_postgres(value: Decimal) -> None:
    """PostgreSQL's form of a decimal is read as the same number, with as many digits."""
    data = postgres_table._encode_decimal(value)
    loaded = NumericBinaryLoader(0).load(data[4:])
    assert loaded == value
    assert format(loaded.copy_abs(), "f") == format(value.copy_abs(), "f")


@given(day=st.dates(), clock=st.times())
def test_dates_and_times_of_postgres(day: date, clock: time) -> None:
    """The values are read back unchanged."""
    assert DateBinaryLoader(0).load(postgres_table._encode_day(day)[4:]) == day
    assert TimeBinaryLoader(0).load(postgres_table._encode_clock(clock)[4:]) == clock


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """Values of the Cassandra client as those of Python."""
    calls = {"day": "date", "clock": "time"}
    for name, call in calls.items():
        if hasattr(row[name], call) and callable(getattr(row[name], call)):
            row[name] = getattr(row[name], call)()
    if isinstance(row["at"], datetime) and row["at"].tzinfo is None:
        row["at"] = row["at"].replace(tzinfo=UTC)
    return row


def expected(**fields: Any) -> dict[str, Any]:
    return {"key": "a", **{name: getattr(ORDER, name) for name in NAMES}, **fields}


def test_typed_columns_of_slates(service: Database) -> None:
    """Another program reads values with Python's types."""
    sink = service.sink(slate=Order)
    sink.publish_changes(0, changes(("a", encode_value(ORDER), 0)))
    (row,) = service.read(f"key, {', '.join(NAMES)}")
    assert plain(row) == expected()
    without = {"at": TEXTS["at"], "day": None, "clock": "00:00:00", "price": "1E+3"}
    slate = msgspec.json.encode({**without, "id": str(ID), "raw": ""})
    sink.publish_changes(1, changes(("a", slate, 1)))
    (row,) = service.read(f"key, {', '.join(NAMES)}")
    assert plain(row) == expected(day=None, clock=time(0), price=Decimal(1000), raw=b"")
    sink.close()


def test_typed_columns_of_events(service: Database) -> None:
    """The same of events; a value that does not fit stops nothing."""
    sink = service.sink(value=Order)
    sink.publish(0, [event("a", 1, TEXTS), event("b", 2, {"at": "yesterday"})])
    rows = {row["key"]: row for row in service.read(f"key, {', '.join(NAMES)}, value")}
    value = rows["a"].pop("value")
    assert (plain(rows["a"]), value) == (expected(), None)
    assert rows["b"]["at"] is None
    assert rows["b"]["value"] == {"at": "yesterday"}
    sink.close()


def test_a_table_of_an_earlier_version(service: Database) -> None:
    """Its text columns stay, and the same text is written to them. A new field is typed."""

    @dataclass
    class LaterOrder(Order):
        paid: date | None = None

    service.sink(slate=EarlierOrder).close()
    sink = service.sink(slate=LaterOrder)
    later = LaterOrder(*(getattr(ORDER, name) for name in NAMES), date(2026, 1, 1))
    sink.publish_changes(0, changes(("a", encode_value(later), 0)))
    (row,) = service.read(f"key, {', '.join(NAMES)}, paid")
    raw = '"AP8="' if service.kind == "cassandra" else "AP8="
    assert {name: row[name] for name in NAMES} == {**TEXTS, "raw": raw}
    assert str(row["paid"]) == "2026-01-01"
    sink.close()
