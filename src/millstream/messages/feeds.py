"""Feeds: GET /feeds, pages and live events of a feed, follows, and the records that are sent."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from millstream.messages.streams import PostAnswer

Position = tuple[int, str, str]
"""The position of a post in every feed: its time, its producer, its id."""
How = Literal["push", "pull", "pending"]


class PairReason(msgspec.Struct, frozen=True):
    """Why a pair of consumer and producer is on its side."""

    side: Literal["push", "pull"]
    query_rate: float
    """Views of the feed per second."""
    event_rate: float
    """Posts of the producer per second."""
    ratio: float
    """The cost of a push by that of a pull."""


class Item(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A post in a feed."""

    id: str
    producer: str
    ts: int
    """The time of the post, in microseconds since the epoch."""
    value: Any
    edited: int | None
    """The time of the last edit."""
    via: str | None
    """The aggregated producer that brings it here, if its own producer is not followed."""
    how: How
    """The origin of the item. `push`: the consumer's own table. `pull`: its producer's table.
    `pending`: a record that the application has not taken in yet, or that has not reached the
    followed producer yet."""
    unread: bool | None
    """True if it is newer than the post that was `seen`; None if none was."""
    why: PairReason | None = None
    """Why its pair is on its side; only if `why` was requested."""

    @property
    def position(self) -> Position:
        return self.ts, self.producer, self.id


class Unread(msgspec.Struct, frozen=True):
    """The number of unread posts."""

    count: int
    more: bool
    """True if there are more than were counted."""


class LeftOut(msgspec.Struct, frozen=True):
    """The number of followed producers that an answer leaves out, and the reason."""

    producers: int
    reason: str


class FeedPart(msgspec.Struct, frozen=True):
    """A part of a feed, newest first."""

    feeds: str
    consumer: str
    coherency: str
    items: tuple[Item, ...]
    next: str | None
    """The cursor to older items; None at the end."""
    previous: str | None
    """The cursor to items newer than the first one. There may be some later."""
    unread: Unread | None
    seen: Position | None
    complete: bool
    """True if the page is complete. If not, `left_out` says what is missing."""
    left_out: LeftOut | None


class FeedPage(FeedPart, frozen=True):
    """A part of a feed, newest first, as of one committed batch and with everything that was
    acknowledged since."""

    batch: int
    age: float
    """Seconds since the batch was committed."""


class Follow(msgspec.Struct, frozen=True):
    """A followed producer."""

    producer: str
    side: Literal["push", "pull"]


class FollowsPage(msgspec.Struct, frozen=True):
    """A page of the producers that a consumer follows, by name."""

    feeds: str
    consumer: str
    batch: int
    follows: list[Follow]
    count: int
    """The number of all producers that it follows."""
    next: str | None
    """The cursor of the next page; None at the end."""
    complete: bool
    left_out: LeftOut | None


class FollowAnswer(msgspec.Struct, frozen=True):
    """The answer to a follow or an unfollow, with the new state."""

    consumer: str
    producer: str
    follows: bool


class FeedPostAnswer(PostAnswer, frozen=True):
    """The records of feeds are on disk, and seen by every later read."""

    ids: list[str]
    """The ids of the accepted posts, in order."""


class ReadLatency(msgspec.Struct, frozen=True):
    """Quantiles of the time that the last reads took, in seconds; None: there were none."""

    p50: float | None
    p95: float | None
    p99: float | None


class FeedNetwork(msgspec.Struct, frozen=True):
    """The pairs of a network: how many are pushed and pulled, and what they cost."""

    coherency: str
    policy: str
    decide: str
    producers: int
    consumers: int
    pairs: int
    pushed: int
    pulled: int
    under_way: int
    """Posts that are being pushed."""
    high: float | None
    """The measured cost of a push, in seconds of CPU time."""
    low: float | None
    """The measured cost of a pull."""
    ratio: float
    reads: int
    latency: ReadLatency
    batch: int


class FeedsAnswer(msgspec.Struct, frozen=True):
    """All feeds of the application, by name."""

    feeds: dict[str, FeedNetwork]


class LiveItems(msgspec.Struct, frozen=True):
    """The event `items` of a live feed: new items, newest first, and edited ones."""

    items: tuple[Item, ...]
    batch: int
    complete: bool


class ItemKey(msgspec.Struct, frozen=True):
    """Names a post."""

    id: str
    producer: str
    ts: int

    @property
    def position(self) -> Position:
        return self.ts, self.producer, self.id


class GoneItems(msgspec.Struct, frozen=True):
    """The event `gone` of a live feed: posts that were deleted, or are no longer followed."""

    items: list[ItemKey]


class KeptItems(msgspec.Struct, frozen=True):
    """The event `kept` of a live feed, after a break: all posts from `since` on that it has."""

    items: list[ItemKey]
    since: int
