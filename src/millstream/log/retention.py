"""Decides which segments of a log to remove: those too old, or too many, that no reader needs.

Pure: takes the segments, returns a number. Only sealed segments are removed, whole and oldest
first, so that no gap arises. The newest segment with records stays even when it is old: it holds
the last tag, which identifies the last append.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

DAY = 24 * 3600 * 1_000_000
"""In microseconds, like all times here."""


@dataclass(frozen=True, slots=True)
class Retention:
    """The age and the size up to which records are kept; None means no limit."""

    max_age: int | None = 7 * DAY
    max_bytes: int | None = 1 << 30


FOR_EVER = Retention(None, None)
NOTHING = Retention(None, 0)
"""Keeps only what readers need, and the newest segment."""


class Sealed(NamedTuple):
    """A segment that gets no more blocks."""

    offset: int
    first: int
    end: int
    """The offset at which it ends and the next begins."""
    last_stamp: int
    """The time at which its last block was appended."""


def removable(
    sealed: Sequence[Sealed], active_bytes: int, least: int | None, now: int, keep: Retention
) -> int:
    """The number of oldest sealed segments to remove.

    `least` is the offset of the reader that is furthest behind; None if there is no reader.
    """
    candidates = sealed if active_bytes else sealed[:-1]
    total = active_bytes + sum(segment.end - segment.offset for segment in sealed)
    for number, segment in enumerate(candidates):
        needed = least is not None and segment.end > least
        old = keep.max_age is not None and segment.last_stamp < now - keep.max_age
        many = keep.max_bytes is not None and total > keep.max_bytes
        if needed or not (old or many):
            return number
        total -= segment.end - segment.offset
    return len(candidates)
