"""Reading entries of many tables, all as of one committed batch.

A shard is looked into only when an entry of it is asked for, and from then on shows that batch
until this is closed. Raises StaleRead if the shard has forgotten the batch by then: read anew, as
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
"""Tables whose places are kept in mind."""


class BatchTables:
    """The tables of a store as of a batch. A context manager, used by one thread; keep it short."""

    def __init__(self, shards: Sequence[Shard], batch: int) -> None:
        self.batch = batch
        self._shards = shards
        self._views: dict[int, View] = {}
        self._places: dict[tuple[str, str], tuple[View, bytes]] = {}
        """Of each table that was asked for: the view of its shard, and how its rows begin."""
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
        """The value of an entry; None if it is not there."""
        view, prefix = self._place(update, key)
        found = view.get(prefix + entry.encode())
        return None if found is None else decode_value(found)

    def rows(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False, cut: int = 0
    ) -> Iterator[tuple[bytes, bytes]]:
        """Entries with `start <= entry < stop`, in the order of their names or the reverse; read
        as they are taken, and not decoded. Of each name the first `cut` bytes are left out, which
        all in between must share."""
        view, prefix = self._place(update, key)
        first, end = prefix + start.encode(), prefix + stop.encode()
        return view.scan(first, end, reverse=reverse, cut=len(prefix) + cut)

    def scan(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False
    ) -> Iterator[tuple[str, Any]]:
        """The same, decoded."""
        rows = self.rows(update, key, start, stop, reverse=reverse)
        return ((name.decode(), decode_value(value)) for name, value in rows)

    def once(self, what: str, make: Callable[[], T]) -> T:
        """What was made under this name before, of these same tables; else makes it."""
        if what not in self._made:
            self._made[what] = make()
        made: T = self._made[what]
        return made

    def _place(self, update: str, key: str) -> tuple[View, bytes]:
        known = update, key
        place = self._places.get(known)
        if place is None:
            number = shard_of(update, key, len(self._shards))
            view = self._views.get(number)
            if view is None:
                view = self._views[number] = self._shards[number].at(self.batch).__enter__()
            if len(self._places) >= PLACES:
                self._places.clear()
            place = self._places[known] = view, table_of(update, key)
        return place
