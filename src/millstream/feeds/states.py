"""The state of a pair and of a post, and how a record changes it.

The updates apply these functions to their tables. A reader applies the same functions to records
that are pending, starting from what the tables say (see `pending_records`). So a feed shows a
record the same way before and after it is taken in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from millstream.feeds.names import Position, entry
from millstream.feeds.records import (
    BlockRecord,
    EditRecord,
    FollowRecord,
    PairChange,
    PostChange,
    PostRecord,
    UnfollowRecord,
)
from millstream.feeds.stored_rows import PostRow, PushRow, read_row


class PairState(NamedTuple):
    """A consumer and a producer."""

    since: int | None = None
    """The time of the follow; None if there is none."""
    blocked: int | None = None
    """The time of the block; None if there is none."""


class PostState(NamedTuple):
    """A post of a producer."""

    at: int | None = None
    """The time of the post; 0 if it was deleted, None if there never was one."""
    row: PostRow | None = None
    """None if there is no post."""


NO_POST, DELETED = PostState(), PostState(0)


def pair_after(pair: PairState, record: PairChange) -> PairState:
    """Returns the state of a pair after a record.

    >>> pair_after(PairState(blocked=7), FollowRecord(at=8, consumer="c", producer="p"))
    PairState(since=None, blocked=7)
    """
    if isinstance(record, FollowRecord):
        is_free = pair.since is None and pair.blocked is None
        return PairState(record.at) if is_free else pair
    if isinstance(record, BlockRecord):
        return PairState(None, record.at)
    if isinstance(record, UnfollowRecord):
        return PairState(None, pair.blocked)
    return PairState(pair.since, None)


def post_after(post: PostState, record: PostChange) -> PostState:
    """Returns the state of a post after a record. A deleted post does not come back.

    >>> post_after(DELETED, PostRecord(at=8, producer="p", id="x", value="again")) is DELETED
    True
    """
    if isinstance(record, PostRecord):
        return PostState(record.at, PostRow(record.value)) if post.at is None else post
    if not post.at:
        return post
    if isinstance(record, EditRecord):
        return PostState(post.at, PostRow(record.value, record.at))
    return DELETED


def read_pair(get: Callable[[str], Any], producer: str) -> PairState:
    """Reads the state of a pair from the consumer's table, by a function that reads an entry."""
    since = get(entry("pull", producer))
    if since is None:
        push = read_row(get(entry("push", producer)), PushRow)
        since = None if push is None else push.since
    return PairState(since, get(entry("block", producer)))


def seen_after(seen: Position | None, upto: Position) -> Position:
    """Returns the post up to which a feed was read, after a `seen` record. It never moves back."""
    return upto if seen is None else max(seen, upto)
