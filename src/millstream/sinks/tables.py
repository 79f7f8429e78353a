"""Tables of other systems as sinks: the part that all databases share.

A `TableSink` writes the rows of batches to a table of a database, which is created if it does not
exist. If the database is unavailable, the batch is retried; writing a batch twice changes nothing.
Each table has one writer, a store; others are refused. The last batch is recorded in our own table
beside it, `millstream_published` (in SQLite `millstream:published`).

This is the *persister* of S4's Figure 3, `persister.set(query, count)`, and Muppet's store that
others read (section 4.2).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import NamedTuple, Protocol

from millstream.errors import InputError, SinkError, StoreError
from millstream.sinks.row_files import Row
from millstream.sinks.table_layout import TableLayout, TableRows
from millstream.slate_changes import SlateChanges

RECORD = "millstream_published"
"""Our own table, which records the last batch and the writer of each table."""
HASH_LENGTH = 64


class DatabaseTable(Protocol):
    """A table of a database, and our connection to it."""

    shown: str
    """The address as errors show it, without secrets."""
    advice: str
    """Advice for the user when a write fails."""
    layout: TableLayout
    """The layout of its rows. Once the table is open, it fits the columns of an existing table."""

    def open(self) -> int:
        """Connects, and creates what does not exist; returns the last batch written, or -1.

        StoreError if the table belongs to another writer.
        """
        ...

    def write(self, batch: int, rows: TableRows) -> None:
        """Writes and records a batch; it is durable when this returns. A repeat changes nothing,
        and no row of a later batch is overwritten."""
        ...

    def is_passing(self, error: Exception) -> bool:
        """True if the error is temporary: a retry may succeed after opening again."""
        ...

    def close(self) -> None: ...


class TableSink:
    """The table that one output is published to."""

    def __init__(self, table: DatabaseTable, *, wait: bool) -> None:
        """With `wait`, a database that is unavailable now is opened when the first batch comes."""
        self._table = table
        self._last: int | None = None
        """The last batch written; None while there is no connection."""
        try:
            self._attempt("the table", self._open)
        except SinkError:
            if not wait:
                raise

    def publish(self, batch: int, rows: list[Row]) -> None:
        """Writes the events of a batch, unless it is there already.

        Raises SinkError if the database is unavailable or refuses; a retry may succeed.
        """
        if rows:
            self._write(batch, lambda: self._table.layout.events(batch, rows))

    def publish_changes(self, batch: int, changes: SlateChanges) -> None:
        """Writes the changes of slates of a batch, or of several up to it, in the same way."""
        if len(changes):
            self._write(batch, lambda: self._table.layout.changes(changes))

    def close(self) -> None:
        """Closes the connection."""
        self._last = None
        self._table.close()

    def _write(self, batch: int, rows: Callable[[], TableRows]) -> None:
        def attempt() -> None:
            last = self._open() if self._last is None else self._last
            if batch > last:
                self._table.write(batch, rows())
                self._last = batch

        self._attempt(f"batch {batch}", attempt)

    def _open(self) -> int:
        self._last = self._table.open()
        return self._last

    def _attempt(self, subject: str, act: Callable[[], object]) -> None:
        try:
            act()
        except StoreError:
            self.close()
            raise
        except InputError as error:  # the password is not there yet
            self.close()
            raise SinkError(f"sink {error}") from None
        except Exception as error:
            self.close()  # the next attempt opens it again
            reason = _reason(error)
            if self._table.is_passing(error):
                raise SinkError(
                    f"sink {self._table.shown}: {subject} cannot be written: {reason}; "
                    f"{self._table.advice}"
                ) from error
            raise StoreError(
                f"sink {self._table.shown}: {subject} was refused: {reason}; give the table the "
                "columns that docs/tables.md names, or name another"
            ) from error


class Noted(NamedTuple):
    """The row of one table in our own table."""

    query: str
    """The store that writes it."""
    batch: int


def check_owner(shown: str, query: str, noted: Noted | None, is_there: bool) -> None:
    """Raises StoreError unless the table belongs to this store, or does not exist yet."""
    if noted is not None and noted.query != query:
        raise StoreError(
            f"sink {shown}: store {query!r} cannot write where store {noted.query!r} does; name "
            f"another table, or, if that store is over, drop this one and its row of {RECORD}"
        )
    if noted is None and is_there:
        raise StoreError(
            f"sink {shown}: there is a table of that name that Millstream did not create; name "
            "another"
        )
    if noted is not None and noted.batch >= 0 and not is_there:
        raise StoreError(
            f"sink {shown}: the table is gone, and batches up to {noted.batch} were in it; restore "
            f"it, or delete its row of {RECORD} to begin a new one with the batches to come"
        )


def fitted(text: str, most: int) -> str:
    """Cuts a text to at most `most` bytes; a longer one then ends with the hash of the whole text.

    >>> fitted("key", 1_000), len(fitted("k" * 2_000, 1_000))
    ('key', 1000)
    """
    if len(text) * 4 <= most:
        return text
    encoded = text.encode()
    if len(encoded) <= most:
        return text
    kept = encoded[: most - HASH_LENGTH].decode(errors="ignore")
    return kept + hashlib.sha256(encoded).hexdigest()


def _reason(error: Exception) -> str:
    message = getattr(error, "strerror", None) or str(error).strip() or type(error).__name__
    text = "; ".join(str(message).splitlines())
    return text if len(text) <= 300 else f"{text[:300]}…"
