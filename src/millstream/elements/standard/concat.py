"""Concat: builds one field, or the key, from several fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from millstream.codec import encode_value
from millstream.elements.element import Configured, Element
from millstream.elements.element_base import configuration
from millstream.elements.event_keys import OWN
from millstream.errors import DefinitionError, InputError
from millstream.model.event import Emit, Event
from millstream.model.path import is_path, picker, shortened

_PART = re.compile(r"\{\{|\}\}|\{([^{}]*)\}|[{}]")


@dataclass
class Concat(Element):
    """Adds a field `to`, built from other fields, and passes the event on. With `to="@key"` it sets
    the key instead.

    The text comes from `template`, which has fields in braces, or from the fields in `of`, joined
    by `separator`.
    """

    to: Configured[str]
    template: Configured[str | None] = None
    of: Configured[list[str] | None] = None
    separator: Configured[str] = " "

    def __post_init__(self) -> None:
        configuration(self)
        if self.to != OWN and ("." in self.to or not self.to):
            raise DefinitionError(
                f"element Concat: to must be the name of a field, without a dot, or '{OWN}' for "
                f"the key; got {self.to!r}"
            )
        if (self.template is None) == (self.of is None):
            raise DefinitionError(
                "element Concat: template must be given, as in '{host}:{port}', or else of, a list "
                "of fields"
            )
        self._parts = _parts(self.template) if self.template is not None else self._joined()

    def _joined(self) -> list[str | Callable[[Any], str]]:
        parts: list[str | Callable[[Any], str]] = []
        if not self.of:
            raise DefinitionError("element Concat: of must name at least one field; got none")
        for path in self.of:
            if not is_path(path):
                raise DefinitionError(
                    f"element Concat: of must name fields or dotted paths; got {path!r}"
                )
            parts += [self.separator, _text_of(path)] if parts else [_text_of(path)]
        return parts

    def process_event(self, event: Event) -> Iterator[Emit]:
        value = event.value
        text = "".join(part if isinstance(part, str) else part(value) for part in self._parts)
        if self.to == OWN:
            yield from self.to_all(key=text)
            return
        if not isinstance(value, dict):
            raise InputError(
                f"element Concat: the value must be an object; got {type(value).__name__}"
            )
        yield from self.to_all({**value, self.to: text})


def _parts(template: str) -> list[str | Callable[[Any], str]]:
    """Parses a template into its texts and the fields between them."""
    parts: list[str | Callable[[Any], str]] = []
    end = 0
    for match in _PART.finditer(template):
        parts.append(template[end : match.start()])
        end = match.end()
        if match[0] in ("{{", "}}"):
            parts.append(match[0][0])
            continue
        path = match[1]
        if path is None or not is_path(path):
            raise DefinitionError(
                "element Concat: template must have fields or dotted paths in braces, as in "
                f"'{{host}}:{{port}}', and {{{{ for a brace; got {template!r}"
            )
        parts.append(_text_of(path))
    return [*parts, template[end:]]


def _text_of(path: str) -> Callable[[Any], str]:
    """Returns a function that formats a field of a value as text. Numbers, true and false are
    formatted as in JSON."""
    pick = picker(path, "element Concat")

    def text_of(value: Any) -> str:
        content = pick(value)
        if isinstance(content, str):
            return content
        if isinstance(content, int | float):
            return encode_value(content).decode()
        raise InputError(
            f"element Concat: field {path!r} must be text, a number, true or false; got "
            f"{type(content).__name__} {shortened(content)}"
        )

    return text_of
