"""Keeps what a view has read of rows until the commit that replaces them, which need not read them.

A commit needs of each row that it replaces the value before its batch and the checksum. Its task
has read and checked most of these rows already, as of the same batch. They are still the same if
nothing was written to the shard since the view was opened: by no other attempt, no roll-back, no
change of a copy. LMDB numbers the transactions that wrote, of all processes, without gaps. So a
transaction that writes knows it: its number follows that of the view (`Environment.follows`).
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import TypeVar

from millstream.stores.rows import Current

T = TypeVar("T")

MOST_BYTES = 4 << 20
"""The most bytes of values that are kept for a view: slates may be large."""


class ReadRows:
    """The rows that a view has read, as of the end of batch `limit`."""

    __slots__ = ("_keys", "_left", "_parts", "limit", "moment")

    def __init__(self, limit: int, moment: object) -> None:
        """`moment` is the state of the shard that the view shows."""
        self.limit = limit
        self.moment = moment
        self._keys: list[Sequence[bytes]] = []
        self._parts: list[Current] = []
        self._left = MOST_BYTES

    def add(self, keys: Sequence[bytes], rows: Current) -> None:
        """Keeps rows, with their stored keys, unless they are too large."""
        size = sum(map(len, filter(None, rows.values)))
        if size <= self._left:
            self._left -= size
            self._keys.append(keys)
            self._parts.append(rows)

    def current(
        self, keys: Sequence[bytes], read: Callable[[Sequence[bytes], int], Current]
    ) -> Current:
        """Returns the rows of `keys`; reads with `read` those that it does not have."""
        for known, rows in zip(self._keys, self._parts, strict=True):
            if len(known) == len(keys) and known == keys:
                return rows  # nearly always: each slate that was read was changed
        places = {key: place for place, key in enumerate(chain.from_iterable(self._keys))}
        unknown = [key for key in keys if key not in places]
        parts = [*self._parts, read(unknown, self.limit)]
        places.update((key, place) for place, key in enumerate(unknown, sum(map(len, self._keys))))
        chosen = [places[key] for key in keys]
        seeds = _chosen(chosen, [part.seeds for part in parts])
        values = _chosen(chosen, [part.values for part in parts])
        ends = _chosen(chosen, [part.ends for part in parts])
        # All parts show the same transaction: all or none have `at`.
        at = [part.at for part in parts if part.at is not None]
        if not at:
            return Current(array("I", seeds), values, array("q", ends))
        batches = _chosen(chosen, [part.batches for part in parts])
        return Current(
            array("I", seeds), values, array("q", ends), _chosen(chosen, at), array("q", batches)
        )


def _chosen(places: list[int], parts: Sequence[Sequence[T]]) -> list[T]:
    """The elements of all parts together that are at `places`."""
    whole = list(chain.from_iterable(parts))
    return [whole[place] for place in places]


NOTHING_READ: Mapping[int, ReadRows] = MappingProxyType({})
"""No rows of any shard."""
