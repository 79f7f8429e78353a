"""The first posts of several streams, put together by time.

Lists rather than a heap of iterators: a page is small, and most streams have little to add to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby

from millstream.feeds.candidates import Candidate, items_of, place, position_of
from millstream.feeds.items import Item
from millstream.feeds.names import Position
from millstream.feeds.tables import Rows, Tables

Add = Callable[[Rows, list[Candidate]], None]
"""Adds to a list what some rows are."""
LEAST = 8
"""Posts of a stream that are read at once."""
MORE = 1.4
"""By what factor more are read at first than are missing: streams have their posts not at the same
pace, and to go on with one costs as much as some more posts."""


class Stream:
    """Posts of one table, in order, read some at a time."""

    __slots__ = ("_add", "_newest_first", "_start", "_stop", "_table", "_tables", "is_read")

    def __init__(
        self,
        tables: Tables,
        table: tuple[str, str],
        add: Add,
        start: str,
        stop: str,
        newest_first: bool,
    ) -> None:
        """Of the entries of a table, by its update and key, from a name on and before another."""
        self._tables, self._table, self._add = tables, table, add
        self._start, self._stop, self._newest_first = start, stop, newest_first
        self.is_read = False
        """Whether there is no more."""

    def some(self, most: int) -> list[Candidate]:
        """The next ones: so many, or all that there are."""
        found: list[Candidate] = []
        while not self.is_read and len(found) < most:
            asked = most - len(found)
            rows = self._tables.rows(
                *self._table, asked, self._start, self._stop, reverse=self._newest_first
            )
            self._add(rows, found)
            if len(rows) < asked:
                self.is_read = True
            elif self._newest_first:
                self._stop = rows[-1][0].decode()
            else:
                self._start = rows[-1][0].decode() + "\0"
        return found

    def items(self, at_once: int) -> Iterator[Item]:
        """Those that are left, as they are taken."""
        while not self.is_read:
            yield from items_of(self.some(at_once))


Opened = tuple[
    Callable[[Position | None, Position | None, bool], Stream], Position | None, Position | None
]
"""Opens the posts after a position and before another, newest first or oldest; and these two."""


class Merged:
    """The newest posts of what is added, or the oldest, without repetitions.

    Of two that are at the same place the one that was added first stays.
    """

    def __init__(self, most: int, *, newest_first: bool = True) -> None:
        self.most, self.newest_first = most, newest_first
        self._found: list[Candidate] = []
        self._in_order = self._is_settled = True
        self.bound: Position | None = None
        """Where as many are known: what is at it or past it is not among them."""

    def add(self, some: list[Candidate]) -> None:
        """Add posts of one stream, which are in order; no more of them than are asked for."""
        if not some:
            return
        self._is_settled = False
        if self._found:
            self._found = [*self._found, *some]
            self._in_order = False
        else:
            self._found = some
        if len(self._found) >= (self.most if self.bound is None else 2 * self.most):
            self._settle()

    @property
    def missing(self) -> int:
        """How many more could be taken, whatever they are."""
        return self.most - len(self._found)

    def wants(self, after: Candidate) -> bool:
        """Whether something that comes after one of the same stream may be among them."""
        self._settle()
        if self.bound is None:
            return True
        here = position_of(after)
        return here > self.bound if self.newest_first else here < self.bound

    def items(self) -> list[Item]:
        """In order, and no more than were asked for."""
        self._settle()
        return items_of(self._found)

    def _settle(self) -> None:
        if self._is_settled:
            return
        self._is_settled = True
        if not self._in_order:
            self._found = _sorted(self._found, self.newest_first)[: self.most]
            self._in_order = True
        if len(self._found) == self.most:
            self.bound = position_of(self._found[-1])


def read_into(found: Merged, streams: Sequence[Opened]) -> None:
    """Add the posts of several streams as far as they are wanted.

    Of each no more is read at once than its share of what is missing: each may have the next post,
    and few have many. Where enough are known, no more is read than what is before the last one.
    """
    unread: list[tuple[Stream, Candidate]] = []
    share = min(max(LEAST, int(MORE * found.missing / max(1, len(streams)))), found.most)
    for opened, than, before in streams:
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


def _sorted(found: list[Candidate], newest_first: bool) -> list[Candidate]:
    """By place, without repetitions; what was before stays before, of those that are alike."""
    if len({one[0] for one in found}) == len(found):  # nearly always: the time alone decides
        return sorted(found, reverse=newest_first)
    ordered = sorted(found, key=place, reverse=newest_first)
    return [next(alike) for _, alike in groupby(ordered, key=place)]
