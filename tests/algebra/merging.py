"""Merge what events are lifted to in any order, over any tree, with slates written in between."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

from millstream import Event
from millstream.algebra import Algebra
from millstream.codec import decode_value, encode_slate


def event(value: Any, key: str = "k") -> Event:
    return Event("s", 1, key, value)


def slate(algebra: Algebra, partial: Any) -> bytes:
    """Returns the stored form of a partial."""
    return encode_slate(algebra.write(partial))


def stored(algebra: Algebra, partial: Any) -> Any:
    """The partial, written and read again."""
    return algebra.read(decode_value(slate(algebra, partial)))


def in_order(algebra: Algebra, values: Iterable[Any]) -> Any:
    """Merges the values one after the other."""
    partial = algebra.zero()
    for value in values:
        partial = algebra.merge(partial, algebra.lift(event(value)))
    return partial


def anyhow(algebra: Algebra, values: Iterable[Any], random: Random) -> Any:
    """In a random order over a random tree; some partials are zero, some are stored on the way."""
    partials = [algebra.lift(event(value)) for value in values]
    partials += [algebra.zero() for _ in range(random.randrange(1, 3))]
    while len(partials) > 1:
        a = partials.pop(random.randrange(len(partials)))
        b = partials.pop(random.randrange(len(partials)))
        if random.random() < 0.2:
            a = stored(algebra, a)
        if random.random() < 0.2:
            b = stored(algebra, b)
        partials.append(algebra.merge(a, b))
    return partials[0]
