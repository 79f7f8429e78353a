"""Min and max: exact, but merged numbers cannot be taken out again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from millstream.algebra.field_picker import Number, Of, gathering_numbers, given, number_picker
from millstream.model.algebra import Algebra


def min_of(of: Of = None) -> Algebra:
    """The least of a number: `{"min": 1}`; null before the first event.

    >>> algebra = min_of("price")
    >>> algebra.write(algebra.merge(3, 2.5))
    {'min': 2.5}
    """
    return _extreme("min", of, lambda a, b: a < b)


def max_of(of: Of = None) -> Algebra:
    """The greatest of a number: `{"max": 9}`; null before the first event."""
    return _extreme("max", of, lambda a, b: a > b)


def settled(number: Number | None) -> Number | None:
    """Returns the number, with -0.0 as 0.0: they are equal, so which one is kept depends on the
    order of arrival."""
    return 0.0 if type(number) is float and number == 0 else number


def _extreme(name: str, field: Of, before: Callable[[Number, Number], bool]) -> Algebra:
    pick = number_picker(name, field)
    pick_all = gathering_numbers(field)

    def merge(a: Number | None, b: Number | None) -> Number | None:
        if a is None or b is None:
            return b if a is None else a
        if a == b:  # 1 and 1.0: take the int, in either order
            return a if type(a) is int else b
        return a if before(a, b) else b

    def gather(keys: Sequence[str], values: Sequence[Any]) -> dict[str, Number | None]:
        numbers, whole = pick_all(values)
        best: dict[str, Number | None] = {}
        if not whole and int in set(map(type, numbers)):
            for key, number in zip(keys, numbers, strict=True):
                best[key] = merge(best.get(key), number)
            return best
        get = best.get  # the loop is written twice: a call for each number would double its time
        if name == "min":
            for key, number in zip(keys, numbers, strict=True):
                old = get(key)
                if old is None or number < old:
                    best[key] = number
        else:
            for key, number in zip(keys, numbers, strict=True):
                old = get(key)
                if old is None or number > old:
                    best[key] = number
        return best

    return Algebra(
        name=name,
        zero=lambda: None,
        lift=pick,
        merge=merge,
        write=lambda number: {name: settled(number)},
        read=lambda slate: slate[name],
        gather=gather,
        arguments=given(of=field),
    )
