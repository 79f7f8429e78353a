"""Unread items: those newer than the post up to which the consumer has read.

A consumer reports that post with a record of kind `seen`, which only ever moves forward. For a
consumer that has never reported one, all items are counted, and none is marked as read or unread.
With either coherency, the count covers the items that global coherency shows: if only some posts of
a producer are shown, all of its unread posts count.
"""

from __future__ import annotations

from millstream.feeds.names import Position
from millstream.feeds.reads.query import FeedQuery
from millstream.messages.feeds import Item, Unread

MOST = 1_000
"""The maximum count."""


def unread(query: FeedQuery, most: int = MOST) -> Unread:
    """Counts the unread items, up to `most`."""
    seen = query.seen()
    # Without a marker, any `most` items would do; the newest ones are cheap, since they are pushed.
    page = query.older(None, most) if seen is None else query.newer(seen, most)
    return Unread(len(page.items), page.more)


def is_unread(item: Item, seen: Position | None) -> bool | None:
    """True if an item is unread; None if the consumer never reported how far it has read."""
    return None if seen is None else item.position > seen
