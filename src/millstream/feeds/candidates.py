"""Posts that may come on a page, as the tables have them: in bytes, and not decoded.

A page is put together from more rows than it shows. A place in bytes is in the order of positions
as it is, so only what is shown is decoded, all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from millstream.codec import encode_value
from millstream.feeds.items import How, Item
from millstream.feeds.names import SEP, Position, time_text

Way = tuple[How, str | None]
"""How a post comes into a feed, and by way of which aggregated producer."""
PUSHED: Way = ("push", None)
PULLED: Way = ("pull", None)
Candidate = tuple[bytes, bytes, Way]
"""Where a post stands, how it is kept, and how it comes here."""
_SEP = SEP.encode()


class _Kept(msgspec.Struct, gc=False):
    """A post as it is stored."""

    v: Any
    e: int | None = None


_decode = msgspec.json.Decoder(list[_Kept]).decode


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
    """The items that these are. Names and values are decoded at once, not one by one."""
    if not candidates:
        return []
    places, stored, ways = zip(*candidates, strict=True)
    names = iter(_SEP.join(places).decode().split(SEP))
    kept = _decode(b"[" + b",".join(stored) + b"]")
    return [
        Item(int(ts), producer, post, one.v, how, one.e, via)
        for ts, producer, post, one, (how, via) in zip(
            names, names, names, kept, ways, strict=False
        )
    ]
