"""Forward: passes events on to other streams, under another key, with other fields.

The fields are changed in this order: `select` keeps only the fields that it names, `rename` moves
fields to a new name at the top level of the value, `add` sets constants. `select` and `rename` skip
fields that do not exist.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from millstream.codec import encode_value
from millstream.elements.element import Configured, Element
from millstream.elements.element_base import configuration
from millstream.errors import CodecError, DefinitionError, InputError
from millstream.model.event import Emit, Event
from millstream.model.path import is_path

_MISSING = object()


@dataclass
class Forward(Element):
    """Passes every event on to all streams that it publishes, under the key that `keys` defines."""

    select: Configured[list[str] | None] = None
    rename: Configured[dict[str, str]] = field(default_factory=dict)
    add: Configured[dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        configuration(self)
        for name, paths in (("select", self.select or ()), ("rename", self.rename.values())):
            for path in paths:
                if not is_path(path):
                    raise DefinitionError(
                        f"element Forward: {name} must name fields or dotted paths; got {path!r}"
                    )
        for name, fields in (("rename", self.rename), ("add", self.add)):
            for new in fields:
                if not new or "." in new:
                    raise DefinitionError(
                        f"element Forward: {name} must have names of fields without a dot on the "
                        f"left; got {new!r}"
                    )
        try:
            encode_value(self.add)
        except CodecError as error:
            raise DefinitionError(
                f"element Forward: add must hold constants that JSON can carry; {error}"
            ) from None
        self._changes = self.select is not None or bool(self.rename or self.add)

    def process_event(self, event: Event) -> Iterator[Emit]:
        if self._changes:
            yield from self.to_all(self._changed(event.value))
        else:
            yield from self.to_all()

    def _changed(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise InputError(
                "element Forward: the value must be an object, since select, rename or add is "
                f"configured; got {type(value).__name__}"
            )
        kept = dict(value)
        if self.select is not None:
            kept = {}
            for path in self.select:
                content = _at(value, path)
                if content is not _MISSING:
                    _put(kept, path, content)
        moved = {new: _at(value, old) for new, old in self.rename.items()}
        for old in self.rename.values():
            kept = _without(kept, old.split("."))
        kept.update((new, content) for new, content in moved.items() if content is not _MISSING)
        return kept | self.add


def _at(value: Any, path: str) -> Any:
    for step in path.split("."):
        if not isinstance(value, dict) or step not in value:
            return _MISSING
        value = value[step]
    return value


def _put(kept: dict[str, Any], path: str, content: Any) -> None:
    """Sets a field at its path. The objects on the path were created here, or are selected as a
    whole."""
    *above, last = path.split(".")
    for step in above:
        kept = kept.setdefault(step, {})
    kept[last] = content


def _without(value: dict[str, Any], steps: list[str]) -> dict[str, Any]:
    """Returns the value without a field. Copies what it changes: the input stays as it is."""
    first, *rest = steps
    if first not in value:
        return value
    if not rest:
        return {name: kept for name, kept in value.items() if name != first}
    inner = value[first]
    return value | {first: _without(inner, rest)} if isinstance(inner, dict) else value
