"""Writes a slate and reads it back, so that the next event finds it in its stored form.

JSON turns a tuple into a list, and two references to one list into two lists; a dataclass may hold
a value that its own field types would not accept when read. A slate must look the same to the next
event whether or not a batch ended in between, so it is written and read between two events of a
key.

A slate of more than `SMALL` bytes is not: only its outermost fields are looked at. It is written
and read back after all if one of these holds what its type would not accept, or what JSON changes
or refuses (`fits_as`), and once it may be small again (`large_as`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import cache
from math import isfinite
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import msgspec

from millstream.codec import BITS, FEW, SlateCodec, settled
from millstream.model.path import is_unicode

SMALL = 256
"""Slates larger than this are not read back between events: it would cost more than the event."""
_sorted = msgspec.json.Encoder(order="sorted").encode
_SIMPLE = frozenset({str, int, float, bool, type(None)})
_NONE: frozenset[type] = frozenset()

ReadBack = Callable[[Any], tuple[Any, int]]
"""Returns the slate, read back if it is small or does not fit, and its size; raises if it cannot be
written, or read."""
Settled = Callable[[Any], bool]
"""True if a slate certainly reads back as it is; it takes less time than reading it back."""


@cache
def settled_as(slate: type) -> Settled:
    """Returns the function that tells whether slates of this type are settled."""
    if slate is dict:
        return settled
    kinds = _kinds(slate)
    if kinds is None or not all(options and options <= _SIMPLE for options in kinds.values()):
        return lambda held: False
    return _fitting(kinds)


@cache
def fits_as(slate: type) -> Settled:
    """Returns the function that tells whether a slate of this type is settled as far as its
    outermost fields say, without a look into lists and dicts."""
    if slate is dict:
        return _entries_fit
    kinds = _kinds(slate)
    return (lambda held: True) if kinds is None else _fitting(kinds)


@cache
def large_as(slate: type) -> Settled:
    """Returns the function that tells whether a slate of this type fits and is certainly large."""
    fits = fits_as(slate)
    return lambda held: fits(held) and exceeds(held, SMALL)


def exceeds(value: Any, size: int) -> bool:
    """True if the JSON of a value certainly has more bytes than this; looks at few of its parts."""
    least, parts = 0, [value]
    while parts:
        part = parts.pop()
        kind = type(part)
        items: Iterable[Any] = ()
        if kind is str:
            least += len(part)
        elif kind is dict:
            least += 5 * len(part)  # two quotes, a colon, a value, a comma
            items = part.values()
        elif kind is list:
            least += 2 * len(part)
            items = part
        elif names := getattr(kind, "__dataclass_fields__", None):
            least += 6 * len(names)
            items = [getattr(part, name, None) for name in names]
        if least > size:
            return True
        parts += items
    return False


def _entries_fit(held: dict[Any, Any]) -> bool:
    """True for a dict of many entries, or of a few that are settled as far as one can see."""
    if len(held) > FEW:
        return True
    seen = {}
    for name, item in held.items():
        kind = type(item)
        deep = kind is list or kind is dict or (kind is float and isfinite(item))
        seen[name] = None if deep else item
    return settled(seen)


Kinds = dict[str, frozenset[type] | None]
"""The types that items of each field of a dataclass may have; None: any."""


def _fitting(kinds: Kinds) -> Settled:
    """Returns the function that tells whether fields hold items of these types, none of which JSON
    refuses."""

    def fit(held: Any) -> bool:
        fields = vars(held)
        if len(fields) != len(kinds):
            return False
        for name, item in fields.items():
            kind, options = type(item), kinds.get(name, _NONE)
            if options is None:
                continue
            if kind not in options:
                return False
            if kind is int:
                if item.bit_length() > BITS:
                    return False
            elif kind is float:
                if not isfinite(item):
                    return False
            elif kind is str and not (item.isascii() or is_unicode(item)):
                return False
        return True

    return fit


def _kinds(slate: type) -> Kinds | None:
    """Returns the types of a dataclass's fields; None if the class does more than hold them."""
    hints, fields = get_type_hints(slate, include_extras=True), dataclasses.fields(slate)
    if hasattr(slate, "__post_init__") or "__slots__" in vars(slate):
        return None
    if not all(field.init for field in fields):
        return None
    return {field.name: _options(hints[field.name]) for field in fields}


def _options(hint: Any) -> frozenset[type] | None:
    united = get_origin(hint) in (Union, UnionType)
    kinds = [get_origin(option) or option for option in (get_args(hint) if united else (hint,))]
    return frozenset(kinds) if all(kind in [*_SIMPLE, list, dict] for kind in kinds) else None


@cache
def read_back(slate: type, codec: SlateCodec) -> ReadBack:
    """Returns the function that reads back slates of this type."""
    encode, decode, fits = codec.encode, codec.decode, fits_as(slate)

    def of_dict(held: dict[Any, Any]) -> tuple[Any, int]:
        encoded = _sorted(held)  # refuses keys that are not text, at any depth
        size = len(encoded)
        if b"null" in encoded:
            encode(held)  # refuses NaN and infinity, which are written as null
        if _SIMPLE.issuperset(map(type, held.values())) or (size > SMALL and fits(held)):
            return held, size
        return decode(encode(held)), size

    def of_fields(held: Any) -> tuple[Any, int]:
        encoded = encode(held)
        size = len(encoded)
        return (held if size > SMALL and fits(held) else decode(encoded)), size

    return of_dict if slate is dict else of_fields
