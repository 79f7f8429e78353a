"""Merges the first posts of several streams by time.

It uses lists rather than a heap of iterators: a page is small, and most streams add little to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby, islice
from operator import itemgetter

from millstream.feeds.reads.candidates import Candidate, items_of
from millstream.feeds.reads.tables import Row, Rows
from millstream.messages.feeds import Item

Add = Callable[[list[Row], list[Candidate]], bool]
"""Appends the candidates of some rows to a list. Returns True if one of them may be in another
stream too."""
LEAST = 3
"""The minimum number of posts that are read from a stream at first. More are read if the stream's
share of the page, times `SPARE`, is larger."""
SPARE = 1.4
"""The factor of spare posts. Streams advance at different speeds, and another read of a stream
costs as much as a few posts."""
MORE = 5
"""A later read of a stream takes a page's posts divided by this."""
_place = itemgetter(0)


class PostStream:
    """Posts of one table, in order, read a few at a time."""

    __slots__ = ("_add", "_rows", "is_read", "may_repeat")

    def __init__(self, rows: Rows, add: Add) -> None:
        self._rows, self._add = rows, add
        self.is_read = False
        """True if there is no more to read."""
        self.may_repeat = False
        """True if a post that was read may be in another stream too."""

    def some(self, most: int) -> list[Candidate]:
        """Returns the next `most` posts, or all that are left."""
        candidates: list[Candidate] = []
        while not self.is_read and len(candidates) < most:
            wanted = most - len(candidates)
            rows = list(islice(self._rows, wanted))
            self.may_repeat |= self._add(rows, candidates)
            self.is_read = len(rows) < wanted
        return candidates

    def items(self, at_once: int) -> Iterator[Item]:
        """Yields the remaining posts, read lazily in chunks of `at_once`."""
        while not self.is_read:
            yield from items_of(self.some(at_once))


class Merged:
    """The newest (or oldest) posts of all that were added, without duplicates.

    Of two posts at the same place the one that was added first stays.
    """

    def __init__(self, most: int, *, newest_first: bool = True) -> None:
        self.most, self._newest_first = most, newest_first
        self._found: list[Candidate] = []
        self._in_order = True
        self._may_repeat = False
        self._last: bytes | None = None
        """The place of the last post, if there are as many as wanted."""

    def add(self, some: list[Candidate], may_repeat: bool = True) -> None:
        """Adds posts of one stream, in order. `may_repeat` is True if one of them may also be in
        another stream."""
        self._may_repeat |= may_repeat
        if some:
            self._in_order = not self._found
            self._found += some

    def wants(self, after: Candidate) -> bool:
        """True if a post that follows `after` in its stream may be among the result."""
        self._settle()
        if self._last is None:
            return True
        place, _, _ = after
        return place > self._last if self._newest_first else place < self._last

    def settled(self) -> list[Candidate]:
        """Returns the result: in order, and no more than wanted."""
        self._settle()
        return self._found

    def _settle(self) -> None:
        if not self._in_order:
            self._found.sort(key=_place, reverse=self._newest_first)
            if self._may_repeat:
                self._found = [
                    next(duplicates) for _, duplicates in groupby(self._found, key=_place)
                ]
            self._in_order = True
        del self._found[self.most :]
        if len(self._found) == self.most:
            self._last, _, _ = self._found[-1]


def read_into(merged: Merged, streams: Sequence[PostStream]) -> None:
    """Adds the posts of several streams as far as they are needed.

    A few are read from every stream first, since any of them may have the next post. Only few
    streams have many posts of a page.
    """
    share = min(max(LEAST, int(SPARE * merged.most / max(1, len(streams))) + 1), merged.most)
    while streams:
        ends: list[tuple[PostStream, Candidate]] = []
        for stream in streams:
            some = stream.some(share)
            merged.add(some, stream.may_repeat)
            if not stream.is_read:
                ends.append((stream, some[-1]))
        streams = [stream for stream, last in ends if merged.wants(last)]
        share = max(1, merged.most // MORE)
