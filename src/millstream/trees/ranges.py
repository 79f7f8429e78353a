"""Sets of whole numbers that form few ranges: panes that were sent, windows that are closed."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator

MOST = 10_000


class Ranges:
    """Whole numbers, kept as ranges that neither touch nor overlap.

    >>> known = Ranges()
    >>> for first, until in (3, 5), (8, 9), (5, 8):
    ...     known.add(first, until)
    >>> list(known), known.covers(4, 9), known.covers(4, 10)
    ([(3, 9)], True, False)

    If there are more than `most` ranges, the two lowest are joined, and the numbers between them
    become members. With `forgets` the lowest range is dropped instead, so that no number is a
    member that was not added.
    """

    def __init__(self, most: int = MOST, *, forgets: bool = False) -> None:
        self._most, self._forgets = most, forgets
        self._firsts: list[float] = []
        self._untils: list[float] = []

    def __iter__(self) -> Iterator[tuple[float, float]]:
        return zip(self._firsts, self._untils, strict=True)

    def add(self, first: float, until: float) -> None:
        """Add the numbers from `first` up to `until`; `-inf` is before all."""
        if first >= until:
            return
        begin = bisect_left(self._untils, first)
        end = bisect_right(self._firsts, until)
        if begin < end:
            first = min(first, self._firsts[begin])
            until = max(until, self._untils[end - 1])
        self._firsts[begin:end] = [first]
        self._untils[begin:end] = [until]
        if len(self._firsts) > self._most:
            del self._firsts[0 if self._forgets else 1], self._untils[0]

    def covers(self, first: float, until: float) -> bool:
        """True if all numbers from `first` up to `until` are in the set, or if there are none."""
        if first >= until:
            return True
        index = bisect_right(self._firsts, first) - 1
        return index >= 0 and until <= self._untils[index]

    def meets(self, first: float, until: float) -> bool:
        """True if any number from `first` up to `until` is in the set."""
        index = bisect_right(self._untils, first)
        return first < until and index < len(self._firsts) and self._firsts[index] < until

    def __contains__(self, number: int) -> bool:
        return self.covers(number, number + 1)
