"""Feeds on the engine in memory, batch by batch, and what each feed must be by brute force."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from engine.in_process import InProcess

import millstream as ms
from millstream.codec import encode_value
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.reads.pending_records import Pending
from millstream.feeds.reads.query import FeedQuery
from millstream.feeds.reads.tables import Rows, Tables
from millstream.feeds.records import convert_record
from millstream.messages.feeds import Item
from millstream.model.event import Event
from millstream.stores.tables import BatchTables

T = TypeVar("T")
NAME = "feeds"
LAST = "\U0010ffff"
Record = dict[str, Any]
Shown = tuple[int, str, str, Any]
"""A post: its time, producer, id and value."""


@dataclass
class FeedRun:
    """An application with feeds: records go in by batches, feeds are read at any time."""

    options: ms.feeds.Feeds = field(default_factory=ms.feeds.Feeds)
    lane: Any = "one-task"

    def __post_init__(self) -> None:
        app = ms.App("social")
        app.add(self.options, name=NAME)
        self.engine = InProcess(app.checked(), lane=self.lane)
        self.placed = PlacedFeeds(self.options, NAME)
        self.taken: list[Record] = []

    def batch(self, records: Iterable[Record] = ()) -> None:
        """Runs a batch that takes in these records."""
        records = list(records)
        self.taken += records
        source = self.placed.events
        self.engine.batch([Event(source, one["at"], one["kind"], one) for one in records])
        assert not self.engine.letters, self.engine.letters

    def settle(self) -> None:
        """Batches until nothing is under way."""
        self.engine.settle(final=False)
        assert not self.engine.letters, self.engine.letters

    def tables(self) -> Tables:
        """All tables as of the last batch."""
        assert self.engine.store is not None
        shards = [self.engine.store.shard(one) for one in range(self.engine.shards)]
        return ReadOnce(BatchTables(shards, self.engine.progress.batch))

    def query(self, consumer: str, pending: Sequence[Record] = ()) -> FeedQuery:
        return FeedQuery(
            self.placed, self.tables(), consumer, Pending(map(convert_record, pending))
        )

    def entries(self, update: str, key: str, begin: str = "") -> dict[str, Any]:
        """The entries of a table that begin so."""
        return dict(self.tables().scan(f"{NAME}.{update}", key, begin, begin + LAST))


class ReadOnce:
    """Tables of which each is read whole when it is first asked for: a scan of the memory store
    goes through all of its rows."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables
        self._read: dict[tuple[str, str], dict[str, Any]] = {}

    def get(self, update: str, key: str, entry: str) -> Any:
        return self._table(update, key).get(entry)

    def scan(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False
    ) -> Iterator[tuple[str, Any]]:
        table = self._table(update, key)
        names = [name for name in table if start <= name < stop]
        return ((name, table[name]) for name in (reversed(names) if reverse else names))

    def rows(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False, cut: int = 0
    ) -> Rows:
        found = self.scan(update, key, start, stop, reverse=reverse)
        return ((name.encode()[cut:], encode_value(value)) for name, value in found)

    def once(self, what: str, make: Callable[[], T]) -> T:
        return self._tables.once(what, make)

    def _table(self, update: str, key: str) -> dict[str, Any]:
        if (update, key) not in self._read:
            self._read[update, key] = dict(self._tables.scan(update, key, "", LAST))
        return self._read[update, key]


class KeptTables:
    """Tables that are held in memory, by update and key."""

    def __init__(self, tables: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        self._tables = tables
        self._made: dict[str, Any] = {}

    def get(self, update: str, key: str, entry: str) -> Any:
        return self._tables.get(update, {}).get(key, {}).get(entry)

    def scan(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False
    ) -> Iterator[tuple[str, Any]]:
        table = self._tables.get(update, {}).get(key, {})
        names = sorted((name for name in table if start <= name < stop), reverse=reverse)
        return ((name, table[name]) for name in names)

    def rows(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False, cut: int = 0
    ) -> Rows:
        found = self.scan(update, key, start, stop, reverse=reverse)
        return ((name.encode()[cut:], encode_value(value)) for name, value in found)

    def once(self, what: str, make: Callable[[], T]) -> T:
        if what not in self._made:
            self._made[what] = make()
        made: T = self._made[what]
        return made


def shown(items: Iterable[Item]) -> list[Shown]:
    return [(one.ts, one.producer, one.id, one.value) for one in items]


def brute_force(
    records: Iterable[Record], consumer: str, *, aggregated: bool = True
) -> list[Shown]:
    """The whole feed of a consumer, newest first, by going through all records.

    An aggregated producer has the posts of all who are its sources now: what is read has them a
    batch later, and no more than `backfill` of those before its source joined.
    """
    sources: dict[str, list[str]] = {}
    posts: dict[tuple[str, str], Shown | None] = {}
    follows: set[str] = set()
    blocks: set[str] = set()
    for record in records:
        kind, producer = record["kind"], record.get("producer", "")
        known = (producer, record.get("id", ""))
        if kind == "post" and known not in posts:
            posts[known] = (record["at"], producer, record["id"], record["value"])
        elif kind == "edit" and (before := posts.get(known)) is not None:
            posts[known] = (*before[:3], record["value"])
        elif kind == "delete" and known in posts:
            posts[known] = None
        elif kind == "aggregate" and aggregated:
            sources[producer] = record["sources"]
        elif record.get("consumer") != consumer:
            continue
        elif kind == "follow" and producer not in blocks:
            follows.add(producer)
        elif kind in ("unfollow", "block"):
            follows.discard(producer)
            if kind == "block":
                blocks.add(producer)
        elif kind == "unblock":
            blocks.discard(producer)
    shown_of = {one for by in follows for one in sources.get(by, ()) if one not in blocks} | follows
    found = [one for one in posts.values() if one is not None and one[1] in shown_of]
    return sorted(found, key=lambda one: one[:3], reverse=True)
