"""The backends of lookups: read one row of a table by its key, or call a plain function.

A row is a dict of its columns, with the values that the database's client returns;
`answer_codec` turns times, addresses, ranges and the like into text, and sets into lists.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol

from millstream.databases import cassandra, postgres
from millstream.databases.options import CASSANDRA, DatabaseOptions, quoted


class Backend(Protocol):
    """Reads one key. Opened at the first read, in the process that reads."""

    def read(self, key: str) -> Any:
        """Returns the row, or None. After any error, call `close` before a retry."""
        ...

    def close(self) -> None: ...


class FunctionBackend:
    """A plain function of a key."""

    def __init__(self, function: Callable[[str], Any]) -> None:
        self._function = function

    def read(self, key: str) -> Any:
        return self._function(key)

    def close(self) -> None:
        pass


class SqliteBackend:
    """A table in a file."""

    def __init__(self, path: str, table: str, key: str, seconds: float) -> None:
        self._path = path
        self._query = f"SELECT * FROM {quoted(table)} WHERE {quoted(key)} = ? LIMIT 1"
        self._seconds = seconds
        self._connection: sqlite3.Connection | None = None

    def read(self, key: str) -> Any:
        if self._connection is None:
            self._connection = sqlite3.connect(
                f"file:{self._path}?mode=ro",
                uri=True,
                timeout=self._seconds,
                check_same_thread=False,  # one task reads at a time, but maybe in different threads
            )
            self._connection.row_factory = sqlite3.Row
        row = self._connection.execute(self._query, (key,)).fetchone()
        return None if row is None else dict(row)

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


class PostgresBackend:
    """A table of PostgreSQL."""

    def __init__(self, options: DatabaseOptions, key: str, seconds: float) -> None:
        schema = "" if options.schema is None else f"{quoted(options.schema)}."
        self._options = options
        self._query = (
            f"SELECT * FROM {schema}{quoted(options.table)} WHERE {quoted(key)} = %s LIMIT 1"
        )
        self._milliseconds = max(1, int(seconds * 1_000))
        self._connection: Any = None

    def read(self, key: str) -> Any:
        if self._connection is None:
            self._connection = postgres.connect(self._options, autocommit=True)
            self._connection.execute(f"SET statement_timeout = {self._milliseconds}")
        cursor = self._connection.execute(self._query, (key,))
        row = cursor.fetchone()
        if row is None:
            return None
        return {column.name: value for column, value in zip(cursor.description, row, strict=True)}

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):  # the connection may be lost already
                connection.close()


class CassandraBackend:
    """A table of Cassandra, whose partition key is one text column."""

    def __init__(self, options: DatabaseOptions, key: str, seconds: float) -> None:
        self._options = options
        table = f"{quoted(options.schema or '')}.{quoted(options.table)}"
        self._query = f"SELECT * FROM {table} WHERE {quoted(key)} = ? LIMIT 1"
        self._seconds = seconds
        self._opened: cassandra.Opened | None = None
        self._prepared: Any = None

    def read(self, key: str) -> Any:
        if self._opened is None:
            self._opened = cassandra.connect(self._options)
            self._prepared = self._opened.session.prepare(self._query)
        rows = self._opened.session.execute(self._prepared, (key,), timeout=self._seconds)
        row = rows.one()
        return None if row is None else row._asdict()

    def close(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()


def database_backend(options: DatabaseOptions, key: str, seconds: float) -> Backend:
    if options.format == CASSANDRA:
        return CassandraBackend(options, key, seconds)
    return PostgresBackend(options, key, seconds)
