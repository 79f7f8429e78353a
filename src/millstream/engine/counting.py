"""How many events each key has, and when the first and the last were.

A key is looked up once an event; the rest is NumPy, over many events at a time. That is faster than
counting in one dict and noting times in another, and, since the keys come as Python texts, than
handing them to Arrow (docs/design/2026-11-15-aggregates.md has the figures).
"""

from __future__ import annotations

from collections import defaultdict
from itertools import count
from typing import Any

import numpy as np

FIRST = 1 << 8
EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class KeyCounts:
    """The number of events of each key, their greatest time and, if asked for, their least."""

    def __init__(self, *, least: bool) -> None:
        self._numbers: defaultdict[str, int] = defaultdict(count().__next__)
        """Each key's place in the arrays."""
        self._counts = np.zeros(FIRST, np.int64)
        self._last = np.full(FIRST, EARLIEST, np.int64)
        self._least = np.full(FIRST, LATEST, np.int64) if least else None

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def keys(self) -> list[str]:
        """The keys, in the order that they came in; the columns below are in the same."""
        return list(self._numbers)

    @property
    def counts(self) -> list[int]:
        return self._column(self._counts)

    @property
    def last(self) -> list[int]:
        return self._column(self._last)

    @property
    def least(self) -> list[int]:
        assert self._least is not None
        return self._column(self._least)

    def add(self, keys: list[str], times: list[int]) -> None:
        """Count events."""
        places = np.fromiter(map(self._numbers.__getitem__, keys), np.int64, len(keys))
        while len(self._numbers) > len(self._counts):
            self._counts = _doubled(self._counts, 0)
            self._last = _doubled(self._last, EARLIEST)
            if self._least is not None:
                self._least = _doubled(self._least, LATEST)
        when = np.array(times, np.int64)
        np.add.at(self._counts, places, 1)
        np.maximum.at(self._last, places, when)
        if self._least is not None:
            np.minimum.at(self._least, places, when)

    def take_back(self, key: str, events: int) -> None:
        """Do not count so many events of a key after all."""
        self._counts[self._numbers[key]] -= events

    def _column(self, array: Any) -> list[int]:
        column: list[int] = array[: len(self._numbers)].tolist()
        return column


def _doubled(array: Any, filled: int) -> Any:
    return np.concatenate([array, np.full(len(array), filled, np.int64)])
