"""Extract: takes fields out of a text with a regular expression."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from millstream.elements.element import Configured, Element
from millstream.elements.element_base import configuration
from millstream.errors import DefinitionError, InputError
from millstream.model.event import Emit, Event
from millstream.model.line_records import check_pattern
from millstream.model.path import is_path, picker

_INT, _FLOAT = re.compile(r"[+-]?[0-9]+"), re.compile(r"[+-]?[0-9]*\.?[0-9]+([eE][+-]?[0-9]+)?")
_KINDS: dict[str, tuple[re.Pattern[str], Callable[[str], Any]]] = {
    "int": (_INT, int),
    "float": (_FLOAT, float),
}
"""The form of the text of each kind of number, and its conversion."""


@dataclass
class Extract(Element):
    """Passes events on with the named groups of `pattern` as fields of their value.

    The pattern is searched for anywhere in the text of the field `of`. `types` names the groups to
    convert to numbers. An event whose text does not match is dropped or, with `unmatched = "pass"`,
    passed on unchanged.
    """

    pattern: Configured[str]
    of: Configured[str] = "line"
    unmatched: Configured[Literal["drop", "pass"]] = "drop"
    types: Configured[dict[str, Literal["int", "float"]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        configuration(self)
        if not is_path(self.of):
            raise DefinitionError(
                f"element Extract: of must name a field or a dotted path; got {self.of!r}"
            )
        groups = check_pattern(self.pattern, "element Extract")
        for name in self.types:
            if name not in groups:
                raise DefinitionError(
                    f"element Extract: types must name groups of the pattern, "
                    f"{', '.join(sorted(groups))}; got {name!r}"
                )
        self._search = re.compile(self.pattern).search
        self._text = picker(self.of, "element Extract")

    def process_event(self, event: Event) -> Iterator[Emit]:
        text = self._text(event.value)
        if text is not None and not isinstance(text, str):
            raise InputError(
                f"element Extract: field {self.of!r} must be text; got {type(text).__name__} "
                f"{text!r}"
            )
        match = None if text is None else self._search(text)
        if match is not None:
            yield from self.to_all({**event.value, **self._numbers(match.groupdict())})
        elif self.unmatched == "pass":
            yield from self.to_all()

    def _numbers(self, groups: dict[str, Any]) -> dict[str, Any]:
        for name, kind in self.types.items():
            text, (form, number) = groups[name], _KINDS[kind]
            if text is None:
                continue
            if form.fullmatch(text) is None:
                raise InputError(f"element Extract: {name} must be {kind}; got {text!r}")
            groups[name] = number(text)
        return groups
