"""Reads a feed: pushed items, pulled posts and pending records, merged by time.

The tables are read as of one batch, and the `pending` records are laid over them. Producers on push
take one scan of the consumer's items; each producer on pull takes one scan of its posts. A producer
on push is pulled in two cases:

- while it is under way (see `fanouts`);
- for posts older than those that were sent when its pair turned to push (`from`), or older than the
  consumer's `floor`. So a feed reaches back to the first posts of its producers.

The result is time-ordered, gapless and free of duplicates (Feeding Frenzy, 2.2), with global
coherency. See `diversity` for per-producer coherency.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from msgspec import convert

from millstream.feeds.names import (
    META,
    SEP,
    Position,
    after,
    entry,
    item_entry,
    parts,
    post_entry,
    prefix,
    reference,
    time_text,
)
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.reads.candidates import (
    Candidate,
    candidate_of,
    item_of,
    items_of,
    position_of,
)
from millstream.feeds.reads.pending_records import NOTHING, Pending
from millstream.feeds.reads.references import References
from millstream.feeds.reads.stream_merge import Merged, PostStream, read_into
from millstream.feeds.reads.tables import Row, Tables
from millstream.feeds.reads.visible_rows import Shown
from millstream.feeds.states import NO_POST, PairState, read_pair, seen_after
from millstream.feeds.stored_rows import ConsumerMeta, PushRow, decode_consumer
from millstream.messages.feeds import How, Item

BEGINS, ITEMS, POSTS = prefix("from"), prefix("item"), prefix("post")
PULL, PUSH = prefix("pull"), prefix("push")
AFTER_ITEMS, AFTER_POSTS, AFTER_PULL = after(ITEMS), after(POSTS), after(PULL)
_META = META.encode()
_position = attrgetter("position")
MOST_PULLED = 10_000
"""The maximum number of producers that one read pulls from. Posts of the others are not shown, and
the answer says so."""


class FeedSlice(NamedTuple):
    """A part of a feed, newest first."""

    items: list[Item]
    more: bool
    """True if there are more items in the direction that was read."""
    left_out: int = 0
    """The number of producers that were not read because there are too many."""
    pulled: int = 0
    """The number of producers that were pulled from."""


class FeedQuery:
    """The feed of one consumer, as of one batch and with the pending records. It pulls from at most
    `most_pulled` producers. None: it pulls from all."""

    def __init__(
        self,
        placed: PlacedFeeds,
        tables: Tables,
        consumer: str,
        pending: Pending = NOTHING,
        most_pulled: int | None = MOST_PULLED,
    ) -> None:
        self.placed, self.tables, self.consumer = placed, tables, consumer
        self._pending = pending
        self._pairs = self._pending_pairs()
        self._follows = {
            producer: now.since
            for producer, (stored, now) in self._pairs.items()
            if now.since != stored.since
        }
        """The pending follows: for each producer the time of the follow, or None if it was
        unfollowed or is left out."""
        self._references = References(
            placed.producers, placed.fanouts, tables, pending, self._is_hidden
        )
        self.left_out = 0
        """The number of producers that are not read because there are too many."""
        rows = list(tables.rows(placed.consumers, consumer, META, AFTER_PULL))
        known = rows and rows[0][0] == _META
        self.meta = decode_consumer(rows.pop(0)[1]) if known else ConsumerMeta.new()
        self._pulled = self._choose_pulled(rows, most_pulled)
        self._shown = Shown(self._unseen, pending, self._references)

    def older(self, before: Position | None, limit: int) -> FeedSlice:
        """Returns the newest items before a position, or the newest of all if it is None."""
        merged = Merged(limit + 1)
        self._stored(merged, None, before, newest_first=True)
        for fresh in self.pending_before(before).values():
            merged.add([candidate_of(item) for item in islice(fresh, limit + 1)])
        items = merged.settled()
        deeper = self._not_here(_time(items[limit]) if len(items) > limit else 0)
        if deeper:
            ends = ((name, _earlier(before, (until, "", ""))) for name, until in deeper)
            read_into(
                merged, [self._posts(name, None, end, newest_first=True) for name, end in ends]
            )
        return self._page(merged, limit)

    def newer(self, than: Position, limit: int) -> FeedSlice:
        """Returns the oldest items after a position, newest first."""
        merged = Merged(limit + 1, newest_first=False)
        self._stored(merged, than, None, newest_first=False)
        ends = ((name, (until, "", "")) for name, until in self._not_here(than[0]))
        read_into(merged, [self._posts(name, than, end, newest_first=False) for name, end in ends])
        for fresh in self._not_taken(than, None, newest_first=False).values():
            merged.add([candidate_of(item) for item in islice(fresh, limit + 1)])
        page = self._page(merged, limit)
        return page._replace(items=page.items[::-1])

    def follows(self) -> dict[str, How]:
        """Returns all followed producers, with how each is read."""
        pushed = (name[len(PUSH) :] for name, _ in self._scan(PUSH, after(PUSH)))
        sides: dict[str, How] = {
            producer: "push" for producer in pushed if self._is_followed(producer)
        }
        sides |= dict.fromkeys(self._pulled, "pull")
        return sides

    def pushed(self) -> dict[str, int]:
        """Returns the producers on push, each with the time from which all of its posts are among
        the consumer's items."""
        pulled = set(self._pulled)
        rows = self._scan(PUSH, after(PUSH))
        begins = ((name[len(PUSH) :], convert(stored, PushRow).begin) for name, stored in rows)
        return {
            producer: max(begin, self.meta.floor)
            for producer, begin in begins
            if producer not in pulled and self._is_followed(producer)
        }

    def is_aggregated(self, producer: str) -> bool:
        """True if this producer aggregates posts of other producers."""
        return self._references.is_aggregated(producer)

    def pulled(self) -> list[str]:
        """Returns the producers that are pulled from."""
        return list(self._pulled)

    def items_before(self, before: Position | None) -> PostStream:
        """Returns the visible pushed items, newest first."""
        return self._items(None, before, newest_first=True)

    def posts_before(self, producer: str, before: Position | None) -> PostStream:
        """Returns a producer's posts, newest first, without pending ones."""
        return self._posts(producer, None, before, newest_first=True)

    def pending_before(self, before: Position | None) -> dict[str, Iterator[Item]]:
        """Returns the pending posts of each followed producer, newest first. For an aggregated
        producer this includes posts that are pending at its sources or on their way from them."""
        return self._not_taken(None, before, newest_first=True)

    def seen(self) -> Position | None:
        """Returns the post up to which the consumer has read, by its last report; None if it never
        reported."""
        upto = self._pending.seen.get(self.consumer)
        return self.meta.seen if upto is None else seen_after(self.meta.seen, upto)

    def _page(self, merged: Merged, limit: int) -> FeedSlice:
        candidates = merged.settled()
        items = items_of(candidates[:limit])
        return FeedSlice(items, len(candidates) > limit, self.left_out, len(self._pulled))

    def _choose_pulled(self, rows: list[Row], most: int | None) -> list[str]:
        """Chooses the producers to pull from: on pull by `rows`, newly followed, or under way."""
        producers = {name[len(PULL) :].decode(): None for name, _ in rows}
        # Pushed items of these producers are hidden: the producer may have been unfollowed since
        # they were pushed, or a pass may have pushed only some of them.
        self._unseen = dict.fromkeys(self._follows)
        for producer in self.tables.once(self.placed.fanouts, self._under_way):
            if producer not in producers and self._get(PUSH + producer) is not None:
                self._unseen[producer] = None
        producers |= self._unseen
        pulled = [name for name in producers if self._is_followed(name)]
        most = len(pulled) if most is None else most
        self.left_out = max(0, len(pulled) - most)
        self._follows.update(dict.fromkeys(pulled[most:]))  # their posts are not shown
        return pulled[:most]

    def _under_way(self) -> list[str]:
        """The producers that are under way. Read once for all readers of these tables."""
        return [
            producer for producer, _ in self.tables.scan(self.placed.fanouts, "", "", "\U0010ffff")
        ]

    def _pending_pairs(self) -> dict[str, tuple[PairState, PairState]]:
        """The pairs that pending records are about: as stored, and as of now."""
        pairs = {}
        for producer in self._pending.follows.get(self.consumer, ()):
            stored = read_pair(self._get, producer)
            pairs[producer] = stored, self._pending.pair(self.consumer, producer, stored)
        return pairs

    def is_blocked(self, producer: str) -> bool:
        if producer in self._pairs:
            return self._pairs[producer][1].blocked is not None
        return self._get(entry("block", producer)) is not None

    def _is_followed(self, producer: str) -> bool:
        """False if a pending record unfollows the producer. Assumes that the tables say it is
        followed."""
        return self._follows.get(producer, 0) is not None

    def _is_hidden(self, origin: str) -> bool:
        """True if posts of `origin` are not shown through an aggregated producer."""
        if self.is_blocked(origin) or self._follows.get(origin) is not None:
            return True
        on_side = self._get(PULL + origin) is not None or self._get(PUSH + origin) is not None
        return on_side and self._is_followed(origin)

    def _posting(self) -> list[str]:
        """The followed producers that have pending posts."""
        posts = self._pending.posts
        if len(posts) > self.meta.follows + len(self._follows):
            return [producer for producer in self.follows() if posts.get(producer)]
        pulled = set(self._pulled)
        return [
            producer
            for producer, fresh in posts.items()
            if fresh
            and self._is_followed(producer)
            and (producer in pulled or self._get(PUSH + producer) is not None)
        ]

    def _not_here(self, low: int) -> list[tuple[str, int]]:
        """Returns the producers on push whose posts since `low` are not all among the items, each
        with the time before which they are missing."""
        if low < self.meta.floor:
            return list(self.pushed().items())
        if low >= self.meta.begin:
            return []
        start = BEGINS + time_text(low + 1)
        begins = (parts(name) for name, _ in self._scan(start, after(BEGINS)))
        pushed = ((producer, int(ts)) for _, ts, producer in begins)
        pulled = set(self._pulled)
        return [
            (followed, until)
            for followed, until in pushed
            if followed not in pulled and self._is_followed(followed)
        ]

    def _items(
        self, than: Position | None, before: Position | None, newest_first: bool
    ) -> PostStream:
        """The visible pushed items between two positions."""
        start = ITEMS if than is None else item_entry(*than) + SEP
        stop = AFTER_ITEMS if before is None else item_entry(*before)
        update, consumer = self.placed.consumers, self.consumer
        rows = self.tables.rows(update, consumer, start, stop, reverse=newest_first, cut=len(ITEMS))
        return PostStream(rows, self._shown.pushed)

    def _posts(
        self, producer: str, than: Position | None, before: Position | None, newest_first: bool
    ) -> PostStream:
        """A producer's posts between two positions."""
        start = POSTS if than is None else _bound(producer, than) + "\0"
        stop = AFTER_POSTS if before is None else _bound(producer, before)
        update = self.placed.producers
        rows = self.tables.rows(update, producer, start, stop, reverse=newest_first, cut=len(POSTS))
        return PostStream(rows, partial(self._shown.pulled, producer))

    def _stored(
        self, merged: Merged, than: Position | None, before: Position | None, *, newest_first: bool
    ) -> None:
        """Adds the stored posts between two positions. Producers on pull come first, since they
        post the most; pushed items are then read only as far as they are needed."""
        streams = [self._posts(producer, than, before, newest_first) for producer in self._pulled]
        read_into(merged, [*streams, self._items(than, before, newest_first)])

    def _not_taken(
        self, than: Position | None, before: Position | None, *, newest_first: bool
    ) -> dict[str, Iterator[Item]]:
        """For each followed producer, the posts between two positions that its table does not have
        yet."""
        if not self._pending.posts and not self._references.waited_for:
            return {}
        bounds = than, before
        streams: dict[str, list[Iterator[Item]]] = {
            producer: [self._fresh(producer, *bounds, newest_first=newest_first)]
            for producer in self._posting()
        }
        for via in filter(self._is_read, self._references.waited_for):
            on_way = self._on_way(via, *bounds, newest_first=newest_first)
            streams.setdefault(via, []).append(on_way)
        for via, source in self._references.posting:
            if self._is_read(via):
                fresh = self._fresh(source, *bounds, newest_first=newest_first, via=via)
                streams.setdefault(via, []).append(fresh)
        return {
            producer: heapq.merge(*several, key=_position, reverse=newest_first)
            for producer, several in streams.items()
        }

    def _is_read(self, producer: str) -> bool:
        """True if a producer is followed and not left out."""
        if producer in self._pulled:
            return True
        return self._get(PUSH + producer) is not None and self._is_followed(producer)

    def _on_way(
        self, via: str, than: Position | None, before: Position | None, *, newest_first: bool
    ) -> Iterator[Item]:
        """The posts between two positions that are on their way to an aggregated producer."""
        references = self._references.on_way(via, than, before, newest_first=newest_first)
        for ts, origin, post, reference_row in references:
            row = self._shown.by_way(ts, origin, post, reference_row, via)
            if row is not None:
                yield item_of(ts, origin, post, row, "pending", via)

    def _fresh(
        self,
        producer: str,
        than: Position | None,
        before: Position | None,
        *,
        newest_first: bool,
        via: str | None = None,
    ) -> Iterator[Item]:
        """A producer's pending posts between two positions."""
        items = []
        for post in self._pending.posts[producer]:
            ts, row = self._pending.post(producer, post, NO_POST)
            if ts is None or row is None:
                continue
            position = (ts, producer, post)
            inside = (than is None or position > than) and (before is None or position < before)
            known = entry("id", post)
            if inside and self.tables.get(self.placed.producers, producer, known) is None:
                items.append(item_of(ts, producer, post, row, "pending", via))
        return iter(sorted(items, key=_position, reverse=newest_first))

    def _get(self, name: str) -> Any:
        return self.tables.get(self.placed.consumers, self.consumer, name)

    def _scan(self, start: str, stop: str) -> Iterator[tuple[str, Any]]:
        return self.tables.scan(self.placed.consumers, self.consumer, start, stop)


def _bound(producer: str, position: Position) -> str:
    """The entry name that separates a producer's posts before a position from the others."""
    ts, origin, post = position
    return post_entry(ts, post if producer == origin else reference(producer, origin, post))


def _earlier(first: Position | None, second: Position) -> Position:
    return second if first is None else min(first, second)


def _time(candidate: Candidate) -> int:
    ts, _, _ = position_of(candidate[0])
    return ts
