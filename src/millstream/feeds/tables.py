"""What a feed is read from: the tables of producers and consumers, as of one batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
Row = tuple[bytes, bytes]
"""A name and its value as they are stored."""
Rows = Iterator[Row]


class Tables(Protocol):
    """Tables of updates by key, all as of one moment."""

    def get(self, update: str, key: str, entry: str) -> Any:
        """The value of an entry; None if it is not there."""
        ...

    def rows(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False, cut: int = 0
    ) -> Rows:
        """Entries with `start <= entry < stop`, in the order of their names or the reverse; read
        as they are taken, and not decoded. Of each name the first `cut` bytes are left out, which
        all in between must share."""
        ...

    def scan(
        self, update: str, key: str, start: str, stop: str, *, reverse: bool = False
    ) -> Iterator[tuple[str, Any]]:
        """The same, decoded."""
        ...

    def once(self, what: str, make: Callable[[], T]) -> T:
        """What was made under this name before, of these same tables; else makes it."""
        ...
