"""What a consumer has not read yet: what is newer than the post that it said it has read up to.

A consumer says so by a record of kind `seen`, which only ever moves forward. For who never did all
items are counted, and none is marked as read or unread. Counted is what global coherency shows,
each post once, whatever was asked for: a producer of which only some posts are shown has as many
unread ones as it has.
"""

from __future__ import annotations

from dataclasses import dataclass

from millstream.feeds.items import Item
from millstream.feeds.names import Position
from millstream.feeds.query import FeedQuery

MOST = 1_000
"""Counted are no more than this."""


@dataclass(frozen=True, slots=True)
class Unread:
    """How many items have not been read."""

    count: int
    more: bool
    """Whether there are more than were counted."""


def unread(query: FeedQuery, most: int = MOST) -> Unread:
    """Count the unread items, up to a number."""
    seen = query.seen()
    # Without a marker both ends would do; from the newest on is where the items were pushed.
    page = query.older(None, most) if seen is None else query.newer(seen, most)
    return Unread(len(page.items), page.more)


def is_unread(item: Item, seen: Position | None) -> bool | None:
    """Whether an item has not been read; None if the consumer never said what it has."""
    return None if seen is None else item.position > seen
