"""Reading slates from outside: always as of one committed batch, never half of two.

Works while the application runs, while it restarts and when it does not run. A scan holds one read
transaction a shard for as long as it lasts: consistent however long, at the price that the store
cannot reuse room meanwhile. Page with `after` and `limit` to keep it short.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from millstream.codec import decode_value, shard_of
from millstream.errors import StaleRead, StoreError
from millstream.nearest import did_you_mean
from millstream.stores.contract import View, after_prefix
from millstream.stores.home import Home
from millstream.stores.layout import slates_of, table_of, unpack_slate

T = TypeVar("T")
TRIES = 20


@dataclass(frozen=True, slots=True)
class StoredSlate:
    """A slate as of a committed batch. A table's value is a dict of its entries."""

    key: str
    value: Any
    ts: int
    """The greatest ts that updated it, in microseconds."""
    batch: int


class SlateReader:
    """Reads the slates of a store. A context manager; cheap to open."""

    def __init__(self, store: Path) -> None:
        self._home = Home.open(Path(store))
        self._store = self._home.store()

    def __enter__(self) -> SlateReader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self._store.close()

    @property
    def updates(self) -> tuple[str, ...]:
        return tuple(self._home.facts.updates)

    @property
    def batch(self) -> int:
        """The last committed batch."""
        return self._home.committed()

    def get(self, update: str, key: str) -> StoredSlate | None:
        """The slate of a key, or None."""
        kind = self._kind(update)
        shard = self._store.shard(shard_of(update, key, self._home.facts.shards))

        def read(batch: int) -> StoredSlate | None:
            with shard.at(batch) as view:
                row = view.get_many([slates_of(update) + key.encode()])[0]
                return None if row is None else _decoded(view, update, kind, key, row, batch)

        return self._current(read)

    def scan(
        self,
        update: str,
        *,
        prefix: str = "",
        after: str | None = None,
        limit: int | None = None,
    ) -> Iterator[StoredSlate]:
        """Slates in key order over all shards: keys with the prefix, past `after`."""
        kind = self._kind(update)
        start = slates_of(update)
        first, last = start + prefix.encode(), after_prefix(start + prefix.encode())
        if after is not None:
            first = max(first, start + after.encode() + b"\x00")

        def open_all(batch: int) -> tuple[ExitStack, list[View], int]:
            with ExitStack() as opened:
                shards = range(self._home.facts.shards)
                views: list[View] = [
                    opened.enter_context(self._store.shard(n).at(batch)) for n in shards
                ]
                return opened.pop_all(), views, batch

        opened, views, batch = self._current(open_all)
        with opened:
            yield from islice(slates_in(views, update, kind, batch, first, last), limit)

    def _kind(self, update: str) -> str:
        kind = self._home.facts.updates.get(update)
        if kind is None:
            hint = did_you_mean(update, self.updates)
            raise StoreError(f"{self._home.path}: no update {update!r} is there; {hint}")
        return kind

    def _current(self, read: Callable[[int], T]) -> T:
        """Read as of the last committed batch, again if the shards moved on meanwhile."""
        for _ in range(TRIES):
            try:
                return read(self._home.committed())
            except StaleRead as error:
                stale = error
        raise stale


def slates_in(
    views: Sequence[View],
    update: str,
    kind: str,
    batch: int,
    first: bytes | None = None,
    last: bytes | None = None,
) -> Iterator[StoredSlate]:
    """The slates of an update in these views, which are of `batch`, in key order; all of them, or
    those whose rows are from `first` up to `last`."""
    start = slates_of(update)
    if first is None:
        first, last = start, after_prefix(start)
    rows = [_numbered(number, view.scan(first, last)) for number, view in enumerate(views)]
    for row, number, data in heapq.merge(*rows):
        yield _decoded(views[number], update, kind, row[len(start) :].decode(), data, batch)


def _numbered(
    number: int, rows: Iterator[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, int, bytes]]:
    """Rows with the number of the view that they are from."""
    return ((row, number, data) for row, data in rows)


def _decoded(view: View, update: str, kind: str, key: str, row: bytes, batch: int) -> StoredSlate:
    last, data, _ = unpack_slate(row)
    if kind != "table":
        return StoredSlate(key, decode_value(data), last, batch)
    prefix = table_of(update, key)
    entries = {
        entry[len(prefix) :].decode(): decode_value(value)
        for entry, value in view.scan(prefix, after_prefix(prefix))
    }
    return StoredSlate(key, entries, last, batch)
