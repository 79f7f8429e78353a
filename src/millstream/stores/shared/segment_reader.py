"""Reads a shard's changes from segments: a part of a large object, the whole of a small one."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from millstream.errors import PlaceDamaged
from millstream.places.place import Place, persistent, unsealed
from millstream.stores.shared.changes_object import (
    HEAD_GUESS,
    ChangeFrame,
    frames_in,
    section,
    section_bounds,
)
from millstream.stores.shared.manifest import ChangesSegment

WHOLE_BYTES = 1 << 20
"""Objects up to this size are read whole."""
KEPT_BYTES = 64 << 20
"""The most bytes of objects that are kept in memory, since other shards need them too."""
AT_ONCE = 8


class SegmentReader:
    """Reads segments of a place. Several threads may use it."""

    def __init__(self, place: Place, patience: float) -> None:
        self._place = place
        self._patience = patience
        self._kept: OrderedDict[str, bytes] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def frames(self, shard: int, segments: Sequence[ChangesSegment]) -> Iterator[ChangeFrame]:
        """The frames of a shard in the segments, in order."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            sections = pool.map(lambda segment: self._section(segment, shard), segments)
            for segment, data in zip(segments, sections, strict=True):
                yield from frames_in(f"{self._place.address}/{segment.name}", data)

    def _section(self, segment: ChangesSegment, shard: int) -> bytes:
        if segment.size <= WHOLE_BYTES:
            return section(self._whole(segment.name), shard)
        guess = HEAD_GUESS
        while True:
            beginning = self._got(segment.name, 0, guess)
            try:
                bounds = section_bounds(beginning)
            except ValueError as error:
                raise self._damaged(segment.name, str(error)) from None
            if bounds is not None:
                if shard not in bounds:
                    raise self._damaged(segment.name, f"it must have frames of shard {shard}")
                return self._got(segment.name, *bounds[shard])
            if len(beginning) < guess:
                raise self._damaged(segment.name, "it ends within its head")
            guess *= 4

    def _whole(self, name: str) -> bytes:
        with self._lock:
            if name in self._kept:
                self._kept.move_to_end(name)
                return self._kept[name]
        content = unsealed(self._place, name, self._got(name))
        with self._lock:
            if name not in self._kept:
                self._kept[name] = content
                self._size += len(content)
            while self._size > KEPT_BYTES:
                _, old = self._kept.popitem(last=False)
                self._size -= len(old)
        return content

    def _got(self, name: str, start: int = 0, end: int | None = None) -> bytes:
        data = persistent(lambda: self._place.get(name, start, end), self._patience)
        if data is None:
            raise PlaceDamaged(
                f"{self._place.address}/{name}: is missing, and a commit names it; restore it from "
                "a copy or an earlier version of the bucket"
            )
        return data

    def _damaged(self, name: str, why: str) -> PlaceDamaged:
        return PlaceDamaged(
            f"{self._place.address}/{name}: is damaged: {why}; restore it from a copy or an "
            "earlier version of the bucket"
        )
