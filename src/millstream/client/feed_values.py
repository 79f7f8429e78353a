"""Results of the client's calls for feeds that are not messages of the server."""

from __future__ import annotations

import msgspec

from millstream.client.values import Refused
from millstream.messages.feeds import Item, Position


class FeedsSent(msgspec.Struct, frozen=True):
    """The result of sending the records of one call."""

    accepted: int = 0
    refused: tuple[Refused, ...] = ()
    refused_count: int = 0
    ids: tuple[str, ...] = ()
    """The id of each accepted post, generated if it had none."""


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
