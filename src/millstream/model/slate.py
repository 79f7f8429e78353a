"""The kinds of slate: a dict, a dataclass, or a table.

A dict or dataclass slate is read and written whole. A **table** is an ordered map from text to
values whose entries are read and stored one by one, for data that would outgrow a slate. A table
reads its stored entries through the `Entries` seam and keeps changes in memory, as bytes, so that
an entry read twice is two independent values and an update can be undone.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, Protocol, TypeVar

from millstream.errors import DefinitionError, FunctionError
from millstream.model.path import is_unicode, plain_text

K = TypeVar("K", str, bytes)
UNLIMITED = 1 << 62
MOST_RECENT = 8_192
"""The most names that are kept apart from the long list of a table's changes."""


class Entries(Protocol):
    """A table's stored entries."""

    def get(self, entry: str) -> bytes | None: ...

    def scan(self, start: str, stop: str | None, reverse: bool) -> Iterator[tuple[str, bytes]]:
        """Yields stored entries with `start <= entry < stop` (None: to the end), in key order."""
        ...


def overlay(
    changed: list[tuple[K, bytes | None]], stored: Iterator[tuple[K, bytes]], reverse: bool = False
) -> Iterator[tuple[K, bytes]]:
    """Merges changed rows over stored ones, both already in order; None hides a stored row.

    Reads no more of `stored` than it yields.
    """
    changes = dict(changed)
    pending = iter(changed)
    head = next(pending, None)
    for key, value in stored:
        while head is not None and (head[0] > key if reverse else head[0] < key):
            if head[1] is not None:
                yield head[0], head[1]
            head = next(pending, None)
        if key not in changes:
            yield key, value
    while head is not None:
        if head[1] is not None:
            yield head[0], head[1]
        head = next(pending, None)


class NoEntries:
    """The stored entries of a fresh table: none."""

    def get(self, entry: str) -> bytes | None:
        return None

    def scan(self, start: str, stop: str | None, reverse: bool) -> Iterator[tuple[str, bytes]]:
        return iter(())


class Table:
    """An ordered map from text to JSON values, read and stored entry by entry.

    A value that was read is a copy: assign it back to store a change.
    """

    def __init__(
        self,
        entries: Entries,
        encode: Callable[[Any], bytes],
        decode: Callable[[bytes], Any],
        limit: int = UNLIMITED,
    ) -> None:
        """No entry may be set to more than `limit` bytes."""
        self._entries = entries
        self._encode = encode
        self._decode = decode
        self._limit = limit
        self._changes: dict[str, bytes | None] = {}
        self._order: list[str] = []
        """Names of changes in order, for scans. `_recent` is a second, short ordered list, because
        inserting into a long one is slow. Names in `_fresh` are inserted at the next scan."""
        self._recent: list[str] = []
        self._fresh: list[str] = []
        self._undo: dict[str, tuple[bytes | None] | None] = {}

    def __getitem__(self, entry: str) -> Any:
        stored = self._stored(entry)
        if stored is None:
            raise KeyError(entry)
        return self._decode(stored)

    def get(self, entry: str, default: Any = None) -> Any:
        stored = self._stored(entry)
        return default if stored is None else self._decode(stored)

    def __contains__(self, entry: str) -> bool:
        return self._stored(entry) is not None

    def __setitem__(self, entry: str, value: Any) -> None:
        encoded = self._encode(value)
        if len(encoded) > self._limit:
            raise FunctionError(
                f"entry {entry!r} of {len(encoded)} bytes would be over the limit of "
                f"{self._limit} bytes (slate_limit); keep less in it, or use more entries"
            )
        self._change(entry, encoded)

    def __delitem__(self, entry: str) -> None:
        if entry not in self:
            raise KeyError(entry)
        self._change(entry, None)

    def discard(self, entry: str) -> None:
        """Delete the entry if it is there."""
        self._change(entry, None)

    def scan(
        self,
        start: str = "",
        stop: str | None = None,
        *,
        reverse: bool = False,
        limit: int | None = None,
    ) -> Iterator[tuple[str, Any]]:
        """Yields entries with `start <= entry < stop` (None: to the end), in order of their text.

        Reads no more of the store than it yields. Later changes of the table do not affect an
        iterator that has begun.
        """
        changed = self._changed_between(start, stop)
        if reverse:
            changed.reverse()
        stored = self._entries.scan(start, stop, reverse)
        merged = overlay([(e, self._changes[e]) for e in changed], stored, reverse)
        return ((entry, self._decode(stored)) for entry, stored in islice(merged, limit))

    def _changed_between(self, start: str, stop: str | None) -> list[str]:
        """Returns the changed names in the range, in order; names outside it cost no time."""
        order, recent, fresh = self._order, self._recent, self._fresh
        if len(recent) + len(fresh) > min(MOST_RECENT, len(order) // 16):
            order += recent
            order += fresh
            order.sort()
            recent.clear()
        else:
            for entry in fresh:
                insort(recent, entry)
        fresh.clear()
        old, new = _between(order, start, stop), _between(recent, start, stop)
        return sorted(old + new) if old and new else old or new

    def _stored(self, entry: str) -> bytes | None:
        if entry in self._changes:
            return self._changes[entry]
        return self._entries.get(_entry_name(entry))

    def _change(self, entry: str, value: bytes | None) -> None:
        entry = _entry_name(entry)
        if entry not in self._undo:
            self._undo[entry] = (self._changes[entry],) if entry in self._changes else None
        if entry not in self._changes:
            self._fresh.append(entry)
        self._changes[entry] = value

    def changes(self) -> dict[str, bytes | None]:
        """Returns the differences from the stored entries: encoded values, None for deleted."""
        return self._changes

    def settle(self) -> None:
        """Keep the changes of an event that succeeded: they can no longer be undone."""
        self._undo.clear()

    def undo(self) -> None:
        """Revert the changes of an event that failed: all since the last `settle`."""
        for entry, before in self._undo.items():
            if before is None:
                del self._changes[entry]
            else:
                self._changes[entry] = before[0]
        self._undo.clear()
        self._order, self._recent, self._fresh = [], [], [*self._changes]


def _between(order: list[str], start: str, stop: str | None) -> list[str]:
    """Returns the names with `start <= name < stop`, in order."""
    end = len(order) if stop is None else bisect_left(order, stop)
    return order[bisect_left(order, start) : end]


def over_limit(size: int, limit: int) -> FunctionError:
    """Returns the error of an event that would make a slate too large."""
    return FunctionError(
        f"slate of {size} bytes would be over the limit of {limit} bytes (slate_limit); keep less "
        "in it, or use a table"
    )


def _entry_name(entry: object) -> str:
    """Returns the name of an entry as it is stored; FunctionError if it cannot be one."""
    if not isinstance(entry, str):
        raise FunctionError(
            f"a table's entries are named by text; got {type(entry).__name__} {entry!r}"
        )
    if not (entry.isascii() or is_unicode(entry)):
        raise FunctionError(f"a table's entry {entry!r} is not valid Unicode")
    return plain_text(entry)


def check_slate_type(slate: type, where: str) -> None:
    """DefinitionError unless `slate` can be an update's slate. All fields of a dataclass need
    defaults, for a new key."""
    if not is_slate_type(slate):
        raise DefinitionError(
            f"{where}: slate must be dict, a dataclass or millstream.Table; got {slate!r}"
        )
    if not dataclasses.is_dataclass(slate):
        return
    for field in dataclasses.fields(slate):
        missing = field.default is field.default_factory is dataclasses.MISSING
        if field.init and missing:
            raise DefinitionError(
                f"{where}: slate {slate.__name__}: every field needs a default, so that a new key "
                f"finds a fresh slate; {field.name!r} has none"
            )


def is_slate_type(slate: object) -> bool:
    """True if `slate` can be an update's slate: dict, Table or a dataclass."""
    return isinstance(slate, type) and (
        slate is dict or slate is Table or dataclasses.is_dataclass(slate)
    )


def declared_value(value: type | None, where: str) -> dict[str, type]:
    """Returns `{"value": value}` for a declared dataclass of a stream's values, {} for None."""
    if value is None:
        return {}
    if not isinstance(value, type) or not dataclasses.is_dataclass(value):
        raise DefinitionError(f"{where}: value must be a dataclass; got {value!r}")
    return {"value": value}


def slate_kind(slate: type) -> str:
    """Returns the kind of slate of a type, as the store records it."""
    if slate is Table:
        return "table"
    return "dict" if slate is dict else "dataclass"
