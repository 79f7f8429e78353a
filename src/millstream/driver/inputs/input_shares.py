"""Divides the input of a batch among the tasks that read it, equally by size."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from millstream.sources.files import Position
from millstream.sources.formats import InputSplit

LEAST_BYTES = 256 << 10
"""Input is not divided into smaller parts: a task costs more than they do."""
Piece = TypeVar("Piece")


class InputShare(NamedTuple):
    """A part of what a batch takes from a source, for one task."""

    bytes: int
    splits: list[InputSplit]


class Cut(Protocol):
    """An input that can be cut at the positions that its `take` returns."""

    def take(self, position: Sequence[int], max_bytes: int | None = None) -> Position: ...

    def splits(
        self, start: Sequence[int], end: Sequence[int], target_bytes: int
    ) -> list[InputSplit]: ...

    def bytes_between(self, start: Sequence[int], end: Sequence[int]) -> int: ...


def parts_of(size: int, tasks: int) -> int:
    """Returns into how many parts to divide so many bytes."""
    return max(1, min(tasks, size // LEAST_BYTES))


def cut_shares(
    source: Cut, start: Sequence[int], end: Sequence[int], parts: int
) -> list[InputShare]:
    """Returns shares of about equal size, each up to where the source can be cut."""
    size = source.bytes_between(start, end)
    shares: list[InputShare] = []
    low, stop = list(start), list(end)
    for part in range(1, parts + 1):
        goal = size * part // parts - source.bytes_between(start, low)
        high = stop if part == parts else min(source.take(low, goal), stop)
        if high > low and (goal > 0 or part == parts):
            length = source.bytes_between(low, high)
            shares.append(InputShare(length, source.splits(low, high, max(1, length))))
            low = high
    return shares


def grouped(
    shares: Iterable[tuple[int, Sequence[Piece]]], tasks: int
) -> tuple[tuple[Piece, ...], ...]:
    """Gives each share, with its bytes, to the group that has the least so far, the largest first.

    >>> grouped([(1, "a"), (6, "b"), (3, "c"), (2, "d")], 2)
    (('b',), ('c', 'd', 'a'))
    """
    largest_first = sorted(shares, key=lambda share: -share[0])
    groups: list[list[Piece]] = [[] for _ in range(max(1, min(tasks, len(largest_first))))]
    sizes = [0] * len(groups)
    for size, pieces in largest_first:
        least = sizes.index(min(sizes))
        sizes[least] += size
        groups[least] += pieces
    return tuple(map(tuple, groups))
