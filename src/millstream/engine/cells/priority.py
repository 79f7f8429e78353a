"""The importance of slates: turns a developer's `priority` into sortable bytes.

A priority function that raises, or does not return a finite number, never stops the application.
Its slate counts as the least important, so that it does not displace a slate that has a priority.
Among such slates the time of the last update decides, as it does where there is no priority at all.
They are counted, and the run warns once.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import partial
from hashlib import blake2b
from math import isfinite
from numbers import Real
from types import CodeType
from typing import Any

from millstream.codec import decode_value, encode_value
from millstream.errors import FunctionError
from millstream.model.function import Update
from millstream.model.place import FAILURES, described
from millstream.model.slate import Entries, Table
from millstream.slate_versions import read_slate
from millstream.stores.function_counts import Unranked
from millstream.stores.layout import unpack_slate
from millstream.stores.ranks import sortable

ALIKE = sortable(0.0)
"""The priority of every slate of an update without one: the time of the last update decides."""
LEAST = sortable(float("-inf"))
"""The priority of a slate whose priority could not be determined."""
FORMAT = 1
"""The format of the rows that order slates; rows of another format are rebuilt."""


class Priorities:
    """Determines the priorities of an update's slates; `failures` counts those that failed."""

    def __init__(self, update: Update, entries: Callable[[str], Entries]) -> None:
        self._update = update
        self._priority = update.priority
        self._entries = entries
        self.failures = 0
        self._failure = ("", "")
        """The key and the error of the last failure."""

    def of(self, key: str, row: bytes) -> bytes:
        """Returns the priority, as sortable bytes, of a slate about to be stored in `row`."""
        if self._priority is None:
            return ALIKE
        try:
            if self._update.slate is Table:
                slate: Any = Table(self._entries(key), encode_value, decode_value)
            else:
                stored = unpack_slate(row)
                slate = read_slate(self._update, stored.version, stored.data)
            return sortable(_finite(self._priority(key, slate)))
        except FAILURES as error:
            self.failures += 1
            self._failure = key, described(error)
            return LEAST

    def failed(self, batch: int) -> Unranked:
        """Returns the report on slates whose priority could not be determined."""
        return Unranked(self.failures, *self._failure, batch)


def _finite(result: Any) -> float:
    if not isinstance(result, Real):
        raise FunctionError(f"priority must give a number; got {type(result).__name__} {result!r}")
    number = float(result)
    if not isfinite(number):
        raise FunctionError(f"priority must give a finite number; got {result!r}")
    return number


def mark_of(update: Update) -> bytes:
    """Returns eight bytes that identify how an update's slates are ordered.

    A stored order with another mark was made by another priority. The mark depends on the code of
    the function itself, its defaults, its closure and, for an object, its repr; not on the
    functions that it calls.
    """
    parts: list[Any] = [FORMAT]
    priority = update.priority
    if priority is not None:
        function = _written(priority)
        parts += [_plain(priority), _code(getattr(function, "__code__", None))]
        defaults = ("__defaults__", "__kwdefaults__")
        parts += [_plain(getattr(function, name, None)) for name in defaults]
        parts += map(_content, getattr(function, "__closure__", None) or ())
    return blake2b(repr(parts).encode(errors="replace"), digest_size=8).digest()


def _written(priority: Any) -> Any:
    """Returns the user's function behind a wrapper, a partial or a callable object."""
    function = inspect.unwrap(priority)
    if isinstance(function, partial):
        return _written(function.func)
    return function if hasattr(function, "__code__") else type(function).__call__


def _code(code: CodeType | None) -> Any:
    """Describes a function's code, independent of the file's location."""
    if code is None:
        return None
    consts = [
        _code(const) if isinstance(const, CodeType) else _plain(const) for const in code.co_consts
    ]
    return code.co_code, code.co_names, code.co_varnames, consts


def _content(cell: Any) -> str:
    try:
        return _plain(cell.cell_contents)
    except ValueError:  # a name that is not bound yet
        return ""


def _plain(value: Any) -> str:
    """Returns the repr of a value, without memory addresses."""
    if isinstance(value, frozenset | set):
        return repr(sorted(map(_plain, value)))
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
