"""Verifies a feed: compares what a reader sees with a brute-force query.

The brute force reads every post of every producer that a consumer follows. It ignores what was
pushed, how far back, and to whom. The feed must show the same posts, read in pages from the newest
and in pages from the oldest: in their current state, newest first, each of them once (Feeding
Frenzy, 2.2). With per-producer coherency it must show the newest posts of each producer.
`table_checks` also checks the tables themselves: a feed that is right today may depend on an entry
that makes it wrong tomorrow.

Everything is read as of one batch. Messages that are still on their way between consumers and
producers at that batch do not count as differences: see `settled`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain
from operator import attrgetter
from typing import Any

from msgspec import convert

from millstream.feeds.checks.differences import Difference, shortened
from millstream.feeds.checks.table_checks import check_tables, followed_in
from millstream.feeds.names import (
    Position,
    after,
    entry,
    is_reference,
    parts,
    post_entry,
    prefix,
    reference,
    referred_to,
)
from millstream.feeds.options import FeedOptions
from millstream.feeds.placement import PlacedFeeds
from millstream.feeds.reads.candidates import row_of
from millstream.feeds.reads.diversity import DiverseQuery
from millstream.feeds.reads.query import FeedQuery, FeedSlice
from millstream.feeds.reads.tables import Tables
from millstream.feeds.stored_rows import PostRow, ReferenceRow, read_row
from millstream.feeds.updates.fanouts import ON_WAY
from millstream.messages.feeds import Item

PAGES = 50
"""A long feed is read in about this many pages, a short one in pages of the usual size."""
OLDEST: Position = (0, "", "")

Posts = dict[Position, PostRow]
"""By position: a post as it is stored."""


@dataclass(frozen=True, slots=True)
class Verified:
    """The result for one consumer: what was checked, and the differences."""

    consumer: str
    follows: int
    posts: int
    differences: tuple[Difference, ...] = ()


def verify_feed(
    placed: PlacedFeeds, tables: Tables, consumer: str, *, settled: bool = False
) -> Verified:
    """Verifies the feed of a consumer and its tables.

    `settled` says that as of this batch nothing is on its way from consumers to producers, between
    producers, or from a producer to itself. Only then can the check tell whether their tables
    agree.
    """
    lines = brute_force(placed, tables, consumer)
    expected = merged(lines)
    size = max(placed.options.limit, len(expected) // PAGES)

    def query() -> FeedQuery:
        return FeedQuery(placed, tables, consumer, most_pulled=None)

    differences = [
        *compared(consumer, "from the newest", expected, from_newest(query().older, size)),
        *compared(consumer, "from the oldest", expected, from_oldest(query().newer, size)),
        *compared_diverse(consumer, lines, query(), placed.options, size),
        *check_tables(placed, tables, consumer, settled=settled),
    ]
    return Verified(consumer, len(lines), len(expected), tuple(differences))


def brute_force(placed: PlacedFeeds, tables: Tables, consumer: str) -> dict[str, Posts]:
    """Returns every post of each producer that a consumer follows.

    For an aggregated producer this includes the posts that it refers to or will refer to: existing
    posts of a current source that the consumer neither blocks nor follows itself.
    """
    posts, update = prefix("post"), placed.producers
    posts_of: dict[str, Posts] = {}
    followed = followed_in(placed, tables, consumer)
    own = set(followed)
    for producer in followed:
        line = posts_of[producer] = {}
        stored_posts = tables.scan(update, producer, posts, after(posts))
        for name, stored in chain(stored_posts, _on_way(placed, tables, producer)):
            _, ts, post = parts(name)
            origin = producer
            if is_reference(post):
                origin, post = referred_to(post)
                if origin in own:
                    continue  # shown as a post of its own producer
                since = tables.get(update, producer, entry("source", origin))
                is_source = since == convert(stored, ReferenceRow).since
                is_blocked = tables.get(placed.consumers, consumer, entry("block", origin))
                row = read_row(tables.get(update, origin, post_entry(int(ts), post)), PostRow)
                if row is None or not is_source or is_blocked is not None:
                    continue
            else:
                row = convert(stored, PostRow)
            line[int(ts), origin, post] = row
    return posts_of


def _on_way(placed: PlacedFeeds, tables: Tables, producer: str) -> Iterator[tuple[str, Any]]:
    """Yields what is on its way to an aggregated producer, in the form that it will be stored
    there."""
    begin = prefix(producer)
    for name, stored in tables.scan(placed.fanouts, ON_WAY, begin, after(begin)):
        _, ts, origin, post = parts(name)
        yield post_entry(int(ts), reference(producer, origin, post)), stored


def merged(lines: Mapping[str, Posts]) -> Posts:
    """Merges the posts of all producers. A post that two of them share appears once."""
    return {position: post for line in lines.values() for position, post in line.items()}


def from_newest(older: Callable[[Position | None, int], FeedSlice], size: int) -> Iterator[Item]:
    """Reads a whole feed in pages, newest first. Stops if a page makes no progress."""
    before: Position | None = None
    while True:
        page = older(before, size)
        yield from page.items
        if not page.more or not page.items:
            return
        last = page.items[-1].position
        if before is not None and last >= before:
            return
        before = last


def from_oldest(newer: Callable[[Position, int], FeedSlice], size: int) -> Iterator[Item]:
    """Reads a whole feed in pages in the other direction. The result is newest first, too."""
    pages, than = list[list[Item]](), OLDEST
    while True:
        page = newer(than, size)
        pages.append(page.items)
        if not page.more or not page.items or page.items[0].position <= than:
            break
        than = page.items[0].position
    return (item for page in reversed(pages) for item in page)


def compared(
    consumer: str, read: str, expected: Posts, items: Iterable[Item]
) -> Iterator[Difference]:
    """Yields the differences between a whole feed and the expected posts."""
    left, last = dict(expected), None
    place = Difference(consumer, f"the feed, {read}")
    for item in items:
        position, post = item.position, row_of(item)
        where = replace(place, producer=item.producer, post=item.id)
        if last is not None and position > last:
            yield where.of(f"must come before {_at(last)}", f"after it, at {_at(position)}")
        last = position
        if position not in expected:
            yield where.of("must not be there", shortened(item.value))
        elif position not in left:
            yield where.of("must be there once", f"again, at {_at(position)}")
        elif (must_be := left.pop(position)) != post:
            yield where.of(f"must be {_said(must_be)}", _said(post))
    for position, missing in left.items():
        where = replace(place, producer=position[1], post=position[2])
        yield where.of(f"must be {_said(missing)}, of {position[0]}", "nothing")


def compared_diverse(
    consumer: str, lines: Mapping[str, Posts], query: FeedQuery, options: FeedOptions, size: int
) -> Iterator[Difference]:
    """Yields the differences with per-producer coherency. The feed must have the k newest posts of
    each producer, and no page may have a lead after a page with posts that are not leads
    (k,t-diversity)."""
    newest = [sorted(line, reverse=True)[: options.k] for line in lines.values() if line]
    chosen = set(chain(*newest))
    expected = {position: post for position, post in merged(lines).items() if position in chosen}
    fresh = max((line[0][0] for line in newest), default=0) - options.t_us
    leads = {line[0] for line in newest if line[0][0] >= fresh}
    diverse = DiverseQuery(query, k=options.k, t=options.t_us)
    pages, key, others = list[Item](), None, False
    while True:
        page = diverse.older(key, size)
        pages += page.items
        for item in page.items if others else ():
            if item.position in leads:
                place = Difference(
                    consumer, "the feed, per producer", "", "", item.producer, item.id
                )
                yield place.of("must come before all that is not the newest of a producer", "later")
        others = others or any(item.position not in leads for item in page.items)
        if not page.more or page.last is None or (key is not None and page.last >= key):
            break
        key = page.last
    pages.sort(key=attrgetter("position"), reverse=True)
    yield from compared(consumer, "per producer", expected, pages)


def _said(post: PostRow) -> str:
    return shortened(post.value) + ("" if post.edited is None else f", edited at {post.edited}")


def _at(position: Position) -> str:
    return f"({position[0]}, {position[1]}, {position[2]})"
