"""A queue for events that wait in their shard because there were too many for the batch.

In arrival order an update that has reached its limit or share leaves the rest here, first in, first
out. There are lanes: one for all events of the function in the shard, or one for each hot key. A
directory row holds the lanes and their lengths, so that a function without any, as nearly all are,
costs one lookup.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from millstream.engine.columns import Columns
from millstream.stores.contract import View, after_prefix
from millstream.stores.layout import queue_directory, queue_lane, queue_row

CHUNK = 4_096
ALL = ""
"""The lane of all keys; a key's own lane is its key after HOT."""
HOT = "="


def lane_of(key: str) -> str:
    """Returns the lane of a hot key."""
    return HOT + key


class Queue:
    """The lanes of one function in one shard during one batch."""

    def __init__(self, view: View, function: str) -> None:
        self._view = view
        self._function = function
        stored = view.get(queue_directory(function))
        self._lengths: dict[str, int] = (
            {} if stored is None else msgspec.msgpack.decode(stored, type=dict[str, int])
        )
        self._changed: dict[bytes, bytes | None] = {}
        self._put: dict[str, Columns] = {}
        self.change = 0
        """The change in the number of waiting events in this batch."""

    def __bool__(self) -> bool:
        return bool(self._lengths)

    def __len__(self) -> int:
        return sum(self._lengths.values())

    def __contains__(self, lane: str) -> bool:
        return lane in self._lengths

    @property
    def lanes(self) -> list[str]:
        return list(self._lengths)

    def take(self, lane: str, most: int | None = None) -> Columns:
        """Takes the first events out of a lane, at most `most`. Must not be called after `put`."""
        taken = Columns()
        for row, packed in self._rows(lane):
            chunk = Columns.unpack(packed)
            room = len(chunk) if most is None else most - len(taken)
            taken.extend(chunk.slice(0, room))
            if room < len(chunk):
                self._changed[row] = chunk.slice(room, len(chunk)).pack()
                break
            self._changed[row] = None
            if most is not None and len(taken) == most:
                break
        self._lengthen(lane, -len(taken))
        return taken

    def _rows(self, lane: str) -> Iterator[tuple[bytes, bytes]]:
        if lane in self._lengths:
            prefix = queue_lane(self._function, lane)
            for row, packed in self._view.scan(prefix, after_prefix(prefix)):
                now = self._changed.get(row, packed)
                if now is not None:
                    yield row, now

    def put(self, lane: str, events: Columns) -> None:
        """Appends events to a lane, in their order."""
        self._put.setdefault(lane, Columns()).extend(events)
        self._lengthen(lane, len(events))

    def _lengthen(self, lane: str, by: int) -> None:
        self.change += by
        length = self._lengths.get(lane, 0) + by
        if length:
            self._lengths[lane] = length
        else:
            self._lengths.pop(lane, None)

    def changes(self, batch: int) -> dict[bytes, bytes | None]:
        """Returns the rows to put and to delete."""
        rows = dict(self._changed)
        for lane, events in self._put.items():
            prefix = queue_lane(self._function, lane)
            for number, start in enumerate(range(0, len(events), CHUNK)):
                chunk = events.slice(start, start + CHUNK)
                rows[queue_row(prefix, batch, number)] = chunk.pack()
        if rows:
            directory = msgspec.msgpack.encode(self._lengths) if self._lengths else None
            rows[queue_directory(self._function)] = directory
        return rows
