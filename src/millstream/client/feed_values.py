"""What the client gives back of feeds."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

Position = tuple[int, str, str]
"""Where a post stands in every feed: its time, its producer, its id."""


class Item(msgspec.Struct, frozen=True):
    """A post in a feed."""

    id: str
    producer: str
    ts: int
    """When it was posted, in microseconds since the epoch."""
    value: Any
    how: Literal["push", "pull", "pending"]
    """From the consumer's own table, from its producer's, or from a record that the application has
    not taken in yet."""
    edited: int | None = None
    via: str | None = None
    """The aggregated producer by which it is here, if its own is not followed."""
    unread: bool | None = None
    """Whether it is newer than what was `seen`; None if nothing was."""
    why: dict[str, Any] | None = None
    """Why its pair is on its side; only if that was asked for."""

    @property
    def position(self) -> Position:
        return self.ts, self.producer, self.id


class Unread(msgspec.Struct, frozen=True):
    """How many posts were not seen."""

    count: int
    more: bool
    """Whether there are more than were counted."""


class FeedPage(msgspec.Struct, frozen=True):
    """A part of a feed, newest first, as of one committed batch and with all that was acknowledged
    since."""

    consumer: str
    batch: int
    items: tuple[Item, ...]
    coherency: str
    complete: bool
    """Whether all is there that must be; if not, `left_out` says what is not."""
    next: str | None = None
    """The cursor of what is older; None at the end."""
    previous: str | None = None
    """The cursor of what is newer than the first item: there may be something later."""
    unread: Unread | None = None
    seen: Position | None = None
    left_out: dict[str, Any] | None = None
    age: float | None = None
    """Seconds since the batch was committed."""
    feeds: str = "feeds"


class Follow(msgspec.Struct, frozen=True):
    """A producer that is followed."""

    producer: str
    side: Literal["push", "pull"]


class Live(msgspec.Struct, frozen=True):
    """What has changed in a feed while it was listened to."""

    items: tuple[Item, ...] = ()
    """New, or changed."""
    gone: tuple[Position, ...] = ()
    """Posts that are no longer to be shown."""
    kept: tuple[Position, ...] | None = None
    """After a break: the posts from `since` on that are still there. Whatever else one has of that
    time is no longer to be shown."""
    since: int = 0
    cursor: str | None = None
    """From here on is what comes next."""
