"""Reads slates from outside the application: always as of one committed batch, never a mix of two.

Works while the application runs, while it restarts and when it does not run. A scan holds one read
transaction a shard until it ends: it is consistent however long it takes, but the store cannot
reuse space meanwhile. Page with `after` and `limit` to keep it short.

Slates come as values (`get`, `scan`) or as the JSON text that they are stored as (`get_written`,
`written`), which can be passed on without parsing.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from millstream.codec import BYTES_TAG, decode_value, shard_of
from millstream.errors import StaleRead, StoreError
from millstream.nearest import did_you_mean
from millstream.stores.absent_shard import AbsentShard
from millstream.stores.contract import Shard, View, after_prefix
from millstream.stores.home import Home
from millstream.stores.layout import slates_of, table_of, unpack_slate
from millstream.stores.tables import BatchTables

T = TypeVar("T")
TRIES = 20
PAUSE = 0.0005
"""Seconds by which the pause before each retry grows."""


@dataclass(frozen=True, slots=True)
class StoredSlate:
    """A slate as of a committed batch. A table's value is a dict of its entries."""

    key: str
    value: Any
    ts: int
    """The greatest ts that updated it, in microseconds."""
    batch: int


@dataclass(frozen=True, slots=True)
class WrittenSlate:
    """A slate as JSON text, as of a committed batch. Bytes in a table are base64."""

    key: str
    json: bytes
    ts: int
    batch: int


class SlateReader:
    """Reads the slates of a store. A context manager; cheap to open.

    A caller that already follows the store passes its `home` and a function that returns the last
    `committed` batch.
    """

    def __init__(
        self, store: Path, home: Home | None = None, committed: Callable[[], int] | None = None
    ) -> None:
        self._home = home or Home.open(Path(store))
        self._committed = committed or self._home.committed
        self._store = self._home.store()
        here = self._home.facts.here
        self._shards: list[Shard] = [
            self._store.shard(number) if here is None or number in here else self._absent(number)
            for number in range(self._store.shards)
        ]
        self._held: BatchTables | None = None

    def __enter__(self) -> SlateReader:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        self.let_go()
        self._store.close()

    def _absent(self, number: int) -> AbsentShard:
        return AbsentShard(number, self._home.facts.here or [])

    @property
    def updates(self) -> tuple[str, ...]:
        return tuple(self._home.facts.updates)

    @property
    def batch(self) -> int:
        """The last committed batch."""
        return self._committed()

    def get(self, update: str, key: str) -> StoredSlate | None:
        """The slate of a key, or None."""
        return self._get(update, key, _decoded)

    def get_written(self, update: str, key: str, batch: int | None = None) -> WrittenSlate | None:
        """The slate of a key as JSON, or None; as of `batch` unless that is forgotten already."""
        return self._get(update, key, _written, batch)

    def scan(
        self, update: str, *, prefix: str = "", after: str | None = None, limit: int | None = None
    ) -> Iterator[StoredSlate]:
        """Slates in key order over all shards, of keys with the prefix and greater than `after`."""
        with self._scanned(update, prefix, after, _decoded) as (_, slates):
            yield from islice(slates, limit)

    @contextmanager
    def written(
        self, update: str, *, prefix: str = "", after: str | None = None
    ) -> Iterator[tuple[int, Iterator[WrittenSlate]]]:
        """Like `scan`, as JSON; also gives the batch as of which all slates are read."""
        with self._scanned(update, prefix, after, _written) as scanned:
            yield scanned

    def entries(
        self, update: str, prefixes: Sequence[str]
    ) -> tuple[int, dict[str, dict[str, Any]]]:
        """The batch, and for every table of an update, by key, the entries with these prefixes.

        Other entries are not read, however many there are.
        """

        def made(
            view: View, update: str, kind: str, key: str, row: bytes, batch: int
        ) -> tuple[str, dict[str, Any]]:
            rows = (item for prefix in prefixes for item in _entries(view, update, key, prefix))
            return key, {entry: decode_value(value) for entry, value in rows}

        with self._scanned(update, "", None, made) as (batch, tables):
            return batch, dict(tables)

    def read_tables(
        self, read: Callable[[BatchTables], T], batch: int | None = None, *, hold: bool = False
    ) -> T:
        """Calls `read` with the tables as of one batch, by default the last committed one, and
        returns its result. `read` is called again if the shards moved on meanwhile.

        With `hold` the shards stay open for the next read of the same batch, which is then much
        cheaper. Only one thread may do so, and must call `let_go` soon: open shards keep the store
        from reusing space.
        """

        def once(batch: int) -> T:
            if hold:
                return read(self._held_at(batch))
            with BatchTables(self._shards, batch, self._home.facts.stored) as tables:
                return read(tables)

        try:
            return self._current(once, batch)
        except BaseException:
            if hold:
                self.let_go()
            raise

    def let_go(self) -> None:
        """Close the shards that a read with `hold` has left open, if any."""
        if self._held is not None:
            self._held.close()
            self._held = None

    def _held_at(self, batch: int) -> BatchTables:
        if self._held is None or self._held.batch != batch:
            self.let_go()
            self._held = BatchTables(self._shards, batch, self._home.facts.stored)
        return self._held

    def kind(self, update: str) -> str:
        """The kind of an update's slates: dict, dataclass or table; StoreError if unknown."""
        kind = self._home.facts.updates.get(update)
        if kind is None:
            hint = did_you_mean(update, self.updates)
            raise StoreError(f"{self._home.path}: no update {update!r} is there; {hint}")
        return kind

    def _get(self, update: str, key: str, made: Made[T], batch: int | None = None) -> T | None:
        kind, update = self.kind(update), self._home.facts.stored(update)
        shard = self._shards[shard_of(update, key, len(self._shards))]

        def read(batch: int) -> T | None:
            with shard.at(batch) as view:
                row = view.get(slates_of(update) + key.encode())
                return None if row is None else made(view, update, kind, key, row, batch)

        return self._current(read, batch)

    @contextmanager
    def _scanned(
        self, update: str, prefix: str, after: str | None, made: Made[T]
    ) -> Iterator[tuple[int, Iterator[T]]]:
        kind, update = self.kind(update), self._home.facts.stored(update)
        start = slates_of(update)
        first, last = start + prefix.encode(), after_prefix(start + prefix.encode())
        if after is not None:
            first = max(first, start + after.encode() + b"\x00")

        def open_all(batch: int) -> tuple[ExitStack, list[View], int]:
            with ExitStack() as opened:
                views: list[View] = [
                    opened.enter_context(shard.at(batch)) for shard in self._shards
                ]
                return opened.pop_all(), views, batch

        opened, views, batch = self._current(open_all)
        with opened:
            yield batch, _slates_in(views, update, kind, batch, first, last, made)

    def _current(self, read: Callable[[int], T], batch: int | None = None) -> T:
        """Calls `read` with a batch, by default the last committed one; retries on StaleRead."""
        for number in range(TRIES):
            try:
                return read(self._committed() if batch is None else batch)
            except StaleRead as error:
                stale = error
                batch = None
                # The driver may be about to write the progress, and needs processor time for it.
                time.sleep(number * PAUSE)
        raise stale


def slates_in(views: Sequence[View], update: str, kind: str, batch: int) -> Iterator[StoredSlate]:
    """All slates of an update in these views, which are as of `batch`, in key order."""
    start = slates_of(update)
    return _slates_in(views, update, kind, batch, start, after_prefix(start), _decoded)


def _slates_in(
    views: Sequence[View],
    update: str,
    kind: str,
    batch: int,
    first: bytes,
    last: bytes | None,
    made: Made[T],
) -> Iterator[T]:
    """The slates whose rows are from `first` up to `last` (excluded)."""
    length = len(slates_of(update))
    rows = [_numbered(number, view.scan(first, last)) for number, view in enumerate(views)]
    for row, number, data in heapq.merge(*rows):
        yield made(views[number], update, kind, row[length:].decode(), data, batch)


def _numbered(
    number: int, rows: Iterator[tuple[bytes, bytes]]
) -> Iterator[tuple[bytes, int, bytes]]:
    """Adds to each row the number of its view."""
    return ((row, number, data) for row, data in rows)


Made = Callable[[View, str, str, str, bytes, int], T]
"""Makes a slate from a view, its update, kind, key, row and batch."""


def _decoded(view: View, update: str, kind: str, key: str, row: bytes, batch: int) -> StoredSlate:
    last, data, *_ = unpack_slate(row)
    if kind != "table":
        return StoredSlate(key, decode_value(data), last, batch)
    entries = {entry: decode_value(value) for entry, value in _entries(view, update, key)}
    return StoredSlate(key, entries, last, batch)


def _written(view: View, update: str, kind: str, key: str, row: bytes, batch: int) -> WrittenSlate:
    last, data, *_ = unpack_slate(row)
    if kind != "table":
        return WrittenSlate(key, _as_json(data), last, batch)
    entries = [
        msgspec.json.encode(entry) + b":" + _as_json(value)
        for entry, value in _entries(view, update, key)
    ]
    return WrittenSlate(key, b"{" + b",".join(entries) + b"}", last, batch)


def _as_json(data: bytes) -> bytes:
    return data if data[:1] != BYTES_TAG else msgspec.json.encode(data[1:])


def _entries(view: View, update: str, key: str, start: str = "") -> Iterator[tuple[str, bytes]]:
    """The entries of a table that begin with `start`."""
    table = table_of(update, key)
    first = table + start.encode()
    for entry, value in view.scan(first, after_prefix(first)):
        yield entry[len(table) :].decode(), value
