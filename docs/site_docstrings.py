"""An extension of Griffe, which reads the docstrings for the site.

- Doctests stand in docstrings without a fence; in Markdown `>>>` would be a quotation. They become
  code blocks.
- Only what has a docstring is shown. The fields of a dataclass are in its signature; those of a
  `NamedTuple` and of a `Struct` are not, and are shown with or without a docstring.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)
_RECORDS = {"NamedTuple", "msgspec.Struct"}


class SiteDocstrings(griffe.Extension):
    """Changes the docstrings that Griffe has read for the site."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = _EXAMPLE.sub(r"```pycon\n\g<0>\n```", obj.docstring.value)

    def on_class_members(self, *, cls: griffe.Class, **_: Any) -> None:
        if _RECORDS.isdisjoint(map(str, cls.bases)):
            return
        for field in cls.attributes.values():
            field.docstring = field.docstring or griffe.Docstring("", parent=field)
