"""How important a slate is: a developer's `priority`, made a number that can be kept in order.

A priority that raises, or gives no finite number, never stops the application. Its slate is taken
as the least important, so that a slate which cannot be judged does not push out one that can; among
such slates the time of the last update decides, as it does where there is no priority at all. It is
counted, and the run says so once.
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

from millstream.codec import SlateCodec, decode_value, encode_value, slate_codec
from millstream.errors import FunctionError
from millstream.model.function import Update
from millstream.model.place import described
from millstream.model.rules import FAILURES
from millstream.model.slate import Entries, Table
from millstream.stores.layout import unpack_slate
from millstream.stores.progress import Unranked
from millstream.stores.ranks import sortable

ALIKE = sortable(0.0)
"""The priority of every slate where there is none: the time of the last update decides."""
LEAST = sortable(float("-inf"))
"""Of a slate whose priority could not be told."""
FORMAT = 1
"""Of the rows that order slates; another one has them made anew."""


class Priorities:
    """Asks an update's priority for its slates; `failures` counts those that got none."""

    def __init__(self, update: Update, entries: Callable[[str], Entries]) -> None:
        self._priority = update.priority
        self._entries = entries
        self._codec: SlateCodec | None = None
        if update.slate is not Table:
            self._codec = slate_codec(update.slate)
        self.failures = 0
        self._failure = ("", "")
        """The key and the error of the last one."""

    def of(self, key: str, row: bytes) -> bytes:
        """The priority of a slate that is about to be stored in `row`, as it is kept in order."""
        if self._priority is None:
            return ALIKE
        try:
            if self._codec is None:
                slate: Any = Table(self._entries(key), encode_value, decode_value)
            else:
                slate = self._codec.decode(unpack_slate(row).data)
            return sortable(_finite(self._priority(key, slate)))
        except FAILURES as error:
            self.failures += 1
            self._failure = key, described(error)
            return LEAST

    def failed(self, batch: int) -> Unranked:
        """What is to be reported of the slates that got none."""
        return Unranked(self.failures, *self._failure, batch)


def _finite(given: Any) -> float:
    if not isinstance(given, Real):
        raise FunctionError(f"priority must give a number; got {type(given).__name__} {given!r}")
    number = float(given)
    if not isfinite(number):
        raise FunctionError(f"priority must give a finite number; got {given!r}")
    return number


def mark_of(update: Update) -> bytes:
    """Eight bytes for what an update's slates are ordered by.

    A stored order with another mark was made by another priority. What a function does is seen from
    its own code, its defaults, what it closes over and, of an object, how it shows itself; not what
    the functions that it calls do.
    """
    of: list[Any] = [FORMAT]
    priority = update.priority
    if priority is not None:
        function = _written(priority)
        of += [_plain(priority), _code(getattr(function, "__code__", None))]
        of += [_plain(getattr(function, one, None)) for one in ("__defaults__", "__kwdefaults__")]
        of += map(_content, getattr(function, "__closure__", None) or ())
    return blake2b(repr(of).encode(errors="replace"), digest_size=8).digest()


def _written(priority: Any) -> Any:
    """The function that was written, behind what holds it: a wrapper, a partial, an object."""
    function = inspect.unwrap(priority)
    if isinstance(function, partial):
        return _written(function.func)
    return function if hasattr(function, "__code__") else type(function).__call__


def _code(code: CodeType | None) -> Any:
    """What a function's code says, wherever its file lies."""
    if code is None:
        return None
    consts = [_code(one) if isinstance(one, CodeType) else _plain(one) for one in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, consts


def _content(cell: Any) -> str:
    try:
        return _plain(cell.cell_contents)
    except ValueError:  # a name that is not bound yet
        return ""


def _plain(value: Any) -> str:
    """A value in words, without where it lies in memory."""
    if isinstance(value, frozenset | set):
        return repr(sorted(map(_plain, value)))
    return re.sub(r" at 0x[0-9a-fA-F]+", "", repr(value))
