"""The keyed attribute of an event: which element an event is for (S4, section II.B).

An element names the streams that it takes events from, and for each the attribute whose value is
its key: a field, a dotted path, several of them, or a function of the event. Two words are not
fields: `"*"` is no key at all, so that one element takes all events, and `"@key"` is the key that
the event has already.
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
"""What `keys=` takes: attributes by stream, or only streams, whose events keep their key."""


def attributes_of(keys: object, where: str) -> dict[str, Attribute]:
    """The keyed attribute of each stream; DefinitionError for what is neither."""
    if isinstance(keys, str):
        keys = [keys]
    if isinstance(keys, Sequence):
        keys = dict.fromkeys(keys, OWN)
    if not isinstance(keys, Mapping) or not keys:
        raise DefinitionError(
            f"{where}: keys must say by stream which field is the key, as in "
            f"keys={{'clicks': 'user'}}; '*' for no key, '@key' for the key that the event has; "
            f"got {keys!r}"
        )
    return {stream: _attribute(of, stream, where) for stream, of in keys.items()}


def _attribute(of: object, stream: object, where: str) -> Attribute:
    if isinstance(of, str) and isinstance(stream, str) and (of in (ALL, OWN) or _is_path(of)):
        return of
    if callable(of):
        return of
    if isinstance(of, list | tuple) and of and all(map(_is_path, of)):
        return tuple(of)
    raise DefinitionError(
        f"{where}: keys must name for stream {stream!r} a field, a dotted path, a list of them, "
        f"or alone '*' or '@key'; got {of!r}"
    )


def _is_path(of: object) -> bool:
    """Whether it is a field or a dotted path, and not a word that means another key."""
    return of not in (ALL, OWN) and is_path(of)


def key_of(attribute: Attribute, where: str) -> Callable[[Event], str]:
    """A function of an event that gives its key; InputError if the event has none.

    Several fields make one key: `a|b`, with `|` and `\\` in a field escaped by `\\`.
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
    parts = [picker(one, where) for one in attribute]

    def joined(event: Event) -> str:
        return "|".join(_escaped(key_text(part(event.value), where)) for part in parts)

    return joined


def _escaped(part: str) -> str:
    return part.replace("\\", "\\\\").replace("|", "\\|")


def split_key(key: str) -> list[str]:
    """The fields that a key was made of.

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
    """The map that gives events their element's key, each stream's onto a stream of its own."""

    element: str
    attributes: tuple[tuple[str, Attribute], ...]
    _keys: dict[str, tuple[str | None, Callable[[Event], str]]] = field(
        init=False, compare=False, repr=False
    )
    __signature__ = takes("event")

    def __post_init__(self) -> None:
        alone = len(self.attributes) == 1  # the engine has a short way for the only stream
        keys = {
            stream: (
                None if alone else keyed_stream(self.element, stream),
                key_of(of, f"element {self.element!r}, stream {stream!r}"),
            )
            for stream, of in self.attributes
        }
        object.__setattr__(self, "_keys", keys)

    @property
    def __modules__(self) -> set[str]:
        return modules_of(self.attributes)

    def __call__(self, event: Event) -> list[Emit]:
        stream, key = self._keys[event.stream]
        return [Emit(stream, key(event), INHERITED, None)]


def modules_of(attributes: tuple[tuple[str, Attribute], ...]) -> set[str]:
    """The modules of the attributes that are functions."""
    return {of.__module__ for _, of in attributes if callable(of) and hasattr(of, "__module__")}


def keyed_stream(element: str, stream: str) -> str:
    """The stream that carries a stream's events to an element, under the element's key."""
    return f"{element}.{stream}"
