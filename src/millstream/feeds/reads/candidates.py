"""Posts that may be shown on a page, as undecoded bytes from the tables.

A page is assembled from more rows than it shows. The byte form of a position (its *place*) sorts as
positions do, so only the posts that are shown are decoded, all at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from millstream.codec import encode_value
from millstream.feeds.names import SEP, Position, time_text
from millstream.feeds.stored_rows import PostRow, decode_posts
from millstream.messages.feeds import How, Item

Way = tuple[How, str | None]
"""The way a post comes into a feed: how, and through which aggregated producer."""
PUSHED: Way = ("push", None)
PULLED: Way = ("pull", None)
Candidate = tuple[bytes, bytes, Way]
"""The place of a post, its stored value, and how it came here."""
_SEP = SEP.encode()


def place_of(ts: int, producer: str, post: str) -> bytes:
    """The byte form of a position: the part of an item's name after its kind."""
    return f"{time_text(ts)}{SEP}{producer}{SEP}{post}".encode()


def position_of(place: bytes) -> Position:
    ts, producer, post = place.decode().split(SEP)
    return int(ts), producer, post


def item_of(
    ts: int, producer: str, post: str, row: PostRow, how: How, via: str | None = None
) -> Item:
    """Makes an item from a stored post. `answers` fills in `unread` and `why`."""
    return Item(post, producer, ts, row.value, row.edited, via, how, unread=None)


def row_of(item: Item) -> PostRow:
    """Returns the stored post that an item shows, the reverse of `item_of`."""
    return PostRow(item.value, item.edited)


def candidate_of(item: Item) -> Candidate:
    return place_of(*item.position), encode_value(row_of(item)), (item.how, item.via)


def items_of(candidates: Sequence[Candidate]) -> list[Item]:
    """Decodes candidates into items, all names and all values at once."""
    if not candidates:
        return []
    places, stored, ways = zip(*candidates, strict=True)
    names = iter(_SEP.join(places).decode().split(SEP))
    rows = decode_posts(b"[" + b",".join(stored) + b"]")
    return [
        item_of(int(ts), producer, post, row, how, via)
        for ts, producer, post, row, (how, via) in zip(
            names, names, names, rows, ways, strict=False
        )
    ]
