"""A table of SQLite, for other systems to read: `sqlite:FILE`.

A file has one table for each output that is published there, named after it. The table of a stream
holds the latest value of each key:

    CREATE TABLE "counts" (key TEXT PRIMARY KEY, ts INTEGER, value TEXT)

`ts` is whole microseconds, `value` is canonical JSON (a BLOB if the value is bytes). The latest
event of a key stays: the one with the greatest `(ts, value)`, as in content order, no matter in
which batch it comes. An event whose value is null deletes its key. Changes of slates are upserted
and deleted as in any other database (`table_layout`).

A batch is one transaction, which also records the batch in the table `millstream:published`. So a
reader sees a batch whole or not at all, also after a crash, and a batch that the table already has
is skipped. The file is in WAL mode: readers do not block our writes, and our writes do not block
them.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from millstream.databases.options import quoted
from millstream.errors import DefinitionError, StoreError
from millstream.sinks.table_layout import LATEST, ColumnKind, TableLayout, TableRows
from millstream.sinks.tables import Noted, TableSink, check_owner

SQLITE_RECORD = "millstream:published"
"""The table that records published batches; no stream can have a name with a colon."""
WAIT_SECONDS = 5.0
"""The longest wait for another writer of the file. After that the write fails."""
_ORDER = "(ts, typeof(value) = 'text', value)"
"""The content order of stored rows: bytes, which are a BLOB, come before JSON."""
_TYPES: dict[ColumnKind, str] = {
    "text": "TEXT",
    "integer": "INTEGER",
    "real": "REAL",
    "boolean": "BOOLEAN",
    "json": "TEXT",
    "bytes": "BLOB",
    "time": "INTEGER",
    **dict.fromkeys(("moment", "day", "clock", "decimal", "uuid"), "TEXT"),
}


def sqlite_sink(
    path: str, query: str, name: str, layout: TableLayout = LATEST, *, wait: float = WAIT_SECONDS
) -> TableSink:
    """Returns the sink of an output; creates the file and the table, so that they can be read at
    once."""
    return TableSink(SqliteTable(path, query, name, layout.untyped(), wait), wait=False)


class SqliteTable:
    """The table of one output in a file. Other outputs may have theirs in the same file."""

    advice = "end the process that holds it, make room or give the right to write there"

    def __init__(self, path: str, query: str, name: str, layout: TableLayout, wait: float) -> None:
        if name.lower().startswith("sqlite_"):
            raise DefinitionError(
                f"sink sqlite:{path}: SQLite keeps names such as {name!r} for itself; give the "
                "stream another name, or another sink"
            )
        self.shown = f"sqlite:{path}"
        self._path = path
        self._query = query
        self._name = name
        self._table = quoted(name)
        self.layout = layout
        self._wait = wait
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None
        """The identity of the opened file: if it differs now, our file is gone."""

    def open(self) -> int:
        self.close()
        os.makedirs(os.path.dirname(os.path.abspath(self._path)), exist_ok=True)
        # The publishing thread is not the opening one, but only one thread at a time writes.
        connection = sqlite3.connect(
            self._path, timeout=self._wait, isolation_level=None, check_same_thread=False
        )
        self._connection = connection
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")  # a commit is on disk
            with _transaction(connection):
                last = self._make(connection)
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError as error:
            raise StoreError(
                f"sink {self.shown}: must be a file of SQLite; got: {error}; move it away, or name "
                "another"
            ) from None
        self._opened = _identity(self._path)
        return last

    def write(self, batch: int, rows: TableRows) -> None:
        if self._connection is None or self._opened != _identity(self._path):
            self.open()
        connection = self._connection
        assert connection is not None
        with _transaction(connection):
            noted = self._check_owner(connection)  # another writer may have been here
            if noted is not None and batch <= noted.batch:
                return
            if self.layout.mode == "latest":
                self._put_latest(connection, rows)
            else:
                self._put(connection, rows)
            connection.execute(
                f'UPDATE "{SQLITE_RECORD}" SET batch = ? WHERE stream = ?', (batch, self._name)
            )

    def is_passing(self, error: Exception) -> bool:
        return isinstance(error, (sqlite3.OperationalError, OSError))

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):  # committed batches are on disk
                connection.close()

    def _put_latest(self, connection: sqlite3.Connection, rows: TableRows) -> None:
        connection.executemany(
            f"INSERT INTO {self._table} (key, ts, value) VALUES (?, ?, ?) "
            "ON CONFLICT (key) DO UPDATE SET ts = excluded.ts, value = excluded.value "
            f"WHERE (excluded.ts, typeof(excluded.value) = 'text', excluded.value) > {_ORDER}",
            rows.put,
        )
        connection.executemany(
            f"DELETE FROM {self._table} WHERE key = ? AND {_ORDER} < (?, 1, 'null')", rows.gone
        )

    def _put(self, connection: sqlite3.Connection, rows: TableRows) -> None:
        columns, key = self.layout.columns, self.layout.key
        texts = [column.kind == "json" for column in columns]
        names = [quoted(column.name) for column in columns]
        keys = ", ".join(names[:key])
        sets = ", ".join(f"{name} = excluded.{name}" for name in names[key:])
        connection.executemany(
            f"INSERT INTO {self._table} ({', '.join(names)}) "
            f"VALUES ({', '.join('?' * len(names))}) "
            f"ON CONFLICT ({keys}) DO UPDATE SET {sets} WHERE excluded.batch >= batch",
            [
                [
                    value.decode() if is_json and value is not None else value
                    for value, is_json in zip(row, texts, strict=True)
                ]
                for row in rows.put
            ],
        )
        where = " AND ".join(f"{name} = ?" for name in names[:key])
        connection.executemany(f"DELETE FROM {self._table} WHERE {where} AND batch <= ?", rows.gone)

    def _make(self, connection: sqlite3.Connection) -> int:
        """Creates what does not exist; returns the last batch."""
        connection.execute(
            f'CREATE TABLE IF NOT EXISTS "{SQLITE_RECORD}" '
            "(stream TEXT PRIMARY KEY, query TEXT NOT NULL, batch INTEGER NOT NULL)"
        )
        self._check_owner(connection)
        columns, key = self.layout.columns, self.layout.key
        defined = [f"{quoted(column.name)} {_TYPES[column.kind]}" for column in columns]
        if key == 1:
            defined[0] += " PRIMARY KEY"
        else:
            named = ", ".join(quoted(column.name) for column in columns[:key])
            defined.append(f"PRIMARY KEY ({named})")
        connection.execute(f"CREATE TABLE IF NOT EXISTS {self._table} ({', '.join(defined)})")
        existing = {
            name.lower() for _, name, *_ in connection.execute(f"PRAGMA table_info({self._table})")
        }
        for column in columns:
            if column.name.lower() not in existing:  # the dataclass has a new field
                connection.execute(
                    f"ALTER TABLE {self._table} "
                    f"ADD COLUMN {quoted(column.name)} {_TYPES[column.kind]}"
                )
        connection.execute(
            f'INSERT OR IGNORE INTO "{SQLITE_RECORD}" VALUES (?, ?, -1)', (self._name, self._query)
        )
        (last,) = connection.execute(
            f'SELECT batch FROM "{SQLITE_RECORD}" WHERE stream = ?', (self._name,)
        ).fetchone()
        return int(last)

    def _check_owner(self, connection: sqlite3.Connection) -> Noted | None:
        noted = None
        for stream, query, batch in connection.execute(
            f'SELECT stream, query, batch FROM "{SQLITE_RECORD}" WHERE stream = ? COLLATE NOCASE',
            (self._name,),
        ):
            if stream != self._name:
                raise StoreError(
                    f"sink {self.shown}: stream {self._name!r} cannot have a table beside that of "
                    f"{stream!r}, since SQLite ignores case in names; give it another file"
                )
            noted = Noted(query, batch)
        table = connection.execute(
            "SELECT 1 FROM sqlite_master WHERE name = ? COLLATE NOCASE", (self._name,)
        ).fetchone()
        check_owner(self.shown, self._query, noted, table is not None)
        return noted


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Runs its block as one transaction: all of it takes effect, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # closing rolls back too
            connection.execute("ROLLBACK")
        raise


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
