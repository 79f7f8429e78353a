"""Posts that may come on a page, as the tables have them: in bytes, and not decoded.

A page is put together from more rows than it shows. A place in bytes is in the order of positions
as it is, so only what is shown is decoded, all at once.
"""

from __future__ import annotations

from collections.abc import Sequence

from millstream.codec import decode_values, encode_value
from millstream.feeds.items import How, Item
from millstream.feeds.names import SEP, Position, time_text

Way = tuple[How, str | None]
"""How a post comes into a feed, and by way of which aggregated producer."""
PUSHED: Way = ("push", None)
PULLED: Way = ("pull", None)
Candidate = tuple[bytes, bytes, Way]
"""Where a post stands, how it is kept, and how it comes here."""
_new = tuple.__new__


def place_of(ts: int, producer: str, post: str) -> bytes:
    """A position in bytes: what the name of an item has after its kind."""
    return f"{time_text(ts)}{SEP}{producer}{SEP}{post}".encode()


def position_of(place: bytes) -> Position:
    """The position that a place is."""
    ts, producer, post = place.decode().split(SEP)
    return int(ts), producer, post


def candidate_of(item: Item) -> Candidate:
    """A candidate from an item, as it is."""
    stored = {"v": item.value} if item.edited is None else {"v": item.value, "e": item.edited}
    return place_of(*item.position), encode_value(stored), (item.how, item.via)


def items_of(candidates: Sequence[Candidate]) -> list[Item]:
    """The items that these are."""
    stored = decode_values([kept for _, kept, _ in candidates])
    names = [place.decode().split(SEP) for place, _, _ in candidates]
    return [
        _new(Item, (int(ts), producer, post, now["v"], how, now.get("e"), via))
        for (ts, producer, post), now, (_, _, (how, via)) in zip(
            names, stored, candidates, strict=True
        )
    ]
