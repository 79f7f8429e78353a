"""The consumers of feeds: their follows, how often they view their feed, and their pushed items.

This is an update with one table for each consumer (see `names`). A new follow starts on pull, so
old posts are visible at once. The producer is told, and decides in the next batch whether push is
better for the pair. Pushed posts are items of the table, ordered by time. The table holds at most
twice `keep` items; posts older than the `floor` are pulled.

A consumer reports its view rate to its producers only when the rate has changed by `BAND` classes.
With `decide="per-consumer"` the consumer decides by Lemma 2 for all of its producers, and reports
`ALWAYS` or `NEVER`. If a consumer stops viewing its feed, no event says so. But each push shows how
long ago its last view was, so its pairs return to pull in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from typing import Any

from msgspec import convert

from millstream.feeds.messages import (
    ConsumerEvent,
    Followed,
    FollowerMessage,
    Push,
    PushedPost,
    Rated,
    SideChange,
    Unfollowed,
)
from millstream.feeds.names import (
    META,
    after,
    entry,
    item_entry,
    parts,
    prefix,
    pushed_by,
    time_text,
)
from millstream.feeds.options import FeedOptions
from millstream.feeds.policy.rates import ALWAYS, Rate, class_of
from millstream.feeds.policy.sides import reported_class
from millstream.feeds.records import (
    BlockRecord,
    FollowRecord,
    PairChange,
    SeenRecord,
    UnblockRecord,
    UnfollowRecord,
    ViewRecord,
)
from millstream.feeds.states import pair_after, read_pair, seen_after
from millstream.feeds.stored_rows import ConsumerMeta, PushRow, read_row
from millstream.model.event import Emit, Event, emit
from millstream.model.function import takes
from millstream.model.slate import Table

BAND = 3
"""A view rate must change by this many classes before producers are told: a factor of 1.7."""
SILENT = 1 / 4
"""After this part of the memory without a view, a push triggers a check of the faded rate."""
GONE = 1 / 8
"""When only this part of the rate is left, a consumer is no longer one that was chosen to have all
of its producers on push."""
BLOCK, ITEMS = prefix("block"), prefix("item")
PULL, PUSH = prefix("pull"), prefix("push")


@dataclass(frozen=True)
class Consumers:
    """The update function."""

    options: FeedOptions
    name: str
    __signature__ = takes("event", "slate")

    def __call__(self, event: Event, table: Table) -> Iterator[Emit]:
        consumer = Consumer(self.options, self.name, event.key, table)
        message = convert(event.value, ConsumerEvent)
        yield from HANDLERS[type(message)](consumer, message)
        consumer.save()


class Consumer:
    """One consumer while it processes an event. `HANDLERS` names the method for each kind."""

    def __init__(self, options: FeedOptions, name: str, key: str, table: Table) -> None:
        self._options, self._name, self._key, self._table = options, name, key, table
        self._stored = read_row(table.get(META), ConsumerMeta)
        self._meta = ConsumerMeta.new() if self._stored is None else copy(self._stored)

    def change_pair(self, record: PairChange) -> Iterator[Emit]:
        """Follows, unfollows, blocks or unblocks a producer."""
        producer = record.producer
        before = read_pair(self._table.get, producer)
        now = pair_after(before, record)
        if before.since is not None and now.since is None:
            self._leave_push(producer)
            self._table.discard(PULL + producer)
            self._meta.follows -= 1
            yield self._tell(producer, Unfollowed, before.since)
        elif before.since is None and now.since is not None:
            self._table[PULL + producer] = now.since
            self._meta.follows += 1
            yield self._tell(producer, Followed, now.since)
        if now.blocked is None and before.blocked is not None:
            del self._table[BLOCK + producer]
        elif now.blocked != before.blocked:
            self._table[BLOCK + producer] = now.blocked

    def view(self, view: ViewRecord) -> Iterator[Emit]:
        """Records one or more views of the feed."""
        memory, meta = self._options.memory_us, self._meta
        rate = Rate() if meta.rate is None else copy(meta.rate)
        rate.add(view.at, view.count, memory, flashes=False)  # reloads are not a flash
        meta.rate, meta.wholesale = rate.rounded(), view.wholesale
        if view.flow is not None:
            meta.flow = view.flow
        if view.ratio is not None:
            meta.ratio = view.ratio
        yield from self._rated(rate.per_second(memory))

    def seen(self, record: SeenRecord) -> Iterator[Emit]:
        """Records the post up to which the feed was read."""
        self._meta.seen = seen_after(self._meta.seen, record.upto)
        yield from ()

    def change_side(self, change: SideChange) -> Iterator[Emit]:
        """Applies the producer's decision on the side of the pair."""
        producer, since = change.producer, change.since
        if read_pair(self._table.get, producer).since != since:
            return
        self._leave_push(producer)
        if change.side == "pull":
            self._table[PULL + producer] = since
            return
        self._table.discard(PULL + producer)
        self._table[PUSH + producer] = PushRow(since, change.begin)
        if change.begin:
            self._table[entry("from", time_text(change.begin), producer)] = 0
            self._meta.begin = max(change.begin, self._meta.begin)
        self._take(change.items, producer, change.begin)
        yield from ()

    def push(self, push: Push) -> Iterator[Emit]:
        """Stores posts of a producer on push that are new, changed or deleted."""
        pair = read_row(self._table.get(PUSH + push.producer), PushRow)
        if pair is not None and pair.since == push.since:
            self._take(push.items, push.producer, pair.begin)
            yield from self._faded(max(post.at for post in push.items))

    def save(self) -> None:
        if self._meta != self._stored:
            self._table[META] = self._meta

    def _rated(self, rate: float) -> Iterator[Emit]:
        """Tells the producers if the class of this view rate has changed enough."""
        new_class = self._class(rate)
        if abs(new_class - self._meta.rate_class) < BAND:
            return
        self._meta.rate_class = new_class
        for producer, since in self._follows():
            yield self._tell(producer, Rated, since)

    def _faded(self, now: int) -> Iterator[Emit]:
        """After a push, lowers the rate if the consumer has not viewed its feed for long."""
        rate, memory = self._meta.rate, self._options.memory_us
        if rate is None or now - rate.at < memory * SILENT:
            return
        left = rate.per_second(memory, now)
        if left < GONE * rate.per_second(memory):
            self._meta.wholesale = False
        yield from self._rated(left)

    def _class(self, rate: float) -> int:
        """The class to report: that of the rate, or the consumer's decision for all of its
        producers."""
        if self._meta.wholesale:
            return ALWAYS
        if not self._options.decides_together:
            return class_of(rate)
        meta = self._meta
        ratio = self._options.ratio if meta.ratio is None else meta.ratio
        return reported_class(meta.rate_class, rate, meta.flow or 0.0, ratio, meta.follows)

    def _take(self, posts: list[PushedPost], producer: str, begin: int) -> None:
        floor = max(begin, self._meta.floor)
        for post in posts:
            if post.at < floor:
                continue
            name = item_entry(post.at, producer, post.id)
            exists = name in self._table
            if post.row is not None:
                self._table[name] = post.row
                self._meta.items += not exists
            elif exists:
                del self._table[name]
                self._meta.items -= 1
        if self._meta.items > 2 * self._options.keep:
            self._trim()

    def _trim(self) -> None:
        """Deletes the oldest items. From the floor on the items are complete."""
        surplus = self._meta.items - self._options.keep
        names = [name for name, _ in self._table.scan(ITEMS, after(ITEMS), limit=surplus)]
        floor = int(parts(names[-1])[1]) + 1
        stop = ITEMS + time_text(floor)
        for name, _ in [*self._table.scan(ITEMS, stop)]:
            del self._table[name]
            self._meta.items -= 1
        self._meta.floor = floor

    def _leave_push(self, producer: str) -> None:
        """Takes a pair off push and deletes all of its items."""
        pair = read_row(self._table.get(PUSH + producer), PushRow)
        if pair is None:
            return
        del self._table[PUSH + producer]
        if pair.begin:
            self._table.discard(entry("from", time_text(pair.begin), producer))
        gone = [
            name for name, _ in self._table.scan(ITEMS, after(ITEMS)) if pushed_by(name) == producer
        ]
        for name in gone:
            del self._table[name]
        self._meta.items -= len(gone)

    def _follows(self) -> Iterator[tuple[str, int]]:
        for name, since in self._table.scan(PULL, after(PULL)):
            yield name[len(PULL) :], since
        for name, stored in self._table.scan(PUSH, after(PUSH)):
            yield name[len(PUSH) :], convert(stored, PushRow).since

    def _tell(self, producer: str, message: type[FollowerMessage], since: int) -> Emit:
        value = message(consumer=self._key, since=since, rate_class=self._meta.rate_class)
        return emit(f"{self._name}.told", key=producer, value=value)


HANDLERS: Mapping[type, Callable[[Consumer, Any], Iterator[Emit]]] = {
    **dict.fromkeys(
        (FollowRecord, UnfollowRecord, BlockRecord, UnblockRecord), Consumer.change_pair
    ),
    ViewRecord: Consumer.view,
    SeenRecord: Consumer.seen,
    SideChange: Consumer.change_side,
    Push: Consumer.push,
}
