"""A job's map without code: it names the fields that are the key and the value (iMR, 2.1).

    ms.windows.FieldMap(key="level", value="bytes", where={"status": {"at_least": 500}})

It is frozen data and a function of the record, so a job that uses it can be written in TOML and
sent to agents (`definition`). A record that does not match `where` yields nothing. A record without
the field of the key or of the value fails, as it does in a map that reads `record["level"]`, and
becomes a dead letter. `where = { level = { present = true } }` skips such records instead.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from millstream.codec import encode_value
from millstream.errors import CodecError, DefinitionError, InputError
from millstream.model.conditions import Conditions, conditions
from millstream.model.path import is_path, key_text, picker, shortened
from millstream.nearest import did_you_mean
from millstream.windows.logs import Logs

_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WHOLE = re.compile(r"[+-]?[0-9]{1,300}")
_COMPARING = ("is", "at_least", "above", "at_most", "below")


@dataclass(frozen=True, kw_only=True)
class FieldMap:
    """A map that yields a record's key and value, or a pair for each word of a text."""

    key: str | Sequence[str] | Mapping[str, str] | None = field(default=None, hash=False)
    """A field or a dotted path; several of them, joined by `separator`; or a constant, as in
    `{"constant": "all"}`."""
    split: str | None = None
    """Replaces `key`: a text field. Each of its words is a key."""
    value: str | Mapping[str, str] | None = field(default=None, hash=False)
    """A field that holds a number, or text that is one; or a field to take unchanged, as in
    `{"field": "user"}`. None: the value is 1."""
    where: Mapping[str, Any] | None = field(default=None, hash=False)
    """Conditions that must all hold (`model.conditions`)."""
    numbers: Sequence[str] = ()
    """Fields whose text is converted to a number first, since `where` compares numbers only with
    numbers. Text that is not a number is left unchanged."""
    separator: str = "/"
    """Joins the fields of a key."""
    _keys: Callable[[Any], list[str]] = field(init=False, compare=False, repr=False)
    _value: Callable[[Any], Any] | None = field(init=False, compare=False, repr=False)
    _conditions: Conditions | None = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("key", "numbers"):
            value = getattr(self, name)
            if isinstance(value, list):
                object.__setattr__(self, name, tuple(value))
        if not isinstance(self.separator, str):
            raise DefinitionError(f"job: separator must be text; got {self.separator!r}")
        names = self.numbers
        if not isinstance(names, tuple) or not all(isinstance(n, str) and n for n in names):
            raise DefinitionError(
                f"job: numbers must be a list of fields, as in ['status', 'bytes']; got {names!r}"
            )
        object.__setattr__(self, "_keys", self._key_picker())
        object.__setattr__(self, "_value", self._value_picker())
        compiled = None if self.where is None else conditions(self.where, "job: where")
        try:
            encode_value(self.where)
        except CodecError as error:
            raise DefinitionError(f"job: where must travel to agents: {error}") from None
        object.__setattr__(self, "_conditions", compiled)

    def __call__(self, record: Any) -> list[tuple[str, Any]]:
        if self.numbers and isinstance(record, dict):
            record = {**record, **self._converted(record)}
        if self._conditions is not None and not self._conditions.hold(record):
            return []
        value = 1 if self._value is None else self._value(record)
        return [(key, value) for key in self._keys(record)]

    def check_logs(self, logs: Logs) -> None:
        """Raises DefinitionError if the map names a field that lines of text do not have, or
        compares such a field, which is text, with a number: that condition would never hold."""
        if logs.format != "text":
            return
        groups = ["line"] if logs.pattern is None else [*re.compile(logs.pattern).groupindex]
        source = "a line without a pattern" if logs.pattern is None else "the pattern's groups"
        for name, path in self._paths():
            if path not in groups:
                raise DefinitionError(
                    f"job: {name} must name one of {source}; got {path!r}; "
                    f"{did_you_mean(path, groups)}"
                )
        for condition in () if self._conditions is None else self._conditions.all:
            path, operand = ".".join(condition.steps), condition.operand
            if (
                condition.word in _COMPARING
                and not isinstance(operand, str)
                and path not in self.numbers
            ):
                raise DefinitionError(
                    f"job: where must compare {path!r} with text, since it comes from a line of "
                    f"text, or numbers must name it, as in numbers = [{path!r}]; got "
                    f"{condition.word} {operand!r}"
                )

    def _paths(self) -> Iterator[tuple[str, str]]:
        """Yields every field that the map names, with the option that names it."""
        if self.split is not None:
            yield "split", self.split
        elif isinstance(self.key, str | tuple):
            yield from (("key", path) for path in _several(self.key))
        if self.value is not None:
            yield "value", self.value if isinstance(self.value, str) else self.value["field"]
        yield from (("numbers", name) for name in self.numbers)
        if self._conditions is not None:
            yield from (("where", ".".join(condition.steps)) for condition in self._conditions.all)

    def _key_picker(self) -> Callable[[Any], list[str]]:
        if (self.key is None) == (self.split is None):
            raise DefinitionError(
                "job: key must name the field that is the key, as in key = 'level', or split the "
                f"text whose words are keys, one of the two; got key={self.key!r}, "
                f"split={self.split!r}"
            )
        if self.split is not None:
            if not is_path(self.split):
                raise DefinitionError(
                    f"job: split must be a field or a dotted path; got {self.split!r}"
                )
            return _words(self.split)
        if isinstance(self.key, Mapping):
            constant = self.key.get("constant")
            if {*self.key} != {"constant"} or not isinstance(constant, str):
                raise DefinitionError(
                    "job: key must be a field, a list of fields, or { constant = 'text' }; "
                    f"got {dict(self.key)!r}"
                )
            return lambda record: [constant]
        paths = _several(self.key)
        if not paths or not all(map(is_path, paths)):
            raise DefinitionError(
                "job: key must be a field or a dotted path, a list of them, or "
                f"{{ constant = 'text' }}; got {self.key!r}"
            )
        return _joined(paths, self.separator)

    def _value_picker(self) -> Callable[[Any], Any] | None:
        if self.value is None:
            return None
        unchanged = isinstance(self.value, Mapping) and {*self.value} == {"field"}
        path = self.value["field"] if unchanged else self.value  # type: ignore[index]
        if not isinstance(path, str) or not is_path(path):
            raise DefinitionError(
                "job: value must be a field or a dotted path of a number, or "
                f"{{ field = 'name' }} to take one as it is; got {self.value!r}"
            )
        pick = _field_picker(path, "job: value")
        return pick if unchanged else _number_at(path, pick)

    def _converted(self, record: Mapping[str, Any]) -> dict[str, Any]:
        texts = ((name, record.get(name)) for name in self.numbers)
        return {
            name: number
            for name, text in texts
            if isinstance(text, str) and (number := number_in(text)) is not None
        }


def number_in(text: str) -> int | float | None:
    """Returns the number that a text stands for. None if it is not a number.

    >>> number_in("512"), number_in("-0.5"), number_in("1e3"), number_in("-"), number_in("1_000")
    (512, -0.5, 1000.0, None, None)
    """
    if len(text) < 300 and text.isdigit() and text.isascii():
        return int(text)  # the usual case, without a pattern
    if _WHOLE.fullmatch(text):
        return int(text)
    if not _NUMBER.fullmatch(text):
        return None
    number = float(text)
    return number if isfinite(number) else None


def _number_at(path: str, pick: Callable[[Any], Any]) -> Callable[[Any], int | float]:
    def number(record: Any) -> int | float:
        value = pick(record)
        if type(value) is int or type(value) is float:
            return value
        parsed = number_in(value) if isinstance(value, str) else None
        if parsed is None:
            raise InputError(
                f"job: value: {path!r} must be a number, or text that is one; got "
                f"{shortened(value)}; to take it as it is, use "
                f"{{ field = {path!r} }}"
            )
        return parsed

    return number


def _several(key: Any) -> tuple[str, ...]:
    return (key,) if isinstance(key, str) else key if isinstance(key, tuple) else ()


def _joined(paths: tuple[str, ...], separator: str) -> Callable[[Any], list[str]]:
    def text_of(path: str) -> Callable[[Any], str]:
        pick = _field_picker(path, "job: key")

        def text(record: Any) -> str:
            key = pick(record)
            return key if type(key) is str else key_text(key, "job")

        return text

    first, *rest = map(text_of, paths)
    if not rest:
        return lambda record: [first(record)]
    return lambda record: [separator.join([first(record), *(text(record) for text in rest)])]


def _field_picker(path: str, where: str) -> Callable[[Any], Any]:
    """Returns a function that picks a field. A field that is not nested is read directly, without a
    walk."""
    walk = picker(path, where, "record")
    if "." in path:
        return walk

    def pick(record: Any) -> Any:
        try:
            return record[path]
        except (KeyError, TypeError):
            return walk(record)  # fails too, with a better message

    return pick


def _words(path: str) -> Callable[[Any], list[str]]:
    pick = _field_picker(path, "job: split")

    def keys(record: Any) -> list[str]:
        text = pick(record)
        if not isinstance(text, str):
            raise InputError(
                f"job: split: {path!r} must be text; got {type(text).__name__} {text!r:.60}"
            )
        return text.split()

    return keys
