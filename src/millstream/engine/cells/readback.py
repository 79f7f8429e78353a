"""Writes a slate and reads it back, so that the next event finds it in its stored form.

JSON turns a tuple into a list, and two references to one list into two lists; a dataclass may hold
a value that its own field types would not accept when read. A slate must look the same to the next
event whether or not a batch ended in between, so it is written and read between two events of a
key.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from math import isfinite
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from millstream.codec import BITS, SlateCodec, encodes, settled

SMALL = 256
"""Slates larger than this are not read back between events: it would cost more than the event."""
_sorted = msgspec.json.Encoder(order="sorted").encode
_SIMPLE = frozenset({str, int, float, bool, type(None)})

ReadBack = Callable[[Any], tuple[Any, int]]
"""Returns the slate, read back if it is small, and its size; raises if it cannot be written."""
Settled = Callable[[Any], bool]
"""True if a slate certainly reads back as it is; it takes less time than reading it back."""


def settled_as(slate: type) -> Settled:
    """Returns the function that tells whether slates of this type are settled."""
    if slate is dict:
        return settled
    kinds = _scalar_kinds(slate)
    if kinds is None:
        return lambda held: False

    def fields_settled(held: Any) -> bool:
        fields = vars(held)
        if len(fields) != len(kinds):
            return False
        for name, item in fields.items():
            kind = type(item)
            if kind not in kinds.get(name, ()):
                return False
            if kind is int:
                if item.bit_length() > BITS:
                    return False
            elif kind is float:
                if not isfinite(item):
                    return False
            elif kind is str and not (item.isascii() or encodes(item)):
                return False
        return True

    return fields_settled


def _scalar_kinds(slate: type) -> dict[str, frozenset[type]] | None:
    """Returns the types of a dataclass's fields; None if not all are plain fields of scalars."""
    hints, fields = get_type_hints(slate, include_extras=True), dataclasses.fields(slate)
    if hasattr(slate, "__post_init__") or "__slots__" in vars(slate):
        return None
    kinds: dict[str, frozenset[type]] = {}
    for field in fields:
        hint = hints[field.name]
        united = get_origin(hint) in (Union, UnionType)
        options = get_args(hint) if united else (hint,)
        if not field.init or not all(option in [*_SIMPLE] for option in options):
            return None
        kinds[field.name] = frozenset(options)
    return kinds


def read_back(slate: type, codec: SlateCodec) -> ReadBack:
    """Returns the function that reads back slates of this type."""
    encode, decode = codec.encode, codec.decode

    def of_dict(held: dict[Any, Any]) -> tuple[Any, int]:
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
