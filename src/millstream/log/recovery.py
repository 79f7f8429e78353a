"""Recovers the state of a log when a writer opens it, after a crash too.

The last segment is read whole. The remains of an interrupted append at its end were never
acknowledged, and are cut off; a whole block is kept even if its writer died before publishing it.
Such blocks are written once more: after a disk error the system may show data that it has given up
writing.

Every segment before the last was whole and on disk before the next one was created, so its length
must match the names. A mismatch is damage, and nothing is touched. It is damage too if the last
segment is shorter than `end` says, or if a whole block follows a bad one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from millstream.counted_nouns import counted, verb
from millstream.durable import sync, write_at
from millstream.errors import LogError
from millstream.log.blocks import BadBlock, Header, Tag, headers, holds_a_block, tags_at, walk
from millstream.log.retention import Sealed
from millstream.log.segments import (
    Segment,
    create_segment,
    damaged,
    list_segments,
    read_end,
    segment_at,
)
from millstream.log.tags import remembered

_CHUNK = 1 << 20


class Recovered(NamedTuple):
    """The state of a log, all of it on disk. The last segment is open in `file`."""

    sealed: list[Sealed]
    active: Segment
    file: int
    size: int
    """Bytes in the last segment."""
    records: int
    """Records in all."""
    first_stamp: int | None
    """The time of the first append to the last segment; None if it has no block."""
    last_stamp: int
    tags: list[Tag]
    """The tags to remember, in order."""
    torn: int
    """Bytes of an interrupted append that were cut off."""


def recover(folder: Path, now: int | None) -> Recovered:
    """Open the segments of a log that no one else writes to; create the first if there is none.

    Tags of the last day before `now` are remembered; None: only the last tag.
    """
    segments = list_segments(folder)
    if segments:
        file = os.open(segments[-1].path, os.O_RDWR | os.O_CLOEXEC)
    else:
        segments = [segment_at(folder, 0, 0)]
        file = create_segment(folder, segments[0])
    try:
        _check_lengths(segments)
        return _recover(folder, segments, file, now)
    except BaseException:
        os.close(file)
        raise


def _recover(folder: Path, segments: list[Segment], file: int, now: int | None) -> Recovered:
    active = segments[-1]
    length = os.fstat(file).st_size
    size, records, bad = 0, active.first, ""
    first: Header | None = None
    last: Header | None = None
    tags: list[Tag] = []
    try:
        for block in walk(file, active.offset, active.offset, active.offset + length, records):
            last = block.header
            first = first or last
            size, records = size + last.size, records + last.count
            tags += block.tags()
    except BadBlock as error:
        bad = error.why
    _check_end(folder, active, [active.offset + size, records], bad)
    if bad and holds_a_block(os.pread(file, length - size, size)):
        raise damaged(active, size, f"{bad}, and whole blocks follow")
    firsts = [next(_read(segment))[0] for segment in segments[1:-1]]
    sealed = [
        _seal(*three) for three in zip(segments, segments[1:], [*firsts, first], strict=False)
    ]
    if bad:
        os.ftruncate(file, size)
    _write_again(file, max(0, (read_end(folder) or [0])[0] - active.offset), size)
    os.fsync(file)
    sync(folder)
    # Tags of earlier segments of the last day. If the last segment has no block yet, also those of
    # the one before it: it has the last tag.
    known = 0 if now is None else remembered(sealed, now)
    if first is None and sealed:
        known = max(known, 1)
    earlier = [
        tag for segment in segments[-1 - known : -1] for _, block in _read(segment) for tag in block
    ]
    return Recovered(
        sealed,
        active,
        file,
        size,
        records,
        first.stamp if first else None,
        last.stamp if last else sealed[-1].last_stamp if sealed else 0,
        earlier + tags,
        length - size,
    )


def _write_again(file: int, start: int, stop: int) -> None:
    """Write these bytes of the file again, so that the next sync covers them too."""
    for at in range(start, stop, _CHUNK):
        write_at(file, os.pread(file, min(_CHUNK, stop - at), at), at)


def _check_lengths(segments: list[Segment]) -> None:
    for segment, following in pairwise(segments):
        length, must = os.stat(segment.path).st_size, following.offset - segment.offset
        if length != must or not must:
            why = f"it must have {must} bytes, as the next segment's name says, and has {length}"
            raise damaged(segment, min(length, must), why)


def _check_end(folder: Path, active: Segment, whole: list[int], bad: str) -> None:
    """Raise LogError if the blocks end before the position in `end`, which was on disk once."""
    end = read_end(folder)
    if end is not None and end > whole:
        records, were = counted(end[1], "record"), verb(end[1], "was", "were")
        raise LogError(
            f"log {folder}: {records} ({end[0]:,} bytes) {were} on disk, says its file `end`, "
            f"and {active.path} is whole only up to record {whole[1]} (offset {whole[0]})"
            f"{bad and ': '}{bad}; restore the log's folder from a copy, or, to go on without the "
            "lost records, delete the file `end`"
        )


def _seal(segment: Segment, following: Segment, begins: Header | None) -> Sealed:
    """Describes a sealed segment; the next one's first block has the stamp of its last block."""
    if begins:
        last_stamp = begins.prior
    else:
        *_, (last, _) = _read(segment)
        last_stamp = last.stamp
    return Sealed(segment.offset, segment.first, following.offset, last_stamp)


def _read(segment: Segment) -> Iterator[tuple[Header, list[Tag]]]:
    """The headers of a segment's blocks, with their tags."""
    file = os.open(segment.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        stop = segment.offset + os.fstat(file).st_size
        for offset, header in headers(file, segment.offset, segment.offset, stop):
            yield header, tags_at(file, offset - segment.offset, header)
    except BadBlock as error:
        raise damaged(segment, error.offset - segment.offset, error.why) from None
    finally:
        os.close(file)
