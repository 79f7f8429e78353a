"""Counts each key's events, with their first and last times and the total of a number.

The keys are numbered by Arrow's dictionary, and the rest is added up by NumPy. Looking each key up
in a dict costs more, since a dict of 100,000 keys does not fit into the processor's cache; so does
Arrow's `group_by` (docs/design/2026-11-15-aggregates.md).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from millstream.columnar.arrow_arrays import Integers, numbers_of

TOGETHER = 1 << 18
"""The number of events that are grouped at a time."""
_EARLIEST, _LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class KeyRows(NamedTuple):
    """A row for each key, or for each event."""

    keys: pa.Array
    counts: Integers
    """The number of events."""
    last: Integers
    """Their greatest time."""
    least: Integers
    totals: Integers
    """The totals of their numbers; zero if there are none."""


class KeyCounts:
    """The number of events of each key, their least and greatest times, and a total."""

    def __init__(self) -> None:
        self._rows: list[KeyRows] = []
        """Those of keys, then those of events that are not grouped yet."""
        self._waiting = 0
        """The number of the latter."""
        self._less: dict[str, int] = {}
        """The number of events to subtract, by key."""

    def __bool__(self) -> bool:
        """True if any event was counted."""
        return bool(self._rows)

    def __len__(self) -> int:
        """The number of keys, without those of events that are not grouped yet."""
        return sum(len(rows.keys) for rows in self._rows) - self._waiting

    def add(self, keys: pa.Array, times: Integers, numbers: Integers | None = None) -> None:
        """Counts events; the keys are of Arrow's large_string. The totals of their numbers must fit
        into 64 bits."""
        count = len(times)
        if count:
            totals = np.zeros(count, np.int64) if numbers is None else numbers
            self._rows.append(KeyRows(keys, np.ones(count, np.int64), times, times, totals))
        self._waiting += count
        if self._waiting >= TOGETHER:
            self._group()

    def take_back(self, key: str, events: int) -> None:
        """Subtracts events of a key that should not count after all."""
        self._less[key] = self._less.get(key, 0) + events

    def rows(self) -> KeyRows:
        """Returns a row for each key; there must have been events."""
        self._group()
        (rows,) = self._rows
        if not self._less:
            return rows
        counts, indices = rows.counts.copy(), {key: i for i, key in enumerate(rows.keys.tolist())}
        for key, events in self._less.items():
            counts[indices[key]] -= events
        return rows._replace(counts=counts)

    def _group(self) -> None:
        if self._waiting:
            self._rows, self._waiting = [grouped(self._rows)], 0


def grouped(parts: list[KeyRows]) -> KeyRows:
    """Returns one row for each key."""
    encoded = pa.concat_arrays([rows.keys for rows in parts]).dictionary_encode()
    numbers, count = numbers_of(encoded.indices), len(encoded.dictionary)
    counts, totals = np.zeros(count, np.int64), np.zeros(count, np.int64)
    last, least = np.full(count, _EARLIEST), np.full(count, _LATEST)

    def column(name: str) -> Any:
        return np.concatenate([getattr(rows, name) for rows in parts])

    np.add.at(counts, numbers, column("counts"))
    np.add.at(totals, numbers, column("totals"))
    np.maximum.at(last, numbers, column("last"))
    np.minimum.at(least, numbers, column("least"))
    return KeyRows(encoded.dictionary, counts, last, least, totals)
