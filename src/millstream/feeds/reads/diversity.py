"""Per-producer coherency: the k newest posts of each producer, in pages with k,t-diversity.

Feeding Frenzy, 2.1 (Q2) and 2.2.1: "if there is an event from Bob in the last t time units, then we
should not show more than k Alice events unless we are also showing the Bob event". At most k posts
of a producer are ever shown, so this holds for each page and for all pages together. The order of
pages shows as many producers as possible first:

    leads     the newest post of each producer, if it is no older than t
    others    all other posts, up to k of each producer including its lead

Both groups are ordered by recency. A page has the next `limit` posts in this order, and shows them
by time. The posts of each producer come by recency too, so they are shown without a gap, and no
post is shown twice.

All pages are as of the newest post of the first page. Later posts are not part of them, and deleted
posts disappear. If the lead of a producer is deleted, its next post becomes the lead, and may then
be skipped by a page that is past the leads.

Reading is lazy. Each producer has a line of posts, newest first, and the lines are merged. A line
that does not know its next post yields a *mark*, a position that the post must be below. More is
read only when the merge has reached the mark: first from the consumer's items, which advances many
lines at once, and then from the producer itself. So a page whose posts are all among the items
pulls from no producer on push.
"""

from __future__ import annotations

import heapq
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, islice
from operator import itemgetter

from millstream.feeds.names import Position
from millstream.feeds.reads.candidates import items_of
from millstream.feeds.reads.cursor import Key
from millstream.feeds.reads.query import FeedQuery
from millstream.feeds.reads.stream_merge import PostStream
from millstream.feeds.records import LATEST
from millstream.messages.feeds import Item

Step = tuple[Position, int, Item | None]
"""A post of a line with its rank there, 0 for the newest; or a mark, which has no post."""
CHUNK = 100
"""The number of items that are read at a time."""
MOST_ITEMS = 2_000
"""After this many items, posts are pulled from the producers instead."""
TOP: Position = (LATEST, "", "")
BOTTOM: Position = (0, "", "")


@dataclass(frozen=True, slots=True)
class DiversePage:
    """A part of a feed with per-producer coherency."""

    items: list[Item]
    """Newest first."""
    first: Key | None
    """`first` and `last` are the greatest and the least key of the page; None if there are no
    items."""
    last: Key | None
    more: bool
    """True if there are more items in the direction that was read."""


class DiverseQuery:
    """The feed of one consumer with per-producer coherency, as of a time."""

    def __init__(
        self,
        query: FeedQuery,
        *,
        k: int,
        t: int,
        now: int | None = None,
        as_of: int | None = None,
        chunk: int = CHUNK,
        most_items: int = MOST_ITEMS,
    ) -> None:
        """`now` is the time of the request for the first page, from which `t` is counted back. It
        defaults to the time of the newest post. Further pages pass the `as_of` of the first one."""
        self._query, self._k = query, k
        self._before = None if as_of is None else (as_of + 1, "", "")
        self._shelf = Shelf(query.items_before(self._before), chunk, most_items)
        self._lines = self._all_lines()
        if as_of is None:
            newest = next(self._merged(1), None)
            as_of = 0 if newest is None else newest[0].ts
        self.as_of = as_of
        """The time of the newest post that is part of the pages."""
        self._fresh_from = (as_of if now is None else now) - t

    def older(self, before: Key | None, limit: int) -> DiversePage:
        """Returns the next items below a key, or the first items if it is None."""
        rest = ((key, item) for key, item in self._order(before) if before is None or key < before)
        rows = list(islice(rest, limit + 1))
        return _page(rows[:limit], len(rows) > limit)

    def newer(self, than: Key, limit: int) -> DiversePage:
        """Returns the last items above a key."""
        rows: deque[tuple[Key, Item]] = deque(maxlen=limit + 1)
        for key, item in self._order(None):
            if key <= than:
                break
            rows.append((key, item))
        return _page(list(rows)[-limit:], len(rows) > limit)

    def _order(self, start: Key | None) -> Iterator[tuple[Key, Item]]:
        """Yields all posts that may be shown, by key. Those before `start` may be missing."""
        if start is None or start[0]:
            for item, _ in self._merged(1):
                if item.ts < self._fresh_from:
                    break
                yield (True, item.position), item
        for item, rank in self._merged(self._k):
            if rank or item.ts < self._fresh_from:
                yield (False, item.position), item

    def _merged(self, most: int) -> Iterator[tuple[Item, int]]:
        """Yields the `most` newest posts of each line by recency, with their rank. A post of
        several lines comes once, with its best rank."""
        walks = [line.walk(most) for line in self._lines]
        steps = heapq.merge(*walks, key=itemgetter(0), reverse=True)
        posts = ((rank, item) for _, rank, item in steps if item is not None)
        for _, same in groupby(posts, key=lambda post: post[1].position):
            rank, item = min(same, key=lambda post: (post[0], post[1].via or ""))
            yield item, rank

    def _all_lines(self) -> list[ProducerPosts]:
        query, before = self._query, self._before
        pending = query.pending_before(before)
        pulled, pushed = query.pulled(), query.pushed()
        # A post that two aggregated producers share is among the items once, for one of them.
        pulled += [name for name in pushed if query.is_aggregated(name)]
        stored = {name: _steps(query.posts_before(name, before).items(self._k)) for name in pulled}
        stored |= {
            name: self._pushed(name, begin) for name, begin in pushed.items() if name not in stored
        }
        return [
            ProducerPosts(_both(_steps(pending[name]), steps) if name in pending else steps)
            for name, steps in stored.items()
        ]

    def _pushed(self, producer: str, begin: int) -> Iterator[Step]:
        """Yields the posts of a producer on push: first those on the shelf, then those in the
        producer's table."""
        shelf, known, taken = self._shelf, self._shelf.of(producer), 0
        end = (begin, "", "")
        while True:
            while taken < len(known):  # `known` may grow meanwhile
                yield known[taken].position, 0, known[taken]
                taken += 1
            if not shelf.is_open or shelf.low <= end:
                break
            low = shelf.low
            yield low, 0, None
            if shelf.low == low:  # otherwise another line has read on
                shelf.read_on()
        below = min(max(shelf.low, end), self._before or TOP)
        if below > BOTTOM:
            yield below, 0, None
            yield from _steps(self._query.posts_before(producer, below).items(self._k))


class ProducerPosts:
    """The posts of one producer, newest first. Remembers what was read."""

    def __init__(self, steps: Iterator[Step]) -> None:
        self._steps = steps
        self._items: list[Item] = []
        self._mark: Position | None = None

    def walk(self, most: int) -> Iterator[Step]:
        """Yields up to `most` posts with their ranks, and marks between them. One walk at a
        time."""
        rank = 0
        while rank < most:
            if rank < len(self._items):
                item = self._items[rank]
                yield item.position, rank, item
                rank += 1
                continue
            if self._mark is None:
                position, _, new_item = next(self._steps, (BOTTOM, 0, None))
                if new_item is not None:
                    self._items.append(new_item)
                    continue
                if position == BOTTOM:
                    return
                self._mark = position
            yield self._mark, rank, None
            self._mark = None  # the merge has reached it when it resumes this walk


class Shelf:
    """The consumer's items, newest first, read on demand."""

    def __init__(self, items: PostStream, chunk: int, most: int) -> None:
        self._items, self._chunk, self._left = items, chunk, most
        self._by_producer: defaultdict[str, list[Item]] = defaultdict(list)
        self.low = TOP
        """All items from this position on are known."""
        self.is_open = True
        """True if there is more to read."""

    def of(self, producer: str) -> list[Item]:
        """Returns the known items of a followed producer. The list grows as more is read."""
        return self._by_producer[producer]

    def read_on(self) -> None:
        chunk = items_of(self._items.some(self._chunk))
        for item in chunk:
            self._by_producer[item.via or item.producer].append(item)
        self._left -= len(chunk)
        if len(chunk) < self._chunk:
            self.low, self.is_open = BOTTOM, False
        else:
            self.low, self.is_open = chunk[-1].position, self._left > 0


def _steps(items: Iterator[Item]) -> Iterator[Step]:
    return ((item.position, 0, item) for item in items)


def _both(first: Iterator[Step], second: Iterator[Step]) -> Iterator[Step]:
    return heapq.merge(first, second, key=itemgetter(0), reverse=True)


def _page(keyed_items: list[tuple[Key, Item]], more: bool) -> DiversePage:
    items = sorted((item for _, item in keyed_items), key=lambda item: item.position, reverse=True)
    first, last = (keyed_items[0][0], keyed_items[-1][0]) if keyed_items else (None, None)
    return DiversePage(items, first, last, more)
