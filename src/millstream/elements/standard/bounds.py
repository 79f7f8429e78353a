"""Parses durations in the configuration of the standard elements."""

from __future__ import annotations

from typing import Any

from millstream.errors import DefinitionError
from millstream.model.duration import microseconds


def bound(element: str, name: str, given: Any) -> int:
    """Returns a configured duration in microseconds. Raises DefinitionError, which names the
    element, if it is not a duration over 0."""
    where = f"element {element}: {name}"
    if not isinstance(given, str):
        raise DefinitionError(
            f'{where} must be a duration in quotes, such as "30m" or "1h30m"; got {given!r}'
        )
    length = microseconds(given, where)
    if length == 0:
        raise DefinitionError(f"{where} must be a duration over 0; got {given!r}")
    return length


def check_ttl(element: str, name: str, length: int, ttl: Any) -> None:
    """Raises DefinitionError if the ttl would delete what the element still needs."""
    if ttl is not None and microseconds(ttl, f"element {element}: ttl") < length:
        raise DefinitionError(
            f"element {element}: ttl must be as long as {name} or longer, or the element forgets "
            f"too early; got {ttl!r}; old entries are dropped even without a ttl"
        )
