"""What a feed is read from: the tables of producers and consumers, as of one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Rows = Iterator[tuple[str, Any]]


class Tables(Protocol):
    """Tables of updates by key, all as of one moment."""

    def get(self, update: str, key: str, entry: str) -> Any:
        """The value of an entry; None if it is not there."""
        ...

    def scan(self, update: str, key: str, start: str, stop: str, *, reverse: bool = False) -> Rows:
        """Entries with `start <= entry < stop`, in the order of their names or the reverse; read
        as they are taken."""
        ...

    def once(self, what: str, make: Callable[[], T]) -> T:
        """What was made under this name before, of these same tables; else makes it."""
        ...


class KeptTables:
    """Tables that are held in memory, by update and key: for tests and small tools."""

    def __init__(self, tables: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> None:
        self._tables = tables
        self._made: dict[str, Any] = {}

    def get(self, update: str, key: str, entry: str) -> Any:
        return self._tables.get(update, {}).get(key, {}).get(entry)

    def scan(self, update: str, key: str, start: str, stop: str, *, reverse: bool = False) -> Rows:
        table = self._tables.get(update, {}).get(key, {})
        names = sorted((name for name in table if start <= name < stop), reverse=reverse)
        return ((name, table[name]) for name in names)

    def once(self, what: str, make: Callable[[], T]) -> T:
        if what not in self._made:
            self._made[what] = make()
        made: T = self._made[what]
        return made
