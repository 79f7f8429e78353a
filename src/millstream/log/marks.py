"""A sparse, ordered index of the block boundaries of one segment that a reader has seen.

To find the boundary nearest to an offset or a record, a reader walks headers from a boundary that
it knows. The marks keep one for about every 16 KiB walked, so that a second walk is short, and
memory use is small however many blocks there are.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

SPACING = 16 << 10


class Marks:
    """Boundaries as pairs (offset, records); always includes the start of the segment."""

    def __init__(self, offset: int, records: int) -> None:
        self._offsets = array("Q", [offset])
        self._records = array("Q", [records])

    def __len__(self) -> int:
        return len(self._offsets)

    def below_offset(self, offset: int) -> tuple[int, int]:
        """The last mark at or before an offset."""
        at = bisect_right(self._offsets, offset) - 1
        return self._offsets[at], self._records[at]

    def below_record(self, record: int) -> tuple[int, int]:
        """The last mark at or before a record."""
        at = bisect_right(self._records, record) - 1
        return self._offsets[at], self._records[at]

    def add(self, offset: int, records: int) -> None:
        """Remember a boundary, unless one shortly before it is known."""
        at = bisect_right(self._offsets, offset)
        if offset - self._offsets[at - 1] >= SPACING:
            self._offsets.insert(at, offset)
            self._records.insert(at, records)
