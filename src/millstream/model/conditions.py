"""Conditions on the fields of an event or a record, as a table that a file can hold. No expression
is evaluated.

    where = { country = "US", price = { at_least = 10, below = 100 }, "user.bot" = false }

All must hold. A name is a field or a dotted path. What is said of it is a constant, which it must
be equal to, or a table of words (see `WORDS`). Nothing fails on an event: a number is compared with
numbers only and text with text only, and a comparison of different types does not hold. A field
that is null counts as one that is not there, since formats with columns have no other way to leave
one out; of such a field only `present = false`, `is_not` and `none_of` hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from millstream.errors import DefinitionError
from millstream.nearest import did_you_mean

SCALAR = "text, a number, true or false"


def _same(found: Any, constant: Any) -> bool:
    """Equal, where true is not 1: JSON tells them apart."""
    return isinstance(found, bool) == isinstance(constant, bool) and bool(found == constant)


def _ordered(found: Any, limit: Any) -> bool:
    """Whether two can be compared: two numbers or two texts."""
    if isinstance(limit, str):
        return isinstance(found, str)
    return isinstance(found, int | float) and not isinstance(found, bool)


def _among(found: Any, constants: Any) -> bool:
    return any(_same(found, one) for one in constants)


def _contains(found: Any, part: Any) -> bool:
    if isinstance(found, list):
        return _among(part, found)
    return isinstance(found, str) and isinstance(part, str) and part in found


WORDS: dict[str, Callable[[Any, Any], bool]] = {
    "is": _same,
    "is_not": lambda found, constant: not _same(found, constant),
    "at_least": lambda found, limit: _ordered(found, limit) and found >= limit,
    "above": lambda found, limit: _ordered(found, limit) and found > limit,
    "at_most": lambda found, limit: _ordered(found, limit) and found <= limit,
    "below": lambda found, limit: _ordered(found, limit) and found < limit,
    "one_of": _among,
    "none_of": lambda found, constants: not _among(found, constants),
    "matches": lambda found, pattern: isinstance(found, str) and bool(pattern.search(found)),
    "contains": _contains,
    "present": lambda found, wanted: (found is not None) == wanted,
}
"""What can be said of a field, and the test: of what was found (None: not there) and the operand.

`matches` looks for a regular expression anywhere in a text; `contains` for a part of a text, or for
an element of a list.
"""


@dataclass(frozen=True, slots=True)
class Condition:
    """One word about one field."""

    steps: tuple[str, ...]
    word: str
    operand: Any

    def holds(self, value: Any) -> bool:
        """Whether it holds for an event's value."""
        found = value
        for step in self.steps:
            found = found.get(step) if isinstance(found, dict) else None
        return WORDS[self.word](found, self.operand)


@dataclass(frozen=True, slots=True)
class Conditions:
    """Conditions that must all hold."""

    all: tuple[Condition, ...]

    def hold(self, value: Any) -> bool:
        """Whether all hold for an event's value."""
        return all(condition.holds(value) for condition in self.all)


def conditions(given: object, where: str) -> Conditions:
    """The conditions that a table means; `where` begins the DefinitionError if it means none.

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
                f"{where} must say of {path!r} a constant ({SCALAR}) or a table of words such as "
                f"{{ one_of = [...] }}; got {type(said).__name__} {said!r}"
            )
        return [("is", said)]
    if not said:
        raise DefinitionError(f"{where} must say something of {path!r}; got an empty table")
    return [(word, _operand(path, word, operand, where)) for word, operand in said.items()]


def _operand(path: str, word: str, operand: Any, where: str) -> Any:
    if word not in WORDS:
        raise DefinitionError(
            f"{where} must say of {path!r} what there is a word for (or name a field within it, in "
            f'quotes: "{path}.{word}"); got {word!r}; {did_you_mean(word, WORDS)}'
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
