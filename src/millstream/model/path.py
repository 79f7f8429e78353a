"""A field of a record or of an event's value, named by a dotted path."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from millstream.errors import InputError
from millstream.nearest import nearest

_KINDS = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    type(None): "null",
}
_MOST = 50
"""How many fields are looked at for one like it: each of many bad events would pay for them."""


def is_path(path: object) -> bool:
    """Whether it names a field, or one within others: no step of it is empty."""
    return isinstance(path, str) and "" not in path.split(".")


def picker(path: str, where: str, holder: str = "value") -> Callable[[Any], Any]:
    """A function that picks the field; InputError, beginning with `where`, if it is not there.

    `holder` is what messages call the thing that it is picked from.
    """
    steps = path.split(".")

    def pick(record: Any) -> Any:
        value = record
        for step in steps:
            try:
                value = value[step]
            except (KeyError, TypeError):
                why = _why_not(record, steps)
                raise InputError(f"{where}: the {holder} has no field {path!r}{why}") from None
        return value

    return pick


def _why_not(record: Any, steps: list[str]) -> str:
    """What is there in place of the object that should have the field, or a field like it."""
    value, passed = record, list[str]()
    for step in steps:
        if not isinstance(value, dict):
            kind = _KINDS.get(type(value), type(value).__name__)
            return f": {repr('.'.join(passed)) if passed else 'it'} is {kind}, not an object"
        if step not in value:
            near = nearest(step, islice((name for name in value if isinstance(name, str)), _MOST))
            return "" if near is None else f"; did you mean {'.'.join([*passed, near])!r}?"
        value = value[step]
        passed.append(step)
    return ""


def key_text(key: Any, where: str) -> str:
    """A field as a key: text as it is, a whole number as text; InputError for anything else."""
    if isinstance(key, str | int) and not isinstance(key, bool):
        return str(key)
    shown = repr(key)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    raise InputError(
        f"{where}: key must be text or a whole number; got {type(key).__name__} {shown}"
    )
