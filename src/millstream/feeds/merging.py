"""The first posts of several streams, put together by time.

Lists rather than a heap of iterators: a page is small, and most streams have little to add to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter

from millstream.feeds.candidates import Candidate, items_of
from millstream.feeds.items import Item
from millstream.feeds.tables import Row, Rows

Add = Callable[[list[Row], list[Candidate]], bool]
"""Adds to a list what some rows are. Whether one of them may be in another stream too."""
LEAST = 3
"""Posts of a stream that are read at first, or more: its share of a page, and some to spare."""
SPARE = 1.4
"""By what factor: streams do not have their posts at the same pace, and to go on with one costs as
much as a few posts."""
MORE = 5
"""The part of a page, one in so many, that is read at once of a stream that may have more."""
_place = itemgetter(0)


class Stream:
    """Posts of one table, in order, read some at a time."""

    __slots__ = ("_add", "_rows", "is_read", "may_repeat")

    def __init__(self, rows: Rows, add: Add) -> None:
        self._rows, self._add = rows, add
        self.is_read = False
        """Whether there is no more."""
        self.may_repeat = False
        """Whether one of those that were read may be in another stream too."""

    def some(self, most: int) -> list[Candidate]:
        """The next ones: so many, or all that there are."""
        found: list[Candidate] = []
        while not self.is_read and len(found) < most:
            asked = most - len(found)
            rows = list(islice(self._rows, asked))
            self.may_repeat |= self._add(rows, found)
            self.is_read = len(rows) < asked
        return found

    def items(self, at_once: int) -> Iterator[Item]:
        """Those that are left, as they are taken."""
        while not self.is_read:
            yield from items_of(self.some(at_once))


class Merged:
    """The newest posts of what is added, or the oldest, without repetitions.

    Of two that are at the same place the one that was added first stays.
    """

    def __init__(self, most: int, *, newest_first: bool = True) -> None:
        self.most, self._newest_first = most, newest_first
        self._found: list[Candidate] = []
        self._in_order = True
        self._may_repeat = False
        self._last: bytes | None = None
        """Where the last one is, if there are as many as are wanted."""

    def add(self, some: list[Candidate], may_repeat: bool = True) -> None:
        """Add posts of one stream, which are in order; one may have been added before, or be added
        later, or none."""
        self._may_repeat |= may_repeat
        if some:
            self._in_order = not self._found
            self._found += some

    def wants(self, after: Candidate) -> bool:
        """Whether something that comes after one of the same stream may be among them."""
        self._settle()
        if self._last is None:
            return True
        here, _, _ = after
        return here > self._last if self._newest_first else here < self._last

    def settled(self) -> list[Candidate]:
        """In order, and no more than were asked for."""
        self._settle()
        return self._found

    def _settle(self) -> None:
        if not self._in_order:
            self._found.sort(key=_place, reverse=self._newest_first)
            if self._may_repeat:
                self._found = [next(alike) for _, alike in groupby(self._found, key=_place)]
            self._in_order = True
        del self._found[self.most :]
        if len(self._found) == self.most:
            self._last, _, _ = self._found[-1]


def read_into(found: Merged, streams: Sequence[Stream]) -> None:
    """Add the posts of several streams as far as they are wanted.

    Of each some are read at first: it may have the next post. Few have many.
    """
    share = min(max(LEAST, int(SPARE * found.most / max(1, len(streams))) + 1), found.most)
    while streams:
        ends: list[tuple[Stream, Candidate]] = []
        for stream in streams:
            some = stream.some(share)
            found.add(some, stream.may_repeat)
            if not stream.is_read:
                ends.append((stream, some[-1]))
        streams = [stream for stream, last in ends if found.wants(last)]
        share = max(1, found.most // MORE)
