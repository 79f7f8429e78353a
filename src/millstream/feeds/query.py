"""Reading a feed: pushed items, pulled posts and pending records, merged by time.

Reads the tables as of one batch, and lays the `pending` records over them. What is on push is one
scan of the consumer's items; every producer on pull is one scan of its posts. A producer is pulled
although it is on push

- while it is under way (see `fanouts`);
- for what is older than its pair's turn to push went back (`from`), or than the consumer's `floor`:
  so a feed has no end before its producers' first posts.

What comes of it is time-ordered, gapless and without duplicates (Feeding Frenzy, 2.2), with global
coherency. See `diversity` for per-producer coherency.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import partial
from itertools import islice
from operator import attrgetter
from typing import Any, NamedTuple

from millstream.codec import decode_value
from millstream.feeds.candidates import Candidate, candidate_of, items_of, position_of
from millstream.feeds.items import How, Item, item_of
from millstream.feeds.merging import Merged, Stream, read_into
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
from millstream.feeds.pending import NOTHING, Pending
from millstream.feeds.placing import PlacedFeeds
from millstream.feeds.references import References
from millstream.feeds.shown import Shown
from millstream.feeds.tables import Row, Tables

BEGINS, ITEMS, POSTS = prefix("from"), prefix("item"), prefix("post")
PULL, PUSH = prefix("pull"), prefix("push")
AFTER_ITEMS, AFTER_POSTS, AFTER_PULL = after(ITEMS), after(POSTS), after(PULL)
_META = META.encode()
_position = attrgetter("position")
MOST_PULLED = 10_000
"""Producers that one read pulls from; of those past it nothing is shown, and the answer says so."""


class Page(NamedTuple):
    """A part of a feed, newest first."""

    items: list[Item]
    more: bool
    """Whether there are more in the direction that was read."""
    left_out: int = 0
    """Producers that were not read because there are too many."""
    pulled: int = 0
    """Producers that were pulled from."""


class FeedQuery:
    """The feed of one consumer, as of one batch and with what is pending."""

    def __init__(
        self,
        placed: PlacedFeeds,
        tables: Tables,
        consumer: str,
        pending: Pending = NOTHING,
        most_pulled: int = MOST_PULLED,
    ) -> None:
        self.placed, self.tables, self.consumer = placed, tables, consumer
        self._pending = pending
        self._follows = self._pending_follows()
        self._references = References(
            placed.producers, placed.fanouts, tables, pending, self._is_hidden
        )
        self.left_out = 0
        """Producers that are not read because there are too many."""
        rows = list(tables.rows(placed.consumers, consumer, META, AFTER_PULL))
        known = rows and rows[0][0] == _META
        self.meta: dict[str, Any] = decode_value(rows.pop(0)[1]) if known else {}
        self._floor: int = self.meta.get("floor", 0)
        self._pulled = self._who_is_pulled(rows, most_pulled)
        self._shown = Shown(self._unseen, pending, self._references)

    def older(self, before: Position | None, limit: int) -> Page:
        """The newest items before a position, or of all."""
        found = Merged(limit + 1)
        self._stored(found, None, before, newest_first=True)
        for fresh in self.pending_before(before).values():
            found.add([candidate_of(item) for item in islice(fresh, limit + 1)])
        items = found.settled()
        deeper = self._not_here(_time(items[limit]) if len(items) > limit else 0)
        if deeper:
            ends = ((one, _earlier(before, (until, "", ""))) for one, until in deeper)
            read_into(found, [self._posts(one, None, end, newest_first=True) for one, end in ends])
        return self._page(found, limit)

    def newer(self, than: Position, limit: int) -> Page:
        """The oldest items after a position."""
        found = Merged(limit + 1, newest_first=False)
        self._stored(found, than, None, newest_first=False)
        ends = ((one, (until, "", "")) for one, until in self._not_here(than[0]))
        read_into(found, [self._posts(one, than, end, newest_first=False) for one, end in ends])
        for fresh in self._not_taken(than, None, newest_first=False).values():
            found.add([candidate_of(item) for item in islice(fresh, limit + 1)])
        page = self._page(found, limit)
        return page._replace(items=page.items[::-1])

    def follows(self) -> dict[str, How]:
        """All followed producers, and how each is read."""
        pushed = (name[len(PUSH) :] for name, _ in self._scan(PUSH, after(PUSH)))
        found: dict[str, How] = {one: "push" for one in pushed if self._is_followed(one)}
        found |= dict.fromkeys(self._pulled, "pull")
        return found

    def pushed(self) -> dict[str, int]:
        """The producers that are read from the consumer's items, and the time from which on all of
        their posts are there."""
        pulled = set(self._pulled)
        found = ((name[len(PUSH) :], begin) for name, (_, begin) in self._scan(PUSH, after(PUSH)))
        return {
            one: max(begin, self._floor)
            for one, begin in found
            if one not in pulled and self._is_followed(one)
        }

    def pulled(self) -> list[str]:
        """The producers whose posts are read from them."""
        return list(self._pulled)

    def items_before(self, before: Position | None) -> Stream:
        """What was pushed and is to be seen, newest first."""
        return self._items(None, before, newest_first=True)

    def posts_before(self, producer: str, before: Position | None) -> Stream:
        """A producer's posts, newest first, without pending ones."""
        return self._posts(producer, None, before, newest_first=True)

    def pending_before(self, before: Position | None) -> dict[str, Iterator[Item]]:
        """By followed producer: its pending posts, newest first; of an aggregated one also what is
        pending at its sources, or on its way from them."""
        return self._not_taken(None, before, newest_first=True)

    def seen(self) -> Position | None:
        """The post that the consumer has read up to, by what it said last; None if it never did."""
        known = max(self.meta.get("seen", []), self._pending.seen.get(self.consumer, []))
        return (known[0], known[1], known[2]) if known else None

    def _page(self, found: Merged, limit: int) -> Page:
        some = found.settled()
        items = items_of(some[:limit])
        return Page(items, len(some) > limit, self.left_out, len(self._pulled))

    def _who_is_pulled(self, rows: list[Row], most: int) -> list[str]:
        """The producers to pull from: on pull, by these rows, followed since, or under way."""
        found = {name[len(PULL) :].decode(): None for name, _ in rows}
        # What was pushed of one that is on push is not shown: it may have been left in between, or
        # be half of a pass.
        self._unseen = dict.fromkeys(self._follows)
        for producer in self.tables.once(self.placed.fanouts, self._under_way):
            if producer not in found and self._get(PUSH + producer) is not None:
                self._unseen[producer] = None
        found |= self._unseen
        pulled = [one for one in found if self._is_followed(one)]
        self.left_out = max(0, len(pulled) - most)
        self._follows.update(dict.fromkeys(pulled[most:]))  # nothing of them is shown
        return pulled[:most]

    def _under_way(self) -> list[str]:
        """The producers that are under way, for all who read these tables."""
        return [one for one, _ in self.tables.scan(self.placed.fanouts, "", "", "\U0010ffff")]

    def _pending_follows(self) -> dict[str, int | None]:
        """By producer: since when it is followed by what is pending, None if it is no more."""
        found = self._pending.follows.get(self.consumer)
        if not found:
            return {}
        unsure = self._pending.unsure.get(self.consumer, ())
        refused = {one for one in unsure if self._get(entry("block", one)) is not None}
        return {one: since for one, since in found.items() if one not in refused}

    def _is_blocked(self, producer: str) -> bool:
        blocked = self._pending.blocks.get(self.consumer, {}).get(producer)
        if blocked is not None:
            return blocked
        return self._get(entry("block", producer)) is not None

    def _is_followed(self, producer: str) -> bool:
        """By what is pending, for one that the tables may say is followed."""
        return self._follows.get(producer, 0) is not None

    def _is_hidden(self, origin: str) -> bool:
        """Whether nothing of a producer is shown by way of an aggregated one."""
        if self._is_blocked(origin) or self._follows.get(origin) is not None:
            return True
        on_side = self._get(PULL + origin) is not None or self._get(PUSH + origin) is not None
        return on_side and self._is_followed(origin)

    def _posting(self) -> list[str]:
        """The followed producers that have pending posts."""
        posts = self._pending.posts
        if len(posts) > self.meta.get("follows", 0) + len(self._follows):
            return [one for one in self.follows() if posts.get(one)]
        pulled = set(self._pulled)
        return [
            one
            for one, fresh in posts.items()
            if fresh
            and self._is_followed(one)
            and (one in pulled or self._get(PUSH + one) is not None)
        ]

    def _not_here(self, low: int) -> list[tuple[str, int]]:
        """The producers on push whose posts from a time on are not all items, and until when."""
        if low < self._floor:
            return list(self.pushed().items())
        if low >= self.meta.get("from", 0):
            return []
        start = BEGINS + time_text(low + 1)
        begins = (parts(name) for name, _ in self._scan(start, after(BEGINS)))
        pushed = ((producer, int(ts)) for _, ts, producer in begins)
        pulled = set(self._pulled)
        return [
            (one, until) for one, until in pushed if one not in pulled and self._is_followed(one)
        ]

    def _items(self, than: Position | None, before: Position | None, newest_first: bool) -> Stream:
        """What was pushed and is to be seen, after a position and before another."""
        start = ITEMS if than is None else item_entry(*than) + SEP
        stop = AFTER_ITEMS if before is None else item_entry(*before)
        of, consumer = self.placed.consumers, self.consumer
        rows = self.tables.rows(of, consumer, start, stop, reverse=newest_first, cut=len(ITEMS))
        return Stream(rows, self._shown.pushed)

    def _posts(
        self, producer: str, than: Position | None, before: Position | None, newest_first: bool
    ) -> Stream:
        """A producer's posts after a position and before another."""
        start = POSTS if than is None else _bound(producer, than) + "\0"
        stop = AFTER_POSTS if before is None else _bound(producer, before)
        of = self.placed.producers
        rows = self.tables.rows(of, producer, start, stop, reverse=newest_first, cut=len(POSTS))
        return Stream(rows, partial(self._shown.pulled, producer))

    def _stored(
        self, found: Merged, than: Position | None, before: Position | None, *, newest_first: bool
    ) -> None:
        """Add what is stored after a position and before another: of producers on pull, who post
        the most, and then of what was pushed, as far as it is wanted."""
        streams = [self._posts(one, than, before, newest_first) for one in self._pulled]
        read_into(found, [*streams, self._items(than, before, newest_first)])

    def _not_taken(
        self, than: Position | None, before: Position | None, *, newest_first: bool
    ) -> dict[str, Iterator[Item]]:
        """By followed producer: what its table does not have yet, between two positions."""
        if not self._pending.posts and not self._references.waited_for:
            return {}
        bounds = than, before
        streams: dict[str, list[Iterator[Item]]] = {
            one: [self._fresh(one, *bounds, newest_first=newest_first)] for one in self._posting()
        }
        for via in filter(self._is_read, self._references.waited_for):
            on_way = self._on_way(via, *bounds, newest_first=newest_first)
            streams.setdefault(via, []).append(on_way)
        for via, source in self._references.posting:
            if self._is_read(via):
                fresh = self._fresh(source, *bounds, newest_first=newest_first, via=via)
                streams.setdefault(via, []).append(fresh)
        return {
            one: heapq.merge(*some, key=_position, reverse=newest_first)
            for one, some in streams.items()
        }

    def _is_read(self, producer: str) -> bool:
        """Whether a producer is followed, and not left out."""
        if producer in self._pulled:
            return True
        return self._get(PUSH + producer) is not None and self._is_followed(producer)

    def _on_way(
        self, via: str, than: Position | None, before: Position | None, *, newest_first: bool
    ) -> Iterator[Item]:
        """What is on its way to an aggregated producer, between two positions."""
        found = self._references.on_way(via, than, before, newest_first=newest_first)
        for ts, origin, post, kept in found:
            now = self._shown.by_way(ts, origin, post, kept, via)
            if now is not None:
                yield item_of(ts, origin, post, now, "pending", via)

    def _fresh(
        self,
        producer: str,
        than: Position | None,
        before: Position | None,
        *,
        newest_first: bool,
        via: str | None = None,
    ) -> Iterator[Item]:
        """A producer's pending posts after a position and before another."""
        found = []
        for post, (ts, stored) in self._pending.posts[producer].items():
            here = (ts, producer, post)
            inside = (than is None or here > than) and (before is None or here < before)
            known = entry("id", post)
            if inside and self.tables.get(self.placed.producers, producer, known) is None:
                found.append(item_of(ts, producer, post, stored, "pending", via))
        return iter(sorted(found, key=_position, reverse=newest_first))

    def _get(self, name: str) -> object:
        return self.tables.get(self.placed.consumers, self.consumer, name)

    def _scan(self, start: str, stop: str, *, reverse: bool = False) -> Iterator[tuple[str, Any]]:
        return self.tables.scan(self.placed.consumers, self.consumer, start, stop, reverse=reverse)


def _bound(producer: str, position: Position) -> str:
    """The name that divides a producer's posts before a position from those at or after it."""
    ts, of, post = position
    return post_entry(ts, post if producer == of else reference(producer, of, post))


def _earlier(one: Position | None, other: Position) -> Position:
    return other if one is None else min(one, other)


def _time(candidate: Candidate) -> int:
    ts, _, _ = position_of(candidate[0])
    return ts
