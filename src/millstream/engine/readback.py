"""Writes a slate and reads it back, so that the next event finds it in its stored form.

JSON turns a tuple into a list, and two references to one list into two lists; a dataclass may hold
a value that its own field types would not accept when read. A slate must look the same to the next
event whether or not a batch ended in between, so it is written and read between two events of a
key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from millstream.codec import SlateCodec, settled

SMALL = 256
"""Slates larger than this are not read back between events: it would cost more than the event."""
_sorted = msgspec.json.Encoder(order="sorted").encode
_SIMPLE = frozenset({str, int, float, bool, type(None)})

ReadBack = Callable[[Any], tuple[Any, int]]
"""Returns the slate, read back if it is small, and its size; raises if it cannot be written."""


def read_back(slate: type, codec: SlateCodec) -> ReadBack:
    """Returns the function that reads back slates of this type."""
    encode, decode = codec.encode, codec.decode

    def of_dict(held: dict[Any, Any]) -> tuple[Any, int]:
        if settled(held):
            return held, 0
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
