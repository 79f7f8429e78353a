"""A post as a feed shows it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from millstream.feeds.names import Position

How = Literal["push", "pull", "pending"]
"""How an item came into the feed: from the materialised feed, from its producer, or from a record
that the application has not taken in yet, or not all the way to the producer that is followed."""


class Item(msgspec.Struct, frozen=True, gc=False):
    """A post in a feed. A struct, which is made quickly: a page has many."""

    ts: int
    producer: str
    id: str
    value: Any
    how: How
    edited: int | None = None
    """When it was changed last."""
    via: str | None = None
    """The aggregated producer by which it is here, if it is not followed itself."""

    @property
    def position(self) -> Position:
        return self.ts, self.producer, self.id


def item_of(
    ts: int, producer: str, post: str, stored: dict[str, Any], how: How, via: str | None = None
) -> Item:
    """An item from how a post is kept."""
    return Item(ts, producer, post, stored["v"], how, stored.get("e"), via)
