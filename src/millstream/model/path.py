"""A field of a record or of an event's value, named by a dotted path."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from millstream.errors import InputError


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
                raise InputError(f"{where}: the {holder} has no field {path!r}") from None
        return value

    return pick


def key_text(key: Any, where: str) -> str:
    """A field as a key: text as it is, a whole number as text; InputError for anything else."""
    if isinstance(key, str | int) and not isinstance(key, bool):
        return str(key)
    shown = repr(key)
    shown = shown if len(shown) <= 60 else shown[:57] + "..."
    raise InputError(
        f"{where}: key must be text or a whole number; got {type(key).__name__} {shown}"
    )
