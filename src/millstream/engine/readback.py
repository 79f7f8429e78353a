"""Whether a slate can go on as it is, or must be read back to be what the next event should find.

A slate is *flat* when writing and reading it would give the same: text keys, and values of JSON's
own simple types. Containers are never flat: JSON turns a tuple into a list, and two names for one
list into two lists.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import cache
from operator import attrgetter
from typing import Any, get_type_hints

_SIMPLE = frozenset({str, int, float, bool, type(None)})
_TEXT = frozenset({str})


@cache
def flatness(slate: type) -> Callable[[Any], bool]:
    """A quick test for slates of this type. The slate has been encoded: its numbers are finite."""
    if slate is dict:
        return _flat_dict
    if dataclasses.is_dataclass(slate) and not hasattr(slate, "__post_init__"):
        return _flat_fields(slate)
    return _never


def _flat_dict(slate: dict[Any, Any]) -> bool:
    return _SIMPLE.issuperset(map(type, slate.values())) and _TEXT.issuperset(map(type, slate))


def _flat_fields(slate: type) -> Callable[[Any], bool]:
    """Every field holds exactly the simple type that it is declared with."""
    try:
        hints = get_type_hints(slate, include_extras=True)
    except Exception:  # names that only the decoder can resolve: then read back
        return _never
    fields = dataclasses.fields(slate)
    names, types = [f.name for f in fields], [hints[f.name] for f in fields]
    if not fields or not all(f.init for f in fields) or not _SIMPLE.issuperset(types):
        return _never
    if "__dict__" in dir(slate):

        def flat(held: Any) -> bool:  # an attribute that is no field would not be written
            return [*map(type, vars(held).values())] == types

        return flat
    if len(fields) == 1:
        of_one, only = attrgetter(names[0]), types[0]
        return lambda held: type(of_one(held)) is only
    of_all = attrgetter(*names)
    return lambda held: [*map(type, of_all(held))] == types


def _never(slate: Any) -> bool:
    return False
