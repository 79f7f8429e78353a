"""The keyed attribute of an event, which selects the element for it (S4, section II.B).

An element names the streams that it reads and, for each, the attribute whose value is its key: a
field, a dotted path, several of them, or a function of the event. Two names are not fields: `"*"`
means no key, so that one element takes all events; `"@key"` is the event's own key.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from millstream.errors import DefinitionError
from millstream.model.event import INHERITED, Emit, Event
from millstream.model.function import takes
from millstream.model.path import is_path, key_text, picker

ALL = "*"
OWN = "@key"
Attribute = str | tuple[str, ...] | Callable[[Event], Any]
Keys = Mapping[str, str | Sequence[str] | Callable[[Event], Any]] | Sequence[str] | str
"""The forms of `keys=`: attributes by stream, or only streams, whose events keep their key."""


def attributes_of(keys: object, where: str) -> dict[str, Attribute]:
    """Returns the keyed attribute of each stream. Raises DefinitionError if `keys` is not valid."""
    if isinstance(keys, str):
        keys = [keys]
    if isinstance(keys, Sequence):
        keys = dict.fromkeys(keys, OWN)
    if not isinstance(keys, Mapping) or not keys:
        raise DefinitionError(
            f"{where}: keys must name the key's field for each stream, as in "
            f"keys={{'clicks': 'user'}}; '*' for no key, '@key' for the key that the event has; "
            f"got {keys!r}"
        )
    return {stream: _attribute(attribute, stream, where) for stream, attribute in keys.items()}


def _attribute(attribute: object, stream: object, where: str) -> Attribute:
    if (
        isinstance(attribute, str)
        and isinstance(stream, str)
        and (attribute in (ALL, OWN) or _is_path(attribute))
    ):
        return attribute
    if callable(attribute):
        return attribute
    if isinstance(attribute, list | tuple) and attribute and all(map(_is_path, attribute)):
        return tuple(attribute)
    raise DefinitionError(
        f"{where}: keys must name for stream {stream!r} a field, a dotted path, a list of them, "
        f"or just '*' or '@key'; got {attribute!r}"
    )


def _is_path(attribute: object) -> bool:
    """True if it is a field or a dotted path, and neither `*` nor `@key`."""
    return attribute not in (ALL, OWN) and is_path(attribute)


def key_of(attribute: Attribute, where: str) -> Callable[[Event], str]:
    """Returns a function that computes the key of an event. It raises InputError if there is none.

    Several fields form one key: `a|b`, with `|` and `\\` in a field escaped by `\\`.
    """
    if attribute == OWN:
        return lambda event: event.key
    if attribute == ALL:
        return lambda event: ""
    if callable(attribute):
        return lambda event: key_text(attribute(event), where)
    if isinstance(attribute, str):
        pick = picker(attribute, where)
        return lambda event: key_text(pick(event.value), where)
    parts = [picker(path, where) for path in attribute]

    def joined(event: Event) -> str:
        return "|".join(_escaped(key_text(part(event.value), where)) for part in parts)

    return joined


def _escaped(part: str) -> str:
    return part.replace("\\", "\\\\").replace("|", "\\|")


def split_key(key: str) -> list[str]:
    """Returns the fields that form a key.

    >>> split_key("shoes|a\\\\|b")
    ['shoes', 'a|b']
    """
    parts, escaped = [""], False
    for letter in key:
        if escaped or letter not in "\\|":
            parts[-1] += letter
            escaped = False
        elif letter == "|":
            parts.append("")
        else:
            escaped = True
    return parts


@dataclass(frozen=True)
class Keying:
    """The map that sets the key of events to their element's key. Each input stream has an output
    stream of its own."""

    element: str
    attributes: tuple[tuple[str, Attribute], ...]
    _keys: dict[str, tuple[str | None, Callable[[Event], str]]] = field(
        init=False, compare=False, repr=False
    )
    __signature__ = takes("event")

    def __post_init__(self) -> None:
        alone = len(self.attributes) == 1  # the engine has a fast path for a single stream
        keys = {
            stream: (
                None if alone else keyed_stream(self.element, stream),
                key_of(attribute, f"element {self.element!r}, stream {stream!r}"),
            )
            for stream, attribute in self.attributes
        }
        object.__setattr__(self, "_keys", keys)

    @property
    def __modules__(self) -> set[str]:
        return modules_of(self.attributes)

    def __call__(self, event: Event) -> list[Emit]:
        stream, key = self._keys[event.stream]
        return [Emit(stream, key(event), INHERITED, None)]


def modules_of(attributes: tuple[tuple[str, Attribute], ...]) -> set[str]:
    """Returns the modules of the attributes that are functions."""
    return {
        attribute.__module__
        for _, attribute in attributes
        if callable(attribute) and hasattr(attribute, "__module__")
    }


def keyed_stream(element: str, stream: str) -> str:
    """Returns the stream that carries a stream's events to an element, under the element's key."""
    return f"{element}.{stream}"
