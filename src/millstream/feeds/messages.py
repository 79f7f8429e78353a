"""The messages between the functions of feeds, one Struct for each kind.

A message to producers or consumers carries its kind in the field `kind`, as records do (see
`records`). Messages on the streams `told` and `more` are stored between two batches, so their
encoded form is part of the format.
"""

from __future__ import annotations

from typing import Any

import msgspec

from millstream.feeds.policy.sides import Side
from millstream.feeds.records import ConsumerRecord, ProducerRecord


class FeedMessage(
    msgspec.Struct, frozen=True, tag_field="kind", tag=str.lower, omit_defaults=True, kw_only=True
):
    """A message to a producer or a consumer."""


class FollowerMessage(FeedMessage, frozen=True):
    """A consumer tells a producer about its follow."""

    consumer: str
    since: int
    rate_class: int = msgspec.field(name="class")


class Followed(FollowerMessage, frozen=True):
    pass


class Unfollowed(FollowerMessage, frozen=True):
    pass


class Rated(FollowerMessage, frozen=True):
    """The consumer's rate class has changed."""


class SourceMessage(FeedMessage, frozen=True):
    """An aggregated producer tells another that it is one of its sources, or no longer is."""

    into: str
    """The aggregated producer."""
    since: int


class SourceJoined(SourceMessage, frozen=True, tag="joined"):
    pass


class SourceParted(SourceMessage, frozen=True, tag="parted"):
    pass


class ReferredPost(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A source's post, by its time and id."""

    at: int
    id: str
    exists: bool
    """False if it was deleted."""


class Referred(FeedMessage, frozen=True):
    """A source tells an aggregated producer of new and deleted posts."""

    origin: str
    """The source."""
    since: int
    """The time at which it became a source."""
    items: list[ReferredPost]
    on_way: bool = False
    """True if the posts are listed as on their way (see `fanouts`)."""


class More(FeedMessage, frozen=True):
    """A producer tells itself to continue its passes."""


class PushedPost(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The current state of a post, as a producer sends it to its followers."""

    at: int
    id: str
    """The id, or the reference to another's post."""
    row: Any
    """A `PostRow` or a `ReferenceRow`, in the form in which the producer read it from its table;
    None if the post was deleted. Followers store it unchanged."""


class Push(FeedMessage, frozen=True):
    """A producer sends posts that are new, changed or deleted to a follower on push."""

    producer: str
    since: int
    items: list[PushedPost]


class SideChange(FeedMessage, frozen=True, tag="side"):
    """A producer tells a follower the side of their pair."""

    producer: str
    since: int
    side: Side
    items: list[PushedPost] = []
    """The newest posts, if the side is push."""
    begin: int = msgspec.field(name="from", default=0)
    """The items are complete from this time on."""


class UnderWay(msgspec.Struct, frozen=True):
    """A producer's pass has begun or is done: a message to the table of producers under way."""

    producer: str
    under_way: bool


class TableEntry(msgspec.Struct, frozen=True):
    """A new value of an entry: a message to the other tables of `fanouts`."""

    entry: str
    kept: Any
    """The value; None deletes the entry."""


ProducerMessage = Followed | Unfollowed | Rated | SourceJoined | SourceParted | Referred | More
ProducerEvent = ProducerRecord | ProducerMessage
ConsumerEvent = ConsumerRecord | Push | SideChange
