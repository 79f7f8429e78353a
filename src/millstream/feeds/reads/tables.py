"""The tables of producers and consumers that a feed is read from, as of one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[bytes, bytes]
"""A name and its value as stored."""
Rows = Iterator[Row]


class Tables(Protocol):
    """Tables of updates by key, all as of one moment."""

    def get(self, update: str, key: str, entry: str) -> Any:
        """The value of an entry; None if it is not there."""
        ...

    def rows(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False, cut: int = 0
    ) -> Rows:
        """Yields entries with `start <= entry < stop`, in the order of their names or in reverse.
        Entries are read lazily and not decoded. The first `cut` bytes of each name, which all names
        in the range must share, are left out."""
        ...

    def scan(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False
    ) -> Iterator[tuple[str, Any]]:
        """Like `rows`, with decoded names and values."""
        ...

    def once(self, name: str, make: Callable[[], T]) -> T:
        """Returns the result of an earlier call for the same tables and name; otherwise calls
        `make`."""
        ...
