"""A post as a feed shows it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from millstream.feeds.names import Position
from millstream.feeds.stored_rows import PostRow

How = Literal["push", "pull", "pending"]
"""The origin of an item. `push`: the materialised feed. `pull`: its producer. `pending`: a record
that the application has not taken in yet, or that has not reached the followed producer yet."""


class FeedItem(msgspec.Struct, frozen=True, gc=False):
    """A post in a feed. A Struct, because a page creates many of them and it is fast to create."""

    ts: int
    producer: str
    id: str
    value: Any
    how: How
    edited: int | None = None
    """The time of the last edit."""
    via: str | None = None
    """The aggregated producer that brings it here, if its own producer is not followed."""

    @property
    def position(self) -> Position:
        return self.ts, self.producer, self.id


def item_of(
    ts: int, producer: str, post: str, row: PostRow, how: How, via: str | None = None
) -> FeedItem:
    """Makes an item from a stored post."""
    return FeedItem(ts, producer, post, row.value, how, row.edited, via)
