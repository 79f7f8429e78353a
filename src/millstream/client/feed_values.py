"""The results of the client's calls for feeds."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Position = tuple[int, str, str]
"""The position of a post in every feed: its time, its producer, its id."""


class Item(msgspec.Struct, frozen=True):
    """A post in a feed."""

    id: str
    producer: str
    ts: int
    """The time of the post, in microseconds since the epoch."""
    value: Any
    how: Literal["push", "pull", "pending"]
    """The origin of the item. `push`: the consumer's own table. `pull`: its producer's table.
    `pending`: a record that the application has not taken in yet."""
    edited: int | None = None
    via: str | None = None
    """The aggregated producer that brings it here, if its own producer is not followed."""
    unread: bool | None = None
    """True if it is newer than the post that was `seen`; None if none was."""
    why: dict[str, Any] | None = None
    """Why its pair is on its side; only if `why` was requested."""

    @property
    def position(self) -> Position:
        return self.ts, self.producer, self.id


class Unread(msgspec.Struct, frozen=True):
    """The number of unread posts."""

    count: int
    more: bool
    """True if there are more than were counted."""


class FeedPage(msgspec.Struct, frozen=True):
    """A part of a feed, newest first, as of one committed batch and with everything that was
    acknowledged since."""

    consumer: str
    batch: int
    items: tuple[Item, ...]
    coherency: str
    complete: bool
    """True if the page is complete. If not, `left_out` says what is missing."""
    next: str | None = None
    """The cursor to older items; None at the end."""
    previous: str | None = None
    """The cursor to items newer than the first one. There may be some later."""
    unread: Unread | None = None
    seen: Position | None = None
    left_out: dict[str, Any] | None = None
    age: float | None = None
    """Seconds since the batch was committed."""
    feeds: str = "feeds"


class Follow(msgspec.Struct, frozen=True):
    """A followed producer."""

    producer: str
    side: Literal["push", "pull"]


class Live(msgspec.Struct, frozen=True):
    """A change of a feed."""

    items: tuple[Item, ...] = ()
    """New or edited items."""
    gone: tuple[Position, ...] = ()
    """Posts that must no longer be shown."""
    kept: tuple[Position, ...] | None = None
    """After a break: the posts from `since` on that still exist. Any other post of that time must
    no longer be shown."""
    since: int = 0
    cursor: str | None = None
    """The cursor to continue from."""
