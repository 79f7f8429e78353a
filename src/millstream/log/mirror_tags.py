"""Reads the tags in the segments of a mirror, for a writer to the log that it follows.

Another process may write to the mirror meanwhile. Only headers and tags are read.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from millstream.errors import LogError
from millstream.log.blocks import BadBlock, Tag, headers, tags_at
from millstream.log.segments import Segment, list_segments, read_end


class Mirrored(NamedTuple):
    """The tags of a mirror."""

    start: list[int]
    """The first position whose tags are included."""
    end: list[int]
    stamp: int
    """The time at which its last block was appended."""
    tags: list[Tag]


def mirrored_tags(folder: Path, since: Sequence[int] | None, young: int = 0) -> Mirrored | None:
    """The tags of a mirror from a position on; None if it begins after that, or is damaged.

    Segments whose blocks were all appended before `young` may be left out.
    """
    try:
        end, segments = read_end(folder), list_segments(folder)
        if end is None or not segments or (since is not None and since[0] < segments[0].offset):
            return None
        stamp, tags = 0, list[list[Tag]]()
        start = list(end)
        for segment in reversed(segments):
            begin = segment.offset if since is None else max(segment.offset, since[0])
            first, last, segment_tags = _tags_of(segment, begin, end[0])
            tags.append(segment_tags)
            stamp = max(stamp, last)
            start = [segment.offset, segment.first]
            if begin > segment.offset or (first and first < young):
                break
        return Mirrored(
            start, end, stamp, [tag for segment_tags in reversed(tags) for tag in segment_tags]
        )
    except (LogError, BadBlock, OSError):
        return None


def _tags_of(segment: Segment, begin: int, end: int) -> tuple[int, int, list[Tag]]:
    """The stamps of the first and the last block of a part of a segment, and the blocks' tags."""
    file = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
    first = last = 0
    tags: list[Tag] = []
    try:
        stop = min(end, segment.offset + os.fstat(file).st_size)
        for offset, header in headers(file, segment.offset, begin, stop):
            first, last = first or header.stamp, header.stamp
            tags += tags_at(file, offset - segment.offset, header)
    finally:
        os.close(file)
    return first, last, tags
