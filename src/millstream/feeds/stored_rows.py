"""The values of entries in the tables of feeds, one Struct for each kind of entry (see `names`).

Writers assign the Struct to an entry. Readers use `read_row`, or a decoder of undecoded bytes. The
names in the stored form are short, and part of the format: a store of any earlier version must stay
readable. Entries that hold a single time or a mark are plain numbers and have no Struct:

    block, by, from, id, into, pull, source    and the table of producers under way
"""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from millstream.feeds.names import Position
from millstream.feeds.policy.rates import NEVER, Rate
from millstream.feeds.policy.sides import Side

T = TypeVar("T")


class PostRow(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """A post: `post` of a producer, `item` of a consumer."""

    value: Any = msgspec.field(name="v")
    edited: int | None = msgspec.field(name="e", default=None)
    """The time of the last edit."""


class ReferenceRow(msgspec.Struct, frozen=True, gc=False):
    """A reference to a source's post: `post` of an aggregated producer, `item` of a consumer."""

    since: int = msgspec.field(name="s")
    """The time at which the source joined. A reference of an earlier membership is not valid."""


class FollowerRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A follower: `of` of a producer."""

    rate_class: int
    since: int


class PushRow(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A producer on push: `push` of a consumer."""

    since: int
    begin: int
    """The consumer's items have all posts from this time on."""


class PostKey(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A post of a producer, by its time and its id (or reference)."""

    at: int
    id: str


class PostPassRow(msgspec.Struct, omit_defaults=True):
    """A pass that sends posts to all followers on push: `pass` of a producer."""

    items: list[PostKey]
    at: str = ""
    """The last follower that was reached, as the name of its entry; empty at the start."""


class SidePassRow(msgspec.Struct, omit_defaults=True):
    """A pass that moves the followers of some classes to another side: `pass` of a producer."""

    side: Side
    low: int
    high: int
    """The classes from `low` on and below `high`."""
    at: str = ""
    """As in `PostPassRow`."""


PassRow = PostPassRow | SidePassRow


class PassNumbers(msgspec.Struct, array_like=True):
    """The numbers of the passes that wait: from `first` on and below `stop`."""

    first: int = 0
    stop: int = 0


class ProducerCounts(msgspec.Struct):
    posts: int = 0
    followers: int = 0


class ProducerMeta(msgspec.Struct, omit_defaults=True):
    """`meta` of a producer."""

    ratio: float
    """The cost of a push relative to a pull."""
    aim: int
    """The lowest class to push to, as decided. Equal to `need` when all passes are done."""
    need: int
    """All followers of this class and above are on push."""
    rate: Rate = msgspec.field(default_factory=Rate)
    counts: ProducerCounts = msgspec.field(default_factory=ProducerCounts)
    sent: int = 0
    """The timestamp of the last message sent."""
    is_watched: bool = msgspec.field(name="watched", default=False)
    """True if a timer is set for the end of a flash."""
    is_source: bool = msgspec.field(name="source", default=False)
    """True if the posts are passed on to an aggregated producer."""
    sweep: str | None = None
    """References to former sources may remain before this entry."""
    passes: PassNumbers | None = None
    """None until the first pass that had to wait."""
    has_more: bool = msgspec.field(name="more", default=False)
    """True if an event is on its way that continues the passes."""
    under_way: bool = False
    """True if the table of fan-outs lists this producer as under way."""

    @property
    def is_pending(self) -> bool:
        """True if a pass is not done."""
        return self.passes is not None and self.passes.first < self.passes.stop


class ConsumerMeta(msgspec.Struct, omit_defaults=True):
    """`meta` of a consumer."""

    rate_class: int = msgspec.field(name="class")
    """The class that was last reported to its producers."""
    follows: int
    items: int
    floor: int
    """The items are complete from this time on."""
    rate: Rate | None = None
    wholesale: bool = False
    """True if the consumer was chosen to have all of its producers on push."""
    flow: float | None = None
    """Posts a second in its feed."""
    ratio: float | None = None
    seen: Position | None = None
    """The post up to which the feed was read."""
    begin: int = msgspec.field(name="from", default=0)
    """An upper bound of the `from` times of its producers on push."""

    @classmethod
    def new(cls) -> ConsumerMeta:
        return cls(rate_class=NEVER, follows=0, items=0, floor=0)


decode_post = msgspec.json.Decoder(PostRow).decode
decode_posts = msgspec.json.Decoder(list[PostRow]).decode
decode_reference = msgspec.json.Decoder(ReferenceRow).decode
decode_consumer = msgspec.json.Decoder(ConsumerMeta).decode


def read_row(stored: Any, row: type[T]) -> T | None:
    """Converts the decoded value of an entry to its Struct; None if there is no entry.

    >>> read_row([164, 7], FollowerRow)
    FollowerRow(rate_class=164, since=7)
    """
    return None if stored is None else msgspec.convert(stored, row)


def read_pass(stored: dict[str, Any]) -> PassRow:
    """Converts a stored pass to the Struct of its kind.

    >>> read_pass({"side": "push", "low": 4, "high": 9})
    SidePassRow(side='push', low=4, high=9, at='')
    """
    if "side" in stored:
        return msgspec.convert(stored, SidePassRow)
    return msgspec.convert(stored, PostPassRow)
