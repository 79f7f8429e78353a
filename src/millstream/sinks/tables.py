"""A table of SQLite that holds the latest value of each key, for other systems to read.

This is the *persister* of S4's Figure 3: `persister.set(query, count)`. A file has one table for
each stream that is published there, named after it:

    CREATE TABLE "counts" (key TEXT PRIMARY KEY, ts INTEGER, value TEXT)

`ts` is whole microseconds, `value` is canonical JSON (a BLOB if the value is bytes). Of the events
of a key the latest stays: the one with the greatest `(ts, value)`, as in content order, whichever
batch it comes in. An event whose value is null deletes its key.

A batch is one transaction, which also notes the batch in the table `millstream:published`. So a
reader sees a batch whole or not at all, a crash leaves it in or out, and one that is there already
is left alone. The file is in WAL mode: who reads it does not keep us from writing, nor we them.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from millstream.codec import BYTES_TAG, encode_value
from millstream.errors import DefinitionError, SinkError, StoreError
from millstream.sinks.row_files import Row

RECORD = "millstream:published"
"""The table of what was published; no stream can have a name with a colon."""
WAIT_SECONDS = 5.0
"""How long another writer of the file is waited for, before it counts as a failure."""
Values = dict[str, tuple[int, bytes]]
"""By key the `ts` and the canonical bytes of the value."""
NULL = b"null"
_ORDER = "(ts, typeof(value) = 'text', value)"
"""The content order of what is stored: bytes, which are a BLOB, come before JSON."""


class TableSink:
    """The table of one stream in a file. Other streams may have theirs in the same file."""

    def __init__(
        self, path: str, query_id: str, stream: str, *, wait: float = WAIT_SECONDS
    ) -> None:
        """Make the file and the table, so that they can be read before the first event."""
        if stream.lower().startswith("sqlite_"):
            raise DefinitionError(
                f"sink sqlite:{path}: SQLite keeps names such as {stream!r} for itself; give the "
                "stream another name, or another sink"
            )
        self.path = path
        self._query = query_id
        self._stream = stream
        self._table = _quoted(stream)
        self._wait = wait
        self._connection: sqlite3.Connection | None = None
        self._opened: tuple[int, int] | None = None
        """Which file was opened: if another one is there now, ours is gone."""
        self._last = -1
        self._attempt("the file", self._open)

    def publish(self, batch: int, rows: list[Row]) -> None:
        """Put the latest value of each key into the table, unless the batch is there already.

        It is on disk when this returns. SinkError if the system refuses: then it may be tried
        again.
        """
        if rows:
            values = _latest(rows)
            self._attempt(f"batch {batch}", lambda: self._write(batch, values))

    def close(self) -> None:
        """Let go of the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(sqlite3.Error):  # what was committed is on disk
                connection.close()

    def _attempt(self, what: str, act: Callable[[], object]) -> None:
        try:
            act()
        except (sqlite3.OperationalError, OSError) as error:
            self.close()  # the next try opens it anew
            why = getattr(error, "strerror", None) or error
            raise SinkError(
                f"sink sqlite:{self.path}: {what} cannot be written: {why}; end what holds it, "
                "make room or give the right to write there"
            ) from error
        except sqlite3.DatabaseError as error:
            self.close()
            raise StoreError(
                f"sink sqlite:{self.path}: must be a file of SQLite; got: {error}; move it away, "
                "or name another"
            ) from None
        except StoreError:
            self.close()
            raise

    def _write(self, batch: int, values: Values) -> None:
        connection = self._connection
        if connection is None or self._opened != _identity(self.path):
            connection = self._open()
        if batch <= self._last:
            return
        table = self._table
        with _transaction(connection):
            self._check_owner(connection)  # another may have made the table its own meanwhile
            connection.executemany(
                f"INSERT INTO {table} (key, ts, value) VALUES (?, ?, ?) "
                "ON CONFLICT (key) DO UPDATE SET ts = excluded.ts, value = excluded.value "
                f"WHERE (excluded.ts, typeof(excluded.value) = 'text', excluded.value) > {_ORDER}",
                [
                    (key, ts, value[1:] if value[:1] == BYTES_TAG else value.decode())
                    for key, (ts, value) in values.items()
                    if value != NULL
                ],
            )
            connection.executemany(
                f"DELETE FROM {table} WHERE key = ? AND {_ORDER} < (?, 1, 'null')",
                [(key, ts) for key, (ts, value) in values.items() if value == NULL],
            )
            connection.execute(
                f'UPDATE "{RECORD}" SET batch = ? WHERE stream = ?', (batch, self._stream)
            )
        self._last = batch

    def _open(self) -> sqlite3.Connection:
        """Connect, and make what is not there; afterwards `_last` is known."""
        self.close()
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), exist_ok=True)
        # Batches are published by another thread than the one that opens; never by two at once.
        connection = sqlite3.connect(
            self.path, timeout=self._wait, isolation_level=None, check_same_thread=False
        )
        self._connection = connection
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")  # a commit is on disk
        with _transaction(connection):
            connection.execute(
                f'CREATE TABLE IF NOT EXISTS "{RECORD}" '
                "(stream TEXT PRIMARY KEY, query TEXT NOT NULL, batch INTEGER NOT NULL)"
            )
            self._check_owner(connection)
            connection.execute(
                f"CREATE TABLE IF NOT EXISTS {self._table} "
                "(key TEXT PRIMARY KEY, ts INTEGER, value TEXT)"
            )
            connection.execute(
                f'INSERT OR IGNORE INTO "{RECORD}" VALUES (?, ?, -1)', (self._stream, self._query)
            )
            (self._last,) = connection.execute(
                f'SELECT batch FROM "{RECORD}" WHERE stream = ?', (self._stream,)
            ).fetchone()
        self._opened = _identity(self.path)
        return connection

    def _check_owner(self, connection: sqlite3.Connection) -> None:
        """StoreError unless the table is this query's, or is not there yet."""
        noted = connection.execute(
            f'SELECT stream, query FROM "{RECORD}" WHERE stream = ? COLLATE NOCASE', (self._stream,)
        ).fetchall()
        for stream, query in noted:
            if stream != self._stream:
                raise StoreError(
                    f"sink sqlite:{self.path}: stream {self._stream!r} cannot have a table beside "
                    f"that of {stream!r}, since SQLite knows no capitals; give it another file"
                )
            if query != self._query:
                raise StoreError(
                    f"sink sqlite:{self.path}: store {self._query!r} cannot write where store "
                    f"{query!r} does; name another file, or move this one away if that store is "
                    "over"
                )
        there = connection.execute(
            "SELECT 1 FROM sqlite_master WHERE name = ? COLLATE NOCASE", (self._stream,)
        ).fetchone()
        if there and not noted:
            raise StoreError(
                f"sink sqlite:{self.path}: the file has a table {self._stream!r} that Millstream "
                "did not make; name another file"
            )


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All that is done inside, or nothing of it."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):  # closing rolls back too
            connection.execute("ROLLBACK")
        raise


def _latest(rows: list[Row]) -> Values:
    """Of each key the last row in content order, also of several batches at once."""
    values: Values = {}
    for row in rows:
        key, value = row["key"], (row["ts"], encode_value(row["value"]))
        if key not in values or values[key] < value:
            values[key] = value
    return values


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
