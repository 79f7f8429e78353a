"""Counts each key's events, with their first and last times. Grouped by Arrow.

Looking each key up in a dict costs more, since a dict of 100,000 keys does not fit into the
processor's cache (docs/design/2026-11-15-aggregates.md).
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from millstream.engine.arrow_arrays import Integers, integer_array, numbers_of

TOGETHER = 1 << 18
"""The number of events that are grouped at a time."""


class KeyCounts:
    """The number of events of each key, their greatest time and, with `least`, their least."""

    def __init__(self, *, least: bool) -> None:
        self._ends = [("last", "max"), *([("least", "min")] if least else [])]
        self._keys: list[pa.Array] = []
        self._times: list[Integers] = []
        self._waiting = 0
        """The number of events in these two, which are not grouped yet."""
        self._grouped: pa.Table | None = None
        """A row for each key."""
        self._less: dict[str, int] = {}
        """The number of events to subtract, by key."""

    def __bool__(self) -> bool:
        """True if any event was counted."""
        return self._grouped is not None or bool(self._waiting)

    def __len__(self) -> int:
        """The number of keys, without those of events that are not grouped yet."""
        return 0 if self._grouped is None else len(self._grouped)

    def add(self, keys: pa.Array, times: Integers) -> None:
        """Counts events; the keys are of Arrow's large_string."""
        self._keys.append(keys)
        self._times.append(times)
        self._waiting += len(times)
        if self._waiting >= TOGETHER:
            self._group()

    def take_back(self, key: str, events: int) -> None:
        """Subtracts events of a key that should not count after all."""
        self._less[key] = self._less.get(key, 0) + events

    @property
    def keys(self) -> pa.Array:
        """The keys, as large_string; the columns below are in the same order."""
        return self._column("key")

    @property
    def counts(self) -> Integers:
        counts: Integers = numbers_of(self._column("count"))
        if self._less:
            counts, indices = counts.copy(), {key: i for i, key in enumerate(self.keys.tolist())}
            for key, events in self._less.items():
                counts[indices[key]] -= events
        return counts

    @property
    def last(self) -> Integers:
        return numbers_of(self._column("last"))

    @property
    def least(self) -> list[int]:
        return self._column("least").to_pylist()  # type: ignore[no-any-return]

    def _column(self, name: str) -> pa.Array:
        """Returns a column; there must have been events."""
        self._group()
        assert self._grouped is not None
        return pa.concat_arrays(self._grouped[name].chunks)

    def _group(self) -> None:
        if not self._keys:
            return
        times = integer_array(np.concatenate(self._times))
        ones = integer_array(np.ones(len(times), np.int64))
        columns = [pa.concat_arrays(self._keys), ones, *(times for _ in self._ends)]
        names = ["key", "count", *(name for name, _ in self._ends)]
        fresh = pa.Table.from_arrays(columns, names)
        self._keys, self._times, self._waiting = [], [], 0
        whole = fresh if self._grouped is None else pa.concat_tables([self._grouped, fresh])
        groups = whole.group_by("key", use_threads=False).aggregate([("count", "sum"), *self._ends])
        renamed = {"key": "key", "count_sum": "count"}
        renamed |= {f"{name}_{end}": name for name, end in self._ends}
        self._grouped = groups.rename_columns([renamed[name] for name in groups.column_names])
