"""Conditions on the fields of an event or a record, written as a table that a file can hold. No
expression is evaluated.

    where = { country = "US", price = { at_least = 10, below = 100 }, "user.bot" = false }

All conditions must hold. A name is a field or a dotted path. Its value is a constant, which the
field must equal, or a table of words (see `WORDS`). No event makes a condition fail with an error:
a number is compared with numbers only and text with text only, and a comparison of different types
does not hold. A null field counts as absent, since formats with columns have no other way to leave
a field out; for an absent field only `present = false`, `is_not` and `none_of` hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.errors import DefinitionError
from millstream.nearest import did_you_mean

SCALAR = "text, a number, true or false"


def _same(value: Any, constant: Any) -> bool:
    """True if both are equal, where true is not 1: JSON tells them apart."""
    return isinstance(value, bool) == isinstance(constant, bool) and bool(value == constant)


def _ordered(value: Any, limit: Any) -> bool:
    """True if the two can be compared: two numbers or two texts."""
    if isinstance(limit, str):
        return isinstance(value, str)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _among(value: Any, constants: Any) -> bool:
    return any(_same(value, constant) for constant in constants)


def _contains(value: Any, part: Any) -> bool:
    if isinstance(value, list):
        return _among(part, value)
    return isinstance(value, str) and isinstance(part, str) and part in value


WORDS: dict[str, Callable[[Any, Any], bool]] = {
    "is": _same,
    "is_not": lambda value, constant: not _same(value, constant),
    "at_least": lambda value, limit: _ordered(value, limit) and value >= limit,
    "above": lambda value, limit: _ordered(value, limit) and value > limit,
    "at_most": lambda value, limit: _ordered(value, limit) and value <= limit,
    "below": lambda value, limit: _ordered(value, limit) and value < limit,
    "one_of": _among,
    "none_of": lambda value, constants: not _among(value, constants),
    "matches": lambda value, pattern: isinstance(value, str) and bool(pattern.search(value)),
    "contains": _contains,
    "present": lambda value, wanted: (value is not None) == wanted,
}
"""Each word with its test, which takes the field's value (None: absent) and the operand.

`matches` searches a text for a regular expression; `contains` searches for a part of a text, or for
an element of a list.
"""


@dataclass(frozen=True, slots=True)
class Condition:
    """One word about one field."""

    steps: tuple[str, ...]
    word: str
    operand: Any

    def holds(self, value: Any) -> bool:
        """True if the condition holds for an event's value."""
        field = value
        for step in self.steps:
            field = field.get(step) if isinstance(field, dict) else None
        return WORDS[self.word](field, self.operand)


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions that must all hold."""

    all: tuple[Condition, ...]

    def hold(self, value: Any) -> bool:
        """True if all conditions hold for an event's value."""
        return all(condition.holds(value) for condition in self.all)


def conditions(given: object, where: str) -> Conditions:
    """Parses a table of conditions; if it is invalid, `where` begins the DefinitionError.

    >>> heavy = conditions({"kg": {"at_least": 10}}, "element X: where")
    >>> heavy.hold({"kg": 12}), heavy.hold({"kg": "12"}), heavy.hold({})
    (True, False, False)
    """
    if not isinstance(given, dict) or not given:
        raise DefinitionError(
            f"{where} must be a table of fields and what holds for them, as in "
            f'{{ country = "US", price = {{ at_least = 10 }} }}; got {given!r}'
        )
    return Conditions(
        tuple(
            Condition(_steps(path, where), word, operand)
            for path, said in given.items()
            for word, operand in _said(path, said, where)
        )
    )


def _steps(path: object, where: str) -> tuple[str, ...]:
    steps = path.split(".") if isinstance(path, str) else [""]
    if "" in steps:
        raise DefinitionError(f"{where} must name fields or dotted paths; got {path!r}")
    return tuple(steps)


def _said(path: str, said: object, where: str) -> list[tuple[str, Any]]:
    if not isinstance(said, dict):
        if not _is_scalar(said):
            raise DefinitionError(
                f"{where} must give {path!r} a constant ({SCALAR}) or a table of words such as "
                f"{{ one_of = [...] }}; got {type(said).__name__} {said!r}"
            )
        return [("is", said)]
    if not said:
        raise DefinitionError(f"{where} must give {path!r} a condition; got an empty table")
    return [(word, _operand(path, word, operand, where)) for word, operand in said.items()]


def _operand(path: str, word: str, operand: Any, where: str) -> Any:
    if word not in WORDS:
        raise DefinitionError(
            f"{where} must use known words for {path!r} (or name a field within it, in quotes: "
            f'"{path}.{word}"); got {word!r}; {did_you_mean(word, WORDS)}'
        )
    if word == "matches":
        try:
            return re.compile(operand)
        except (re.error, TypeError) as error:
            raise DefinitionError(
                f"{where} must give matches of {path!r} a regular expression; got {operand!r}: "
                f"{error}"
            ) from None
    if word == "present":
        right, must = isinstance(operand, bool), "true or false"
    elif word in ("one_of", "none_of"):
        right = isinstance(operand, list) and bool(operand) and all(map(_is_scalar, operand))
        must = f"a list of constants ({SCALAR})"
    elif word in ("at_least", "above", "at_most", "below"):
        right = _is_scalar(operand) and not isinstance(operand, bool)
        must = "a number or text"
    else:
        right, must = _is_scalar(operand), SCALAR
    if not right:
        raise DefinitionError(
            f"{where} must give {word} of {path!r} {must}; got {type(operand).__name__} {operand!r}"
        )
    return operand


def _is_scalar(value: object) -> bool:
    return isinstance(value, str | int | float)
