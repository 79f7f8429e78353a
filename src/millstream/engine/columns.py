"""Holds many deliveries as columns, and packs them to bytes.

A delivery is one event on its way to one function. Columns of plain lists go through msgpack in
one call each way, which makes it cheap to move events between tasks in large frames instead of row
by row.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from operator import itemgetter

import msgspec

Packed = tuple[list[int], list[int], list[str], list[bytes]]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Packed).decode


class Columns:
    """Deliveries to one function: stream numbers, times, keys and encoded values, side by side."""

    __slots__ = ("keys", "streams", "ts", "values")

    def __init__(
        self,
        streams: list[int] | None = None,
        ts: list[int] | None = None,
        keys: list[str] | None = None,
        values: list[bytes] | None = None,
    ) -> None:
        self.streams: list[int] = streams if streams is not None else []
        self.ts: list[int] = ts if ts is not None else []
        self.keys: list[str] = keys if keys is not None else []
        self.values: list[bytes] = values if values is not None else []

    def __len__(self) -> int:
        return len(self.ts)

    def add(self, stream: int, ts: int, key: str, value: bytes) -> None:
        self.streams.append(stream)
        self.ts.append(ts)
        self.keys.append(key)
        self.values.append(value)

    def extend(self, other: Columns) -> None:
        self.streams += other.streams
        self.ts += other.ts
        self.keys += other.keys
        self.values += other.values

    def slice(self, start: int, stop: int) -> Columns:
        return Columns(
            self.streams[start:stop],
            self.ts[start:stop],
            self.keys[start:stop],
            self.values[start:stop],
        )

    def by_time(self) -> Columns:
        """Returns the same deliveries in order of time."""
        ts = self.ts
        if all(a <= b for a, b in pairwise(ts)):
            return self
        return self.pick(sorted(range(len(ts)), key=ts.__getitem__))

    def until(self, time: int) -> int:
        """Counts the deliveries with a time up to `time`; the columns must be in order of time."""
        return bisect_right(self.ts, time)

    def pack(self) -> bytes:
        return _encode((self.streams, self.ts, self.keys, self.values))

    @classmethod
    def unpack(cls, packed: bytes) -> Columns:
        return cls(*_decode(packed))

    def split(self, to: list[int], parts: int) -> list[Columns | None]:
        """Splits the deliveries into parts, given each delivery's part; None for an empty part."""
        chosen: list[list[int]] = [[] for _ in range(parts)]
        for index, part in enumerate(to):
            chosen[part].append(index)
        return [self.pick(indices) if indices else None for indices in chosen]

    def of(self, key: str) -> Columns:
        """Returns the deliveries of one key."""
        return self.pick([index for index, other in enumerate(self.keys) if other == key])

    def pick(self, indices: list[int]) -> Columns:
        """Returns the deliveries at these indices, in this order."""
        if not indices:
            return Columns()
        if len(indices) == 1:
            return self.slice(indices[0], indices[0] + 1)
        pick = itemgetter(*indices)
        return Columns(
            list(pick(self.streams)),
            list(pick(self.ts)),
            list(pick(self.keys)),
            list(pick(self.values)),
        )
