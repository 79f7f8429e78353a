"""Reads entries of many tables, all as of one committed batch.

A shard is opened when its first entry is asked for, and shows that batch until `close`. Opening
raises StaleRead if the shard has forgotten the batch by then: read again as of a later batch, as
`SlateReader.read_tables` does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Self, TypeVar

from millstream.codec import decode_value, shard_of
from millstream.stores.contract import Shard, View
from millstream.stores.layout import table_of

T = TypeVar("T")
PLACES = 10_000
"""The most tables whose views and prefixes are cached."""


class BatchTables:
    """The tables of a store as of a batch. A context manager, used by one thread; keep it short."""

    def __init__(
        self, shards: Sequence[Shard], batch: int, stored: Callable[[str], str] = str
    ) -> None:
        """`stored` returns the name under which an update's rows are stored."""
        self.batch = batch
        self._stored = stored
        self._shards = shards
        self._views: dict[int, View] = {}
        self._places: dict[tuple[str, str], tuple[View, bytes]] = {}
        """For each table that was asked for: the view of its shard, and the prefix of its rows."""
        self._made: dict[str, Any] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        views, self._views = self._views, {}
        self._places.clear()
        self._made.clear()
        for view in views.values():
            view.__exit__(None, None, None)

    def get(self, update: str, key: str, entry: str) -> Any:
        view, prefix = self._place(update, key)
        data = view.get(prefix + entry.encode())
        return None if data is None else decode_value(data)

    def rows(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False, cut: int = 0
    ) -> Iterator[tuple[bytes, bytes]]:
        """Entries with `start <= entry < stop`, not decoded, in name order or in reverse.

        Lazy: entries are read as they are consumed. The first `cut` bytes are left out of each
        name; all names in the range must share them.
        """
        view, prefix = self._place(update, key)
        first, end = prefix + start.encode(), prefix + stop.encode()
        return view.scan(first, end, reverse=reverse, cut=len(prefix) + cut)

    def scan(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False
    ) -> Iterator[tuple[str, Any]]:
        """Like `rows`, with decoded names and values."""
        rows = self.rows(update, key, start, stop, reverse=reverse)
        return ((name.decode(), decode_value(value)) for name, value in rows)

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Returns the result cached under the name `name`; calls `make` the first time."""
        if name not in self._made:
            self._made[name] = make()
        result: T = self._made[name]
        return result

    def _place(self, update: str, key: str) -> tuple[View, bytes]:
        table = update, key
        place = self._places.get(table)
        if place is None:
            update = self._stored(update)
            number = shard_of(update, key, len(self._shards))
            view = self._views.get(number)
            if view is None:
                view = self._views[number] = self._shards[number].at(self.batch).__enter__()
            if len(self._places) >= PLACES:
                self._places.clear()
            place = self._places[table] = view, table_of(update, key)
        return place
