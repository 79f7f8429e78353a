"""Finds the rules that match a number: the user's function of ShuffleBench's shape, the same for
every peer.

Imports nothing of ours, since peers run it in environments of their own. The ranges of the rules
overlap, so the numbers are cut at all of their ends; a piece knows the rules that cover it.
"""

from __future__ import annotations

from bisect import bisect_right
from random import Random

RULES = 1_000
SELECTIVITY = 0.2
"""The mean number of rules that match a number."""
SPACE = 2**32


class Rules:
    """The rules, as an index."""

    def __init__(self) -> None:
        random, width = Random(4), int(SPACE * SELECTIVITY / RULES)
        ranges = []
        for number in range(RULES):
            start = random.randrange(SPACE - width)
            ranges.append((start, start + width, f"rule{number}"))
        self._cuts = sorted({0, *(cut for start, end, _ in ranges for cut in (start, end))})
        self._names = [
            tuple(name for start, end, name in ranges if start <= cut < end) for cut in self._cuts
        ]

    def matching(self, number: int) -> tuple[str, ...]:
        return self._names[bisect_right(self._cuts, number) - 1]
