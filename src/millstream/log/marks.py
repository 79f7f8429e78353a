"""Block boundaries of one segment that a reader has met, sparse and in order.

To find the boundary nearest to an offset or a record, a reader walks headers from a boundary that
it knows. The marks keep one for about every 16 KiB walked over, so that a walk is short the second
time, and memory is small however many blocks there are.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right

SPACING = 16 << 10


class Marks:
    """Boundaries as pairs (offset, records), the segment's beginning always among them."""

    def __init__(self, offset: int, records: int) -> None:
        self._offsets = array("Q", [offset])
        self._records = array("Q", [records])

    def __len__(self) -> int:
        return len(self._offsets)

    def below_offset(self, offset: int) -> tuple[int, int]:
        """The last mark that is not behind the offset."""
        at = bisect_right(self._offsets, offset) - 1
        return self._offsets[at], self._records[at]

    def below_record(self, record: int) -> tuple[int, int]:
        """The last mark with no more records before it than this."""
        at = bisect_right(self._records, record) - 1
        return self._offsets[at], self._records[at]

    def add(self, offset: int, records: int) -> None:
        """Remember a boundary, unless one close before it is known."""
        at = bisect_right(self._offsets, offset)
        if offset - self._offsets[at - 1] >= SPACING:
            self._offsets.insert(at, offset)
            self._records.insert(at, records)
