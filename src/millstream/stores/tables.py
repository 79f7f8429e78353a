"""Reading entries of many tables, all as of one committed batch.

A shard is looked into only when an entry of it is asked for, and from then on shows that batch until
this is closed. Raises StaleRead if the shard has forgotten the batch by then: read anew, as
`SlateReader.read_tables` does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Self

from millstream.codec import decode_value, shard_of
from millstream.stores.contract import Shard, View
from millstream.stores.layout import table_of


class BatchTables:
    """The tables of a store as of a batch. A context manager, used by one thread; keep it short."""

    def __init__(self, shards: Sequence[Shard], batch: int) -> None:
        self.batch = batch
        self._shards = shards
        self._views: dict[int, View] = {}
        self._opened = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._views.clear()
        self._opened.close()

    def get(self, update: str, key: str, entry: str) -> Any:
        """The value of an entry; None if it is not there."""
        found = self._view(update, key).get_many([table_of(update, key) + entry.encode()])[0]
        return None if found is None else decode_value(found)

    def scan(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False
    ) -> Iterator[tuple[str, Any]]:
        """Entries with `start <= entry < stop`, in the order of their names or the reverse; read
        as they are taken."""
        prefix = table_of(update, key)
        size = len(prefix)
        rows = self._view(update, key).scan(
            prefix + start.encode(), prefix + stop.encode(), reverse=reverse
        )
        return ((row[size:].decode(), decode_value(value)) for row, value in rows)

    def _view(self, update: str, key: str) -> View:
        number = shard_of(update, key, len(self._shards))
        view = self._views.get(number)
        if view is None:
            view = self._opened.enter_context(self._shards[number].at(self.batch))
            self._views[number] = view
        return view
