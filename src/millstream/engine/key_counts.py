"""Counts each key's events, with their first and last times. Grouped by Arrow.

Keys come as Python strings. Handing them to Arrow and grouping them there costs about a quarter of
a microsecond per event over 100,000 keys. Looking each up in a dict costs nearly half a
microsecond, since a dict of that size does not fit into the processor's cache
(docs/design/2026-11-15-aggregates.md).
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

TOGETHER = 1 << 18
"""The number of events that are grouped at a time."""


class KeyCounts:
    """The number of events of each key, their greatest time and, with `least`, their least."""

    def __init__(self, *, least: bool) -> None:
        self._ends = [("last", "max"), *([("least", "min")] if least else [])]
        self._keys: list[str] = []
        self._times: list[int] = []
        self._grouped: pa.Table | None = None
        """A row for each key. The events in `_keys` and `_times` are not grouped yet."""
        self._less: dict[str, int] = {}
        """The number of events to subtract, by key."""

    def __len__(self) -> int:
        """The number of keys, without those of events that are not grouped yet."""
        return 0 if self._grouped is None else len(self._grouped)

    def add(self, keys: list[str], times: list[int]) -> None:
        """Counts events."""
        self._keys += keys
        self._times += times
        if len(self._keys) >= TOGETHER:
            self._group()

    def take_back(self, key: str, events: int) -> None:
        """Subtracts events of a key that should not count after all."""
        self._less[key] = self._less.get(key, 0) + events

    @property
    def keys(self) -> list[str]:
        """The keys; the columns below are in the same order."""
        return self._column("key")

    @property
    def counts(self) -> list[int]:
        counts: list[int] = self._column("count")
        if self._less:
            indices = {key: index for index, key in enumerate(self.keys)}
            for key, events in self._less.items():
                counts[indices[key]] -= events
        return counts

    @property
    def last(self) -> list[int]:
        return self._column("last")

    @property
    def least(self) -> list[int]:
        return self._column("least")

    def _column(self, name: str) -> list[Any]:
        self._group()
        return [] if self._grouped is None else self._grouped[name].to_pylist()

    def _group(self) -> None:
        if not self._keys:
            return
        times = pa.array(self._times, pa.int64())
        fresh = pa.table(
            {
                "key": pa.array(self._keys, pa.large_string()),
                "count": pa.repeat(pa.scalar(1, pa.int64()), len(times)),
                **{name: times for name, _ in self._ends},
            }
        )
        self._keys, self._times = [], []
        whole = fresh if self._grouped is None else pa.concat_tables([self._grouped, fresh])
        groups = whole.group_by("key", use_threads=False).aggregate([("count", "sum"), *self._ends])
        names = {"key": "key", "count_sum": "count"}
        names |= {f"{name}_{end}": name for name, end in self._ends}
        self._grouped = groups.rename_columns([names[name] for name in groups.column_names])
