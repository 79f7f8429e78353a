"""Shared by the tables of an application's TOML file: loads the objects that they name, and gives
errors their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from millstream.algebra import BUILT_IN
from millstream.elements.standard.aggregates import algebra_of
from millstream.errors import DefinitionError
from millstream.modules import import_object
from millstream.nearest import did_you_mean
from millstream.toml import Section, shown


def field_at(section: Section, key: str) -> Any:
    """Returns a field or dotted path, or the function of `{ function = "module:name" }`."""
    value = section.get(key, str, dict)
    if not isinstance(value, dict):
        return value
    inner = section.document.section(*section.path, key)
    inner.only("function")
    return object_at(inner, "function", inner.need("function", str))


def object_at(section: Section, key: str, reference: str) -> Any:
    try:
        return import_object(reference, section.document.directory)
    except DefinitionError as error:
        if error.__cause__ is not None:
            raise  # the user's module failed: its own line is the place to look
        raise section.error(key, f"{key!r} in {shown(section.path)}: {error}") from None


def algebra_at(section: Section, key: str = "algebra") -> Any:
    """Returns the algebra that a key names: a name of the library, a table with `name` and its
    arguments, or `module:object`."""
    value = section.get(key, str, dict)
    options = dict(value) if isinstance(value, dict) else {"name": value}
    name = options.pop("name", None)
    if isinstance(name, str) and ":" in name and not options:
        algebra = object_at(section, key, name)
        return algebra() if callable(algebra) else algebra
    if not isinstance(name, str) or name not in BUILT_IN:
        raise section.error(
            key,
            f"{key!r} in {shown(section.path)} must name one of {', '.join(BUILT_IN)}, or be "
            f"'module:object'; got {name!r}"
            + (f"; {did_you_mean(name, BUILT_IN)}" if isinstance(name, str) else ""),
        )
    return algebra_of(name, options, f"{section.where(key)} must have")


@contextmanager
def at_line_of(section: Section) -> Iterator[None]:
    """Give an error of the model the line of the key it is about, or of its table."""
    try:
        yield
    except DefinitionError as error:
        if str(error).startswith(f"{section.document.name}:") or error.__cause__ is not None:
            raise  # it names its line already
        about = re.search(r": (\w+) must ", str(error))
        path = section.path if about is None else (*section.path, about[1])
        message = str(error).replace(" or a timedelta", "")  # which TOML cannot express
        raise section.document.error(path, message) from None
