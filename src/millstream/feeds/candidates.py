"""Posts that may come on a page, as the tables have them: in bytes, and not decoded.

A page is put together from more rows than it shows. Names in bytes are in the order of positions as
they are, so only what is shown is decoded, all at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from millstream.codec import decode_value, decode_values
from millstream.feeds.items import How, Item
from millstream.feeds.names import DIGITS, Position
from millstream.feeds.pending import Stored

Candidate = tuple[bytes, bytes, bytes, str | None, How, bytes | Stored]
"""The time, producer and id of a post, by way of whom it is here, how, and how it is kept."""
_new = tuple.__new__
place = itemgetter(0, 1, 2)
"""Where a candidate stands."""


def candidate_of(item: Item) -> Candidate:
    """A candidate from an item, as it is."""
    stored: Stored = (
        {"v": item.value} if item.edited is None else {"v": item.value, "e": item.edited}
    )
    ts = b"%0*d" % (DIGITS, item.ts)
    return ts, item.producer.encode(), item.id.encode(), item.via, item.how, stored


def position_of(candidate: Candidate) -> Position:
    ts, producer, post, _, _, _ = candidate
    return int(ts), producer.decode(), post.decode()


def items_of(candidates: Sequence[Candidate]) -> list[Item]:
    """The items that these are."""
    kept = [one[5] for one in candidates]
    encoded = [one for one in kept if type(one) is bytes]
    if len(encoded) == len(kept):  # nearly always
        stored: list[Any] = decode_values(encoded)
    else:
        stored = [decode_value(one) if isinstance(one, bytes) else one for one in kept]
    return [
        _new(Item, (int(ts), by.decode(), post.decode(), now["v"], how, now.get("e"), via))
        for (ts, by, post, via, how, _), now in zip(candidates, stored, strict=True)
    ]
