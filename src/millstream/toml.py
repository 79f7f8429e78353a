"""Reads TOML files such that errors name the line.

The standard library's tomllib gives values without positions. `read` parses the text with it and
then scans the text a second time, only for the line on which each table and key is first mentioned.
The scan can be simple, because the text is known to be valid by then. The order of the scan is also
the order of declaration, across tables of different kinds.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from millstream.errors import DefinitionError
from millstream.model.place import shown_path
from millstream.nearest import did_you_mean

KeyPath = tuple[str, ...]
_POSITION = re.compile(r" ?\(at (?:line (\d+), column (\d+)|end of document)\)$")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BLANK = re.compile(r"(?:[\s,]|#[^\n]*)*")
_STRING = re.compile(
    r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}|"(?:[^"\\]|\\.)*"|\'[^\']*\'', re.DOTALL
)
_SCALAR = re.compile(r"[^,\]}#\n]*")
TYPES = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    list: "a list",
    dict: "a table",
}


@dataclass(frozen=True, slots=True)
class Document:
    """A parsed file: its values, and the line of each table and key in the order of mention."""

    name: str
    directory: Path
    values: dict[str, Any]
    lines: dict[KeyPath, int]

    def error(self, path: KeyPath, message: str) -> DefinitionError:
        """Returns an error that names the line of `path`, or of the table that should hold it."""
        while path and path not in self.lines:
            path = path[:-1]
        line = f":{self.lines[path]}" if path else ""
        return DefinitionError(f"{self.name}{line}: {message}")

    def section(self, *path: str) -> Section:
        """Returns the table at `path`; empty if the file has none."""
        values: Any = self.values
        for depth, step in enumerate(path, start=1):
            values = values.get(step, {})
            if not isinstance(values, dict):
                raise self.error(
                    path[:depth],
                    f"{shown(path[:depth])} must be a table; got {_kind(values)}",
                )
        return Section(self, path, values)

    def sections(self, *parents: str) -> Iterator[Section]:
        """Yields the tables directly inside the `parents`, in the order of the file."""
        for path in self.lines:
            if len(path) == 2 and path[0] in parents:
                yield self.section(*path)


@dataclass(frozen=True, slots=True)
class Section:
    """One table of the file: typed access, with errors that name the line."""

    document: Document
    path: KeyPath
    values: dict[str, Any]

    @property
    def name(self) -> str:
        return self.path[-1]

    def error(self, key: str, message: str) -> DefinitionError:
        return self.document.error((*self.path, key), message)

    def where(self, key: str) -> str:
        """Returns `file:line: 'key' in [table]`, to begin the message of an error."""
        return str(self.error(key, f"{key!r} in {shown(self.path)}"))

    def only(self, *keys: str) -> None:
        """DefinitionError if the table has any other key."""
        for key in self.values:
            if key not in keys:
                kind = "table" if isinstance(self.values[key], dict) else "key"
                inside = f" in {shown(self.path)}" if self.path else ""
                named = shown((*self.path, key)) if kind == "table" else repr(key)
                hint = did_you_mean(key, keys)
                raise self.error(key, f"unknown {kind} {named}{inside}; {hint}")

    def get(self, key: str, *kinds: type) -> Any:
        """Returns the value, which must be of one of the kinds; None if it is absent."""
        value = self.values.get(key)
        if value is not None and type(value) not in kinds:
            wanted = " or ".join(TYPES[kind] for kind in kinds)
            raise self.error(
                key, f"{key!r} in {shown(self.path)} must be {wanted}; got {_kind(value)}"
            )
        return value

    def need(self, key: str, *kinds: type) -> Any:
        """Returns the value, which must be of one of the kinds; DefinitionError if it is absent."""
        if key not in self.values:
            raise self.error(key, f"{shown(self.path)} needs {key!r}")
        return self.get(key, *kinds)

    def names(self, key: str) -> tuple[str, ...]:
        """Returns the names in a text or a list of texts; empty if the key is absent."""
        value = self.get(key, str, list)
        names = [value] if isinstance(value, str) else value or []
        for name in names:
            if not isinstance(name, str):
                raise self.error(
                    key, f"{key!r} in {shown(self.path)} must hold texts; got {_kind(name)}"
                )
        return tuple(names)


def read(path: Path) -> Document:
    """Parses a TOML file; DefinitionError with the line if it is not valid TOML."""
    name = shown_path(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        raise DefinitionError(f"{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise DefinitionError(f"{name}:{line}: a TOML file must be UTF-8 text") from None
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        position = _POSITION.search(str(error))
        line = int(position[1]) if position and position[1] else text.rstrip().count("\n") + 1
        column = f" (column {position[2]})" if position and position[2] else ""
        message = _POSITION.sub("", str(error))
        raise DefinitionError(f"{name}:{line}: not valid TOML: {message}{column}") from None
    return Document(name, path.resolve().parent, values, _Scanner(text).lines())


def shown(path: KeyPath) -> str:
    """Returns a table's name as a file writes it."""
    keys = (step if _BARE_KEY.fullmatch(step) else f'"{step}"' for step in path)
    return f"[{'.'.join(keys)}]"


def _kind(value: object) -> str:
    kind = TYPES.get(type(value), type(value).__name__)
    return kind if isinstance(value, dict | list) else f"{kind} {value!r}"


class _Scanner:
    """Finds the line of every table and key of a valid TOML text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._lines: dict[KeyPath, int] = {}

    def lines(self) -> dict[KeyPath, int]:
        table: KeyPath = ()
        while self._skip():
            if self._text[self._at] == "[":
                while self._text[self._at] == "[":
                    self._at += 1
                table = self._key(())
                while self._text[self._at : self._at + 1] == "]":
                    self._at += 1
            else:
                self._pair(table)
        return self._lines

    def _skip(self) -> bool:
        """Skips blanks, commas and comments; False at the end of the text."""
        blank = _BLANK.match(self._text, self._at)
        self._at = blank.end() if blank else self._at
        return self._at < len(self._text)

    def _pair(self, table: KeyPath) -> None:
        path = self._key(table)
        self._at += 1  # the equals sign
        self._value(path)

    def _key(self, table: KeyPath) -> KeyPath:
        """Reads a dotted key and records the line of each step that is new."""
        path = table
        while True:
            self._skip()
            line = self._text.count("\n", 0, self._at) + 1
            match = _STRING.match(self._text, self._at) or _BARE_KEY.match(self._text, self._at)
            assert match is not None, "the text is valid TOML"
            raw = match[0]
            path = (*path, tomllib.loads(f"k = {raw}")["k"] if raw[0] in "\"'" else raw)
            self._lines.setdefault(path, line)
            self._at = match.end()
            self._skip()
            if self._text[self._at] != ".":
                return path
            self._at += 1

    def _value(self, path: KeyPath) -> None:
        self._skip()
        opening = self._text[self._at]
        if opening in "[{":
            self._at += 1
            while self._skip() and self._text[self._at] not in "]}":
                if opening == "{":
                    self._pair(path)
                else:
                    self._value(path)
            self._at += 1
        else:
            match = _STRING.match(self._text, self._at) or _SCALAR.match(self._text, self._at)
            assert match is not None, "_SCALAR matches even the empty text"
            self._at = match.end()
