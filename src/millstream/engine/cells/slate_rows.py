"""The rows of a function's slates and table entries in one shard during one batch.

Reads see what this batch has changed. The changes are collected until the task commits them.
"""

from __future__ import annotations

from collections.abc import Iterator

from millstream.engine.cells.change_rows import entry_changes, slate_changes
from millstream.model.slate import overlay
from millstream.slate_changes import SlateChanges
from millstream.stores.contract import View, after_prefix
from millstream.stores.layout import slates_of, table_of

Rows = dict[bytes, bytes | None]


class StoredEntries:
    """The stored entries of one table, overlaid with the changes of this batch."""

    def __init__(self, view: View, prefix: bytes, changed: dict[str, bytes | None]) -> None:
        self._view = view
        self._prefix = prefix
        self._changed = changed

    def get(self, entry: str) -> bytes | None:
        if entry in self._changed:
            return self._changed[entry]
        return self._view.get(self._prefix + entry.encode())

    def scan(self, start: str, stop: str | None, reverse: bool) -> Iterator[tuple[str, bytes]]:
        size, first = len(self._prefix), self._prefix + start.encode()
        last = after_prefix(self._prefix) if stop is None else self._prefix + stop.encode()
        inside = (e for e in self._changed if start <= e and (stop is None or e < stop))
        changed = [(e, self._changed[e]) for e in sorted(inside, reverse=reverse)]
        rows = self._view.scan(first, last, reverse=reverse)
        return overlay(changed, ((row[size:].decode(), value) for row, value in rows), reverse)


class SlateRows:
    """`slates` and `tables` are the changes so far; a deleted slate or entry is None."""

    def __init__(self, view: View, stored: str) -> None:
        """`stored` is the name under which the function's rows are stored."""
        self.slates: dict[str, bytes | None] = {}
        self.tables: dict[str, dict[str, bytes | None]] = {}
        self._gone: dict[str, int] = {}
        """The time of the last update of each slate that this batch has deleted."""
        self._view = view
        self._stored = stored
        self._prefix = slates_of(stored)

    def read(self, keys: list[str]) -> list[bytes | None]:
        """Returns the current rows of slates."""
        prefix, slates = self._prefix, self.slates
        if not slates:
            return self._view.get_many([prefix + key.encode() for key in keys])
        stored = [key for key in keys if key not in slates]
        rows = self._view.get_many([prefix + key.encode() for key in stored])
        unchanged = dict(zip(stored, rows, strict=True))
        return [slates[key] if key in slates else unchanged[key] for key in keys]

    def entries(self, key: str) -> StoredEntries:
        """Returns the current entries of a table."""
        return StoredEntries(self._view, table_of(self._stored, key), self.tables.get(key, {}))

    def delete(self, key: str, last: int) -> None:
        """Deletes a slate that was last updated at time `last`."""
        self.slates[key], self._gone[key] = None, last

    def wipe(self, key: str) -> None:
        """Deletes every entry of a table that was forgotten or has expired."""
        prefix = table_of(self._stored, key)
        changed = self.tables.setdefault(key, {})
        for entry in changed:
            changed[entry] = None
        for row, _ in self._view.scan(prefix, after_prefix(prefix)):
            changed[row[len(prefix) :].decode()] = None

    def slate_changes(self, batch: int) -> SlateChanges:
        """Returns the final state of each slate that this batch has changed."""
        return slate_changes(self.slates, self._gone, batch)

    def entry_changes(self, batch: int) -> SlateChanges:
        """Returns the final state of each table entry that this batch has changed."""
        return entry_changes(self.tables, self.slates, self._gone, batch)

    def changes(self) -> Rows:
        """Returns the rows to commit."""
        prefix = self._prefix
        rows: Rows = {prefix + key.encode(): row for key, row in self.slates.items()}
        for key, entries in self.tables.items():
            table = table_of(self._stored, key)
            for entry, value in entries.items():
                rows[table + entry.encode()] = value
        return rows
