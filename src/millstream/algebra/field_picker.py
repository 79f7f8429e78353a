"""Picks an algebra's input from an event: a field, a path, a function, or the whole value.

If it is missing or has the wrong type, InputError is raised. The event then becomes a dead letter,
whose message says what to fix. The `gathering` functions pick from many values at once. They may
raise any error where the others raise InputError: the events are then lifted one by one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any, TypeVar

from millstream.codec import encode_value
from millstream.errors import CodecError, DefinitionError, InputError
from millstream.model.event import Event
from millstream.model.path import guarded, shortened
from millstream.model.path import picker as path_picker

Of = str | Callable[[Any], Any] | None
Number = int | float
T = TypeVar("T")

LARGEST = int(sys.float_info.max)
"""Greater ints are refused: no float is near them."""


def given(**arguments: Any) -> tuple[tuple[str, Any], ...]:
    """Returns the arguments of an algebra that are not None, in the form that it stores."""
    return tuple((name, value) for name, value in arguments.items() if value is not None)


def where_of(name: str, field: Of) -> str:
    """Returns the name of an algebra for messages: `sum('amount')`."""
    if field is None:
        return f"{name}()"
    return f"{name}({field!r})" if isinstance(field, str) else f"{name}({_name_of(field)})"


def picker(name: str, field: Of) -> Callable[[Event], Any]:
    """Returns a function that picks from an event's value what `field` names."""
    if field is None:
        return itemgetter(3)  # the value; attribute access would be slower
    where = where_of(name, field)
    if callable(field):
        call = guarded(field, where)
        return lambda event: call(event.value)
    if not isinstance(field, str) or not field:
        raise DefinitionError(
            f"{name}(of=) must be a field, a dotted path or a function of the value; got {field!r}"
        )
    pick = path_picker(field, where)
    return lambda event: pick(event.value)


def number_picker(name: str, field: Of) -> Callable[[Event], Number]:
    """Returns a function that picks a finite number."""
    return _checked_picker(name, field, finite)


def finite(value: Any, where: str) -> Number:
    """Returns the value if it is a finite number. Otherwise raises InputError."""
    if type(value) is int:
        if -LARGEST <= value <= LARGEST:
            return value
        raise InputError(f"{where}: an int must be below 2**1024; got {value.bit_length()} bits")
    if type(value) is float:
        if math.isfinite(value):
            return value
        raise InputError(f"{where}: must be a finite number; got {value!r}")
    raise InputError(f"{where}: must be a number; got {type(value).__name__} {shortened(value)}")


def item_picker(name: str, field: Of) -> Callable[[Event], str]:
    """Returns a function that picks an item, as canonical JSON text."""
    return _checked_picker(name, field, item_text)


def _checked_picker(name: str, field: Of, check: Callable[[Any, str], T]) -> Callable[[Event], T]:
    pick, where = picker(name, field), where_of(name, field)
    return lambda event: check(pick(event), where)


def item_text(item: Any, where: str) -> str:
    """Returns an item's canonical JSON: two items are the same if theirs are. Raises InputError if
    it has none."""
    if type(item) is bytes:
        raise InputError(
            f"{where}: must be what JSON can carry; got bytes: use a function that converts them"
        )
    try:
        return encode_value(item).decode()
    except CodecError as error:
        raise InputError(f"{where}: {error}") from None


def plain_field(field: Of) -> str | None:
    """Returns the field that is all that is picked from a value; None if more is needed."""
    return field if isinstance(field, str) and "." not in field else None


def gathering(field: Of) -> Callable[[Sequence[Any]], Iterable[Any]]:
    """Returns a function that picks from each of many values."""
    if field is None:
        return lambda values: values
    if callable(field):
        return lambda values: map(field, values)
    steps = field.split(".")

    def pick_all(values: Iterable[Any]) -> Iterable[Any]:
        for step in steps:
            values = map(itemgetter(step), values)
        return values

    return pick_all


def gathering_numbers(field: Of) -> Callable[[Sequence[Any]], tuple[list[Number], bool]]:
    """Returns a function of many values that picks finite numbers, and tells whether all are
    ints."""
    pick_all = gathering(field)

    def pick_numbers(values: Sequence[Any]) -> tuple[list[Number], bool]:
        numbers = list(pick_all(values))
        kinds = set(map(type, numbers))
        if not kinds <= {int, float}:
            raise TypeError("not all are numbers")
        whole = float not in kinds
        if whole and numbers and not (min(numbers) >= -LARGEST and max(numbers) <= LARGEST):
            raise OverflowError("an int is too great")
        # isfinite itself raises OverflowError for an int that is too great.
        if not whole and not all(map(math.isfinite, numbers)):
            raise ValueError("not all are finite")
        return numbers, whole

    return pick_numbers


def gathering_items(field: Of) -> Callable[[Sequence[Any]], list[str]]:
    """Returns a function of many values that picks the text of each item."""
    pick_all = gathering(field)

    def pick_items(values: Sequence[Any]) -> list[str]:
        return [item_text(item, "") for item in pick_all(values)]

    return pick_items


def _name_of(function: Callable[[Any], Any]) -> str:
    return getattr(function, "__name__", None) or repr(function)
