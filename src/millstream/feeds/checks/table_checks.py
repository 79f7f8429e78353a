"""Checks the invariants of the tables of a consumer and of the producers that it follows.

- A followed producer is on one side, push or pull; a blocked one is on neither.
- The items of a producer on push are exactly its posts, in their current state, from the time at
  which the pair's items begin or from the consumer's floor, whichever is later. This does not hold
  while the producer is under way; readers then pull.
- No other producer has items. The counts in the consumer's `meta` are correct.
- The producer has the follower, under the same follow (`since`), in `of` and in `by`. If the pair
  is on push, the follower's class is high enough to be pushed to.
- An aggregated producer refers to all posts of its sources since they joined.

The last two hold only when nothing is on its way between the tables (`settled`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import convert

from millstream.feeds.checks.differences import Difference, shortened
from millstream.feeds.names import (
    META,
    after,
    class_text,
    entry,
    is_reference,
    item_parts,
    parts,
    post_entry,
    prefix,
    reference,
    referred_to,
    time_text,
)
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.policy.rates import NEVER
from millstream.feeds.reads.tables import Tables
from millstream.feeds.stored_rows import (
    ConsumerMeta,
    FollowerRow,
    ProducerMeta,
    PushRow,
    ReferenceRow,
    read_row,
)

BEGINS, BLOCK, ITEMS = prefix("from"), prefix("block"), prefix("item")
POSTS, PULL, PUSH, SOURCES = prefix("post"), prefix("pull"), prefix("push"), prefix("source")
END = "\U0010ffff"
Kept = dict[tuple[int, str], Any]
"""Posts of one producer as stored, by time and id or reference."""


def followed_in(placed: PlacedFeeds, tables: Tables, consumer: str) -> list[str]:
    """Returns the producers that a consumer follows by its own table, without duplicates."""
    return sorted(
        {
            name[len(begin) :]
            for begin in (PULL, PUSH)
            for name, _ in tables.scan(placed.consumers, consumer, begin, after(begin))
        }
    )


def check_tables(
    placed: PlacedFeeds, tables: Tables, consumer: str, *, settled: bool
) -> Iterator[Difference]:
    """Yields the broken invariants of a consumer's tables and of the producers that it follows."""
    checks = _Checks(placed, tables, consumer)
    yield from checks.sides()
    yield from checks.items()
    yield from checks.counts()
    if settled:
        yield from checks.producers()


class _Checks:
    """The tables of one consumer, read once."""

    def __init__(self, placed: PlacedFeeds, tables: Tables, consumer: str) -> None:
        self._placed, self._tables, self._consumer = placed, tables, consumer
        self._pull: dict[str, int] = self._named(PULL)
        self._push = {name: convert(row, PushRow) for name, row in self._named(PUSH).items()}
        meta = read_row(tables.get(placed.consumers, consumer, META), ConsumerMeta)
        self._meta = ConsumerMeta.new() if meta is None else meta
        self._items: dict[str, Kept] = {}
        for name, stored in self._scan(ITEMS):
            ts, producer, post, via = item_parts(name)
            if via is not None:
                producer, post = via, reference(via, producer, post)
            self._items.setdefault(producer, {})[ts, post] = stored
        self._under_way = {name for name, _ in tables.scan(placed.fanouts, "", "", END)}

    def sides(self) -> Iterator[Difference]:
        """Each producer is on one side. The `from` entries are exactly those of the producers on
        push."""
        for producer in sorted(self._pull.keys() & self._push.keys()):
            yield self._differs("must be on push or on pull", "both", producer)
        for producer in sorted(self._named(BLOCK)):
            if producer in self._pull or producer in self._push:
                yield self._differs("must not be followed, as it is blocked", "a follow", producer)
        begins = ((producer, push.begin) for producer, push in self._push.items())
        known = {(parts(name)[2], int(parts(name)[1])) for name, _ in self._scan(BEGINS)}
        needed = {(producer, begin) for producer, begin in begins if begin}
        for producer, begin in sorted(needed - known):
            name = f"from {time_text(begin)}"
            yield self._differs(f"must have the entry {name}", "none", producer)
        for producer, begin in sorted(known - needed):
            name = f"from {time_text(begin)}"
            yield self._differs("must have no beginning but that of its push", name, producer)
        latest, recorded = max((begin for _, begin in needed), default=0), self._meta.begin
        if latest > recorded:
            yield self._differs(f"meta must say that items begin by {latest}", str(recorded))

    def items(self) -> Iterator[Difference]:
        """The items are the posts of the producers on push, and nothing else."""
        for producer in sorted(self._items.keys() - self._push.keys()):
            for (ts, post), stored in self._items[producer].items():
                came = f"an item of {ts}: {shortened(stored)}"
                yield self._differs("must have no items: not on push", came, producer, post)
        for producer, push in sorted(self._push.items()):
            low, items = max(push.begin, self._meta.floor), self._items.get(producer, {})
            for (ts, post), stored in items.items():
                if ts < low:
                    came = f"one of {ts}: {shortened(stored)}"
                    yield self._differs(f"must have no items before {low}", came, producer, post)
            if producer not in self._under_way:
                yield from self._compared(producer, low, items)

    def _compared(self, producer: str, low: int, items: Kept) -> Iterator[Difference]:
        posts = self._posts(producer, low)
        for (ts, post), stored in posts.items():
            item = items.get((ts, post))
            if item != stored and not self._is_left(producer, post, stored):
                came = "no item" if item is None else shortened(item)
                yield self._differs(f"must be the item {shortened(stored)}", came, producer, post)
        for ts, post in items.keys() - posts.keys():
            if ts >= low and not self._is_left(producer, post, items[ts, post]):
                came = f"an item of {ts}: {shortened(items[ts, post])}"
                yield self._differs(
                    "must not be there: there is no such post", came, producer, post
                )

    def _is_left(self, producer: str, post: str, stored: Any) -> bool:
        """True if this is a reference to a former source, which is not shown to readers."""
        if not is_reference(post):
            return False
        since = self._of(producer, SOURCES + referred_to(post)[0])
        return bool(since != convert(stored, ReferenceRow).since)

    def counts(self) -> Iterator[Difference]:
        """The counts in `meta` are correct."""
        follows = len(self._pull.keys() | self._push.keys())
        items = sum(map(len, self._items.values()))
        for counted, count, recorded in (
            ("follows", follows, self._meta.follows),
            ("items", items, self._meta.items),
        ):
            if recorded != count:
                yield self._differs(f"meta must say that {counted} are {count}", str(recorded))

    def producers(self) -> Iterator[Difference]:
        """The tables of the followed producers agree with the consumer's."""
        pushed = {producer: push.since for producer, push in self._push.items()}
        for producer, since in sorted((self._pull | pushed).items()):
            place = Difference(self._consumer, "the producer's table", producer=producer)
            follower = read_row(self._of(producer, entry("of", self._consumer)), FollowerRow)
            if follower is None or follower.since != since:
                came = "none" if follower is None else f"one since {follower.since}"
                yield place.of(f"must have the follower, since {since}", came)
                continue
            rate_class = follower.rate_class
            by = self._of(producer, entry("by", class_text(rate_class), self._consumer))
            if by != since:
                must = f"must have the follower in class {rate_class}, since {since}"
                yield place.of(must, "none" if by is None else f"one since {by}")
            meta = read_row(self._of(producer, META), ProducerMeta)
            need = NEVER if meta is None else meta.need
            on_push = producer in self._push and producer not in self._under_way
            if on_push and rate_class < need:
                must = f"must be pushed to, from class {need} up, as the pair is on push"
                yield place.of(must, f"class {rate_class}")
            yield from self._references(producer)

    def _references(self, producer: str) -> Iterator[Difference]:
        update = self._placed.producers
        for name, since in self._tables.scan(update, producer, SOURCES, after(SOURCES)):
            source = name[len(SOURCES) :]
            for ts, post in self._posts(source, since):
                if is_reference(post):
                    continue
                known = self._of(producer, post_entry(ts, reference(producer, source, post)))
                if read_row(known, ReferenceRow) != ReferenceRow(since):
                    yield Difference(
                        self._consumer,
                        "the producer's table",
                        f"must refer to that of its source {source!r}, since {since}",
                        "nothing" if known is None else shortened(known),
                        producer,
                        post,
                    )

    def _posts(self, producer: str, low: int) -> Kept:
        update, start = self._placed.producers, POSTS + time_text(low)
        rows = self._tables.scan(update, producer, start, after(POSTS))
        return {(int(parts(name)[1]), parts(name)[2]): stored for name, stored in rows}

    def _of(self, producer: str, name: str) -> Any:
        return self._tables.get(self._placed.producers, producer, name)

    def _scan(self, begin: str) -> Iterator[tuple[str, Any]]:
        return self._tables.scan(self._placed.consumers, self._consumer, begin, after(begin))

    def _named(self, begin: str) -> dict[str, Any]:
        return {name[len(begin) :]: value for name, value in self._scan(begin)}

    def _differs(
        self, must: str, got: str, producer: str | None = None, post: str | None = None
    ) -> Difference:
        if post is not None and is_reference(post):
            origin, post = referred_to(post)
            must = f"of its source {origin!r}: {must}"
        return Difference(self._consumer, "the consumer's table", must, got, producer, post)
