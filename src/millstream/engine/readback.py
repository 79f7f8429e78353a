"""The slate as the next event should find it: written and read back.

JSON turns a tuple into a list, and two names for one list into two lists; a dataclass may hold what
its own fields would not take back. A slate must look the same to the next event whether or not a
batch ended in between, so between two events of a key it goes there and back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from millstream.codec import SlateCodec

SMALL = 256
"""Slates of more bytes are not read back between events: it would cost more than the event."""
_sorted = msgspec.json.Encoder(order="sorted").encode
_SIMPLE = frozenset({str, int, float, bool, type(None)})
_SETTLED = _SIMPLE - {float}  # which may be NaN
_TEXT = frozenset({str})
FEW = 8
"""Up to so many entries a look at each is cheaper than writing them."""

ReadBack = Callable[[Any], tuple[Any, int]]
"""Gives the slate, read back if it is small, and its size; raises if that cannot be done."""


def read_back(slate: type, codec: SlateCodec) -> ReadBack:
    """How slates of this type are read back."""
    encode, decode = codec.encode, codec.decode

    def of_dict(held: dict[Any, Any]) -> tuple[Any, int]:
        if (
            len(held) <= FEW
            and _TEXT.issuperset(map(type, held))
            and _SETTLED.issuperset(map(type, held.values()))
        ):
            return held, 0  # nothing in it that JSON could change or refuse
        encoded = _sorted(held)  # refuses keys that are not text, at any depth
        size = len(encoded)
        if b"null" in encoded:
            encode(held)  # refuses NaN and infinity, which are written as null
        if _SIMPLE.issuperset(map(type, held.values())) or size > SMALL:
            return held, size
        return decode(encode(held)), size

    def of_fields(held: Any) -> tuple[Any, int]:
        encoded = encode(held)
        size = len(encoded)
        return (decode(encoded) if size <= SMALL else held), size

    return of_dict if slate is dict else of_fields
