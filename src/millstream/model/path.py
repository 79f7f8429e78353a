"""A field of a record or of an event's value, named by a dotted path."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from typing import Any

from millstream.errors import InputError
from millstream.model.place import FAILURES, message_of
from millstream.nearest import nearest

LONGEST_KEY = 4_096
"""The most bytes of a key in UTF-8: percent-encoded, it still fits into a path."""
PLAIN_KEY = LONGEST_KEY // 4
"""A key with at most this many characters is short enough in any case."""
_KINDS = {
    str: "text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    list: "a list",
    type(None): "null",
}
_MOST = 50
"""The most fields searched for a similar name: each of many bad events would pay for the search."""


def is_path(path: object) -> bool:
    """True if it is text that names a field, possibly a nested one: no step of it is empty."""
    return isinstance(path, str) and "" not in path.split(".")


def picker(path: str, where: str, holder: str = "value") -> Callable[[Any], Any]:
    """Returns a function that picks the field; it raises InputError if the field is absent.

    `where` begins the message. `holder` is the message's word for the object with the field.
    """
    steps = path.split(".")

    def pick(record: Any) -> Any:
        value = record
        for step in steps:
            try:
                value = value[step]
            except (KeyError, TypeError):
                why = _why_not(record, steps)
                raise InputError(f"{where}: the {holder} has no field {path!r}{why}") from None
        return value

    return pick


def guarded(function: Callable[[Any], Any], where: str) -> Callable[[Any], Any]:
    """Returns a user's function of a record; InputError if it raises."""

    def pick(record: Any) -> Any:
        try:
            return function(record)
        except FAILURES as error:
            raise InputError(f"{where}: its function raised {message_of(error)}") from error

    return pick


def _why_not(record: Any, steps: list[str]) -> str:
    """Returns the end of the message: what is there instead of an object, or a similar field."""
    value, passed = record, list[str]()
    for step in steps:
        if not isinstance(value, dict):
            kind = _KINDS.get(type(value), type(value).__name__)
            return f": {repr('.'.join(passed)) if passed else 'it'} is {kind}, not an object"
        if step not in value:
            near = nearest(step, islice((name for name in value if isinstance(name, str)), _MOST))
            return "" if near is None else f"; did you mean {'.'.join([*passed, near])!r}?"
        value = value[step]
        passed.append(step)
    return ""


def is_long_key(key: str) -> bool:
    """True if a key has more than `LONGEST_KEY` bytes: no request could ask for its slate."""
    return len(key) > PLAIN_KEY and len(key.encode(errors="replace")) > LONGEST_KEY


def is_unicode(text: str) -> bool:
    """True if a text can be written as UTF-8: it has no half of a surrogate pair."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def plain_text(text: str) -> str:
    """Returns a text as a plain str: no encoder takes one of a subclass, such as NumPy's.

    >>> class Text(str): pass
    >>> type(plain_text(Text("a")))
    <class 'str'>
    """
    return str.__str__(text)


def key_text(key: Any, where: str) -> str:
    """Returns a field's value as a key: text or a whole number; InputError for anything else."""
    if isinstance(key, str):
        return plain_text(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return str(key)
    raise InputError(
        f"{where}: key must be text or a whole number; got {type(key).__name__} {shortened(key)}"
    )


def shortened(value: Any) -> str:
    """Returns a value as a message shows it: its repr, cut off after 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
