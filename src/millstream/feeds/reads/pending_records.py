"""Acknowledged records that the application has not taken in yet.

A reader lays them over the tables, so an acknowledged record is visible in the next read: a post,
an edit, a delete, a follow, an unfollow. Here the records are only sorted. A reader applies them to
the tables with the same functions as the updates (see `states`), so a record has the effect that it
will have when it is taken in. New sources of an aggregated producer become visible when they are
taken in; removed ones disappear at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce

from millstream.feeds.names import Position
from millstream.feeds.records import (
    AggregateRecord,
    BlockRecord,
    DeleteRecord,
    EditRecord,
    FollowRecord,
    PairChange,
    PostChange,
    PostRecord,
    Record,
    SeenRecord,
    UnblockRecord,
    UnfollowRecord,
)
from millstream.feeds.states import PairState, PostState, pair_after, post_after, seen_after


class Pending:
    """Some records, in the order of the log."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self.posts: dict[str, dict[str, list[PostChange]]] = {}
        """By producer and id: all records about a post that may be new."""
        self.changed: dict[str, dict[str, list[PostChange]]] = {}
        """By producer and id: all records about a post that was edited or deleted."""
        self.touched: set[bytes] = set()
        """The producers in `changed`, as bytes."""
        self.follows: dict[str, dict[str, list[PairChange]]] = {}
        """By consumer and producer."""
        self.sources: dict[str, frozenset[str]] = {}
        """By aggregated producer: its sources."""
        self.seen: dict[str, Position] = {}
        self._records: dict[tuple[str, str], list[PostChange]] = {}
        """By producer and id: the lists in `posts` and `changed`."""
        for record in records:
            self.add(record)

    def add(self, record: Record) -> None:
        """Adds the next record of the log."""
        match record:
            case PostRecord() | EditRecord() | DeleteRecord() as about_post:
                self._add_post(about_post)
            case FollowRecord() | UnfollowRecord() | BlockRecord() | UnblockRecord() as about_pair:
                pairs = self.follows.setdefault(about_pair.consumer, {})
                pairs.setdefault(about_pair.producer, []).append(about_pair)
            case AggregateRecord(producer=producer, sources=sources):
                self.sources[producer] = frozenset(sources)
            case SeenRecord(consumer=consumer, upto=upto):
                self.seen[consumer] = seen_after(self.seen.get(consumer), upto)

    def pair(self, consumer: str, producer: str, stored: PairState) -> PairState:
        """Returns the state of a pair, given the stored one."""
        return reduce(pair_after, self.follows.get(consumer, {}).get(producer, ()), stored)

    def post(self, producer: str, post: str, stored: PostState) -> PostState:
        """Returns the state of a post, given the stored one."""
        return reduce(post_after, self._records.get((producer, post), ()), stored)

    def _add_post(self, record: PostChange) -> None:
        producer, post = record.producer, record.id
        records = self._records.setdefault((producer, post), [])
        records.append(record)
        if isinstance(record, PostRecord):
            self.posts.setdefault(producer, {})[post] = records
        else:
            self.changed.setdefault(producer, {})[post] = records
            self.touched.add(producer.encode())


NOTHING = Pending()
