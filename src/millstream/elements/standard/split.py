"""Split: splits a text into its words (S4, Figure 1: the QuoteSplitterPE)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from millstream.elements.element import Configured, Element
from millstream.elements.element_base import configuration
from millstream.errors import DefinitionError, InputError
from millstream.model.event import Emit, Event
from millstream.model.path import is_path, picker


@dataclass
class Split(Element):
    """Emits `{"word": ..., "count": ...}` for each different word of a text, keyed by the word.

    A word is a match of `pattern`: by default letters and digits, with apostrophes inside. With
    `lower`, the text is converted to lower case first.
    """

    of: Configured[str] = "text"
    lower: Configured[bool] = True
    pattern: Configured[str] = r"\w+(?:['\u2019]\w+)*"

    def __post_init__(self) -> None:
        configuration(self)
        if not is_path(self.of):
            raise DefinitionError(
                f"element Split: of must name a field or a dotted path; got {self.of!r}"
            )
        try:
            self._words = re.compile(self.pattern)
        except re.error as error:
            raise DefinitionError(
                f"element Split: pattern must be a regular expression; got {self.pattern!r}: "
                f"{error}"
            ) from None
        self._text = picker(self.of, "element Split")

    def process_event(self, event: Event) -> Iterator[Emit]:
        text = self._text(event.value)
        if not isinstance(text, str):
            raise InputError(
                f"element Split: field {self.of!r} must be text; got {type(text).__name__} {text!r}"
            )
        matches = self._words.finditer(text.lower() if self.lower else text)
        words = Counter(match[0] for match in matches if match[0])
        for word, count in words.items():
            yield from self.to_all({"word": word, "count": count}, key=word)
