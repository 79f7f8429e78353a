"""The first items of several streams, put together by time.

Lists rather than a heap of iterators: a page is small, and most streams have little to add to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from millstream.feeds.items import Item
from millstream.feeds.names import Position

position = itemgetter(0, 1, 2)


Rows = list[tuple[str, Any]]
Read = Callable[[int, str, str], Rows]
"""Gives the first rows, at most so many, from a name on and before another."""
Add = Callable[[Rows, list[Item]], None]
"""Adds to a list what items there are in some rows."""


LEAST = 8
"""Items of a stream that are read at once."""


class Stream:
    """Items of one table, in order, read some at a time."""

    __slots__ = ("_add", "_newest_first", "_read", "_start", "_stop", "is_read")

    def __init__(self, read: Read, add: Add, start: str, stop: str, newest_first: bool) -> None:
        self._read, self._add = read, add
        self._start, self._stop, self._newest_first = start, stop, newest_first
        self.is_read = False
        """Whether there is no more."""

    def some(self, most: int) -> list[Item]:
        """The next ones: so many, or all that there are."""
        found: list[Item] = []
        while not self.is_read and len(found) < most:
            asked = most - len(found)
            rows = self._read(asked, self._start, self._stop)
            self._add(rows, found)
            if len(rows) < asked:
                self.is_read = True
            elif self._newest_first:
                self._stop = rows[-1][0]
            else:
                self._start = rows[-1][0] + "\0"
        return found

    def all(self, at_once: int) -> Iterator[Item]:
        """Those that are left, as they are taken."""
        while not self.is_read:
            yield from self.some(at_once)


Opened = tuple[
    Callable[[Position | None, Position | None, bool], Stream], Position | None, Position | None
]
"""Opens the items after a position and before another, newest first or oldest; and these two."""


class Merged:
    """The newest items of what is added, or the oldest, without repetitions.

    Of two that are at the same position the one that was added first stays.
    """

    def __init__(self, most: int, *, newest_first: bool = True) -> None:
        self.most, self.newest_first = most, newest_first
        self._items: list[Item] = []
        self._in_order = True
        self.bound: Position | None = None
        """Where as many are known: what is at it or past it is not among them."""

    def add(self, items: list[Item]) -> None:
        """Add items of one stream, which are in order; no more of them than are asked for."""
        if not items:
            return
        if self._items:
            self._items = [*self._items, *items]
            self._in_order = False
        else:
            self._items = items
        if len(self._items) >= (self.most if self.bound is None else 2 * self.most):
            self._settle()

    @property
    def missing(self) -> int:
        """How many more could be taken, whatever they are."""
        return self.most - len(self._items)

    def wants(self, after: Item) -> bool:
        """Whether something that comes after an item of the same stream may be among them."""
        if self.bound is None:
            return True
        here: Position = position(after)
        return here > self.bound if self.newest_first else here < self.bound

    def items(self) -> list[Item]:
        """In order, and no more than were asked for."""
        self._settle()
        return self._items

    def _settle(self) -> None:
        if not self._in_order:
            self._items = _sorted(self._items, self.newest_first)[: self.most]
            self._in_order = True
        if len(self._items) == self.most:
            self.bound = position(self._items[-1])


def read_into(found: Merged, streams: Sequence[Opened]) -> None:
    """Add the items of several streams as far as they are wanted.

    Of each no more is read at once than its share of what is missing: each may have the next item,
    and few have many. Where enough are known, no more is read than what is before the last one.
    """
    unread: list[tuple[Stream, Item]] = []
    left = len(streams)
    for opened, than, before in streams:
        share = min(max(LEAST, -(-found.missing // left)), found.most)
        left -= 1
        if found.bound is not None:
            if found.newest_first:
                than = found.bound if than is None else max(than, found.bound)
            else:
                before = found.bound if before is None else min(before, found.bound)
        stream = opened(than, before, found.newest_first)
        some = stream.some(share)
        found.add(some)
        if not stream.is_read:
            unread.append((stream, some[-1]))
    for stream, last in unread:
        while not stream.is_read and found.wants(last):
            some = stream.some(LEAST)
            found.add(some)
            last = some[-1] if some else last


def _sorted(items: list[Item], newest_first: bool) -> list[Item]:
    """By position, without repetitions; what was before stays before, of those that are alike."""
    if len({item[0] for item in items}) == len(items):  # nearly always: the time alone decides
        return sorted(items, reverse=newest_first)
    ordered = sorted(items, key=position, reverse=newest_first)
    return [next(alike) for _, alike in groupby(ordered, key=position)]
