"""A table of PostgreSQL: `postgres:TABLE?server=HOST:PORT&user=USER&password=env:VARIABLE`.

A batch is one transaction, which also records the batch in `millstream_published` and locks its row
there. So a reader sees a batch whole or not at all, and a batch that the table already has is
skipped, even if another driver wrote it. Rows are loaded with COPY: events into the table itself,
changes of slates into a temporary table first, from which one statement upserts them (INSERT ... ON
CONFLICT) and one deletes.

Values that PostgreSQL cannot hold are changed: a zero character in a text becomes U+FFFD, and a key
of more than 1,000 bytes, which no index accepts, is cut and ends with the hash of the whole key.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from millstream.databases import postgres
from millstream.databases.options import DatabaseOptions, quoted
from millstream.sinks.table_layout import ColumnKind, TableLayout, TableRows, Values
from millstream.sinks.tables import RECORD, Noted, check_owner, fitted

if TYPE_CHECKING:
    import psycopg

    Connection = psycopg.Connection[tuple[Any, ...]]

MOST_KEY = 1_000
"""The maximum number of bytes of a key column: an index accepts 2,700 for all key columns
together."""
INCOMING = '"millstream_incoming"'
EPOCH = 946_684_800_000_000
"""PostgreSQL counts microseconds from the year 2000."""
EARLIEST = -210_866_803_200_000_000
"""The earliest time of PostgreSQL, in the year 4714 BC; earlier times become -infinity."""
_TYPES: dict[ColumnKind, str] = {
    "text": "text",
    "integer": "bigint",
    "real": "double precision",
    "boolean": "boolean",
    "json": "jsonb",
    "bytes": "bytea",
    "time": "timestamptz",
    "moment": "timestamptz",
    "day": "date",
    "clock": "time",
    "decimal": "numeric",
    "uuid": "uuid",
}
_YEAR_2000, _DAY_2000 = datetime(2000, 1, 1, tzinfo=UTC), date(2000, 1, 1).toordinal()
_MICROSECOND = timedelta(microseconds=1)
_NULL = b"\xff\xff\xff\xff"
_ZERO = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
_length, _long, _double = struct.Struct(">i").pack, struct.Struct(">iq").pack, struct.Struct(">id")
_pack_double = _double.pack


class PostgresTable:
    """A table and the connection that writes to it."""

    advice = "make sure that the server runs, can be reached and lets this user write there"
    is_passing = staticmethod(postgres.is_passing)

    def __init__(self, options: DatabaseOptions, query: str, layout: TableLayout) -> None:
        postgres.client(options.shown)
        self.shown = options.shown
        self._options = options
        self._query = query
        self.layout = self._declared = layout
        schema = "" if options.schema is None else f"{quoted(options.schema)}."
        self._table = schema + quoted(options.table)
        self._record = schema + quoted(RECORD)
        self._connection: Connection | None = None

    def open(self) -> int:
        self.close()
        connection = self._connection = postgres.connect(self._options)
        with connection.transaction():
            # Without the lock, two stores that start at once would both find no table, and one of
            # them would fail.
            connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (RECORD,))
            return self._make(connection)

    def write(self, batch: int, rows: TableRows) -> None:
        connection = self._connection
        assert connection is not None
        with connection.transaction():
            noted = self._noted(connection, lock=True)
            check_owner(self.shown, self._query, noted, is_there=True)
            if noted is None or batch <= noted.batch:
                return
            if self.layout.mode == "append":
                self._copy(connection, self._table, self.layout.names, rows.put)
            else:
                self._upsert(connection, rows)
            connection.execute(
                f"UPDATE {self._record} SET batch = %s WHERE table_name = %s",
                (batch, self._options.table),
            )

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _make(self, connection: Connection) -> int:
        """Creates what does not exist; returns the last batch."""
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._record} (table_name text PRIMARY KEY, "
            "query text NOT NULL, batch bigint NOT NULL)"
        )
        noted = self._noted(connection)
        check_owner(self.shown, self._query, noted, self._is_there(connection))
        self.layout = self._declared.with_earlier_kinds(self._types(connection), _TYPES)
        columns, key = self.layout.columns, self.layout.key
        defined = [f"{quoted(column.name)} {_TYPES[column.kind]}" for column in columns]
        keys = ", ".join(quoted(column.name) for column in columns[:key])
        connection.execute(
            f"CREATE TABLE IF NOT EXISTS {self._table} ({', '.join(defined)}, PRIMARY KEY ({keys}))"
        )
        for column in defined[key:]:  # the dataclass may have a new field
            connection.execute(f"ALTER TABLE {self._table} ADD COLUMN IF NOT EXISTS {column}")
        connection.execute(
            f"INSERT INTO {self._record} VALUES (%s, %s, -1) ON CONFLICT DO NOTHING",
            (self._options.table, self._query),
        )
        if self.layout.mode == "upsert":
            connection.execute(
                f"CREATE TEMPORARY TABLE {INCOMING} ({', '.join(defined)}) ON COMMIT DELETE ROWS"
            )
        return -1 if noted is None else noted.batch

    def _is_there(self, connection: Connection) -> bool:
        row = connection.execute("SELECT to_regclass(%s)", (self._table,)).fetchone()
        return row is not None and row[0] is not None

    def _types(self, connection: Connection) -> dict[str, str]:
        """Returns the types of the columns that exist, by name."""
        return dict(
            connection.execute(
                "SELECT attname::text, typname::text FROM pg_attribute "
                "JOIN pg_type ON pg_type.oid = atttypid "
                "WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped",
                (self._table,),
            ).fetchall()
        )

    def _noted(self, connection: Connection, *, lock: bool = False) -> Noted | None:
        row = connection.execute(
            f"SELECT query, batch FROM {self._record} WHERE table_name = %s"
            f"{' FOR UPDATE' if lock else ''}",
            (self._options.table,),
        ).fetchone()
        return None if row is None else Noted(*row)

    def _upsert(self, connection: Connection, rows: TableRows) -> None:
        names = [quoted(name) for name in self.layout.names]
        key = names[: self.layout.key]
        columns = ", ".join(names)
        if rows.put:
            self._copy(connection, INCOMING, self.layout.names, rows.put)
            sets = ", ".join(f"{name} = excluded.{name}" for name in names[len(key) :])
            connection.execute(
                f"INSERT INTO {self._table} AS kept ({columns}) SELECT {columns} FROM {INCOMING} "
                f"ON CONFLICT ({', '.join(key)}) DO UPDATE SET {sets} "
                "WHERE kept.batch <= excluded.batch"
            )
        if rows.gone:
            connection.execute(f"TRUNCATE {INCOMING}")
            self._copy(connection, INCOMING, [*self.layout.names[: len(key)], "batch"], rows.gone)
            # The temporary table has no statistics. Without these joins, the planner uses the
            # index of the table and never scans all of it.
            connection.execute("SET LOCAL enable_hashjoin = off")
            connection.execute("SET LOCAL enable_mergejoin = off")
            same = " AND ".join(f"kept.{name} = gone.{name}" for name in key)
            connection.execute(
                f"DELETE FROM {self._table} AS kept USING {INCOMING} AS gone "
                f"WHERE {same} AND kept.batch <= gone.batch"
            )

    def _copy(
        self, connection: Connection, table: str, names: Sequence[str], rows: Iterable[Values]
    ) -> None:
        kinds = {column.name: column.kind for column in self.layout.columns}
        keys = set(self.layout.names[: self.layout.key])
        into = ", ".join(map(quoted, names))
        data = copy_data([(kinds[name], name in keys) for name in names], rows)
        with (
            connection.cursor() as cursor,
            cursor.copy(f"COPY {table} ({into}) FROM STDIN (FORMAT BINARY)") as copy,
        ):
            copy.write(data)


def copy_data(columns: Sequence[tuple[ColumnKind, bool]], rows: Iterable[Values]) -> bytes:
    """Encodes rows in the binary format of COPY; `columns` has each kind, and True for a key."""
    encoders = [_encode_key if key and kind == "text" else _ENCODERS[kind] for kind, key in columns]
    count = struct.pack(">h", len(columns))
    parts = [b"PGCOPY\n\xff\r\n\0", bytes(8)]
    add = parts.append
    for row in rows:
        add(count)
        for encode, value in zip(encoders, row, strict=True):
            add(_NULL if value is None else encode(value))
    add(b"\xff\xff")
    return b"".join(parts)


def _encode_text(value: str) -> bytes:
    data = value.encode()
    if b"\0" in data:
        data = data.replace(b"\0", b"\xef\xbf\xbd")
    return _length(len(data)) + data


def _encode_key(value: str) -> bytes:
    return _encode_text(fitted(value, MOST_KEY))


def _encode_json(value: bytes) -> bytes:
    if b"\\u0000" in value:
        value = _ZERO.sub(rb"\1\\ufffd", value)
    return _length(len(value) + 1) + b"\x01" + value


def _encode_time(value: int) -> bytes:
    return _long(8, value - EPOCH if value >= EARLIEST else -(1 << 63))


def _encode_moment(value: datetime) -> bytes:
    return _long(8, (value - _YEAR_2000) // _MICROSECOND)


def _encode_day(value: date) -> bytes:
    return struct.pack(">ii", 4, value.toordinal() - _DAY_2000)


def _encode_clock(value: time) -> bytes:
    seconds = (value.hour * 60 + value.minute) * 60 + value.second
    return _long(8, seconds * 1_000_000 + value.microsecond)


def _encode_decimal(value: Decimal) -> bytes:
    """Encodes a decimal in PostgreSQL's form: groups of four digits, and the number of digits after
    the point."""
    whole, _, fraction = format(value.copy_abs(), "f").partition(".")
    digits = "0" * (-len(whole) % 4) + whole + fraction + "0" * (-len(fraction) % 4)
    groups = [int(digits[at : at + 4]) for at in range(0, len(digits), 4)]
    weight = (len(whole) + 3) // 4 - 1
    sign = 0x4000 if value < 0 else 0
    head = struct.pack(">hhHH", len(groups), weight, sign, len(fraction))
    data = head + struct.pack(f">{len(groups)}h", *groups)
    return _length(len(data)) + data


_ENCODERS: dict[ColumnKind, Callable[[Any], bytes]] = {
    "text": _encode_text,
    "integer": lambda value: _long(8, value),
    "real": lambda value: _pack_double(8, value),
    "boolean": lambda value: b"\0\0\0\x01\x01" if value else b"\0\0\0\x01\0",
    "json": _encode_json,
    "bytes": lambda value: _length(len(value)) + value,
    "time": _encode_time,
    "moment": _encode_moment,
    "day": _encode_day,
    "clock": _encode_clock,
    "decimal": _encode_decimal,
    "uuid": lambda value: _length(16) + value.bytes,
}
