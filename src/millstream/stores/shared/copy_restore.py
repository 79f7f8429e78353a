"""Restores a copy of a shard from the objects of the place, or brings an existing one up to date.

A restored copy need not remember the batches before it. So the changes since the base are not
applied one after the other: they are merged in memory, and each row is written once.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from pathlib import Path

from millstream.places.place import Place
from millstream.stores.contract import Changes
from millstream.stores.shard_writer import write_shard
from millstream.stores.shared.changes_object import ChangeFrame
from millstream.stores.shared.manifest import NO_LINEAGE, Lineage, ShardManifest
from millstream.stores.shared.segment_reader import SegmentReader
from millstream.stores.shared.shard_base import read_base
from millstream.stores.shared.shard_copy import (
    FORGOTTEN,
    MARKS_KEY,
    UNTOUCHED,
    BatchMark,
    CopyMarks,
    ShardCopy,
    lineage_of,
    marks_row,
)

Row = tuple[bytes, bytes]


def frames_after(
    segments: SegmentReader, shard: int, start: Lineage, manifest: ShardManifest
) -> list[ChangeFrame] | None:
    """The frames after a change; None if the change was not committed, or the frames after it are
    no longer known."""
    base = manifest.bases.get(shard)
    if base is not None and start != base.lineage and start[0] <= base.batch:
        return None
    if start == NO_LINEAGE or (base is not None and start == base.lineage):
        wanted = manifest.segments_after(shard, start[0])
        return [frame for frame in segments.frames(shard, wanted) if frame.batch > start[0]]
    wanted = manifest.segments_after(shard, start[0] - 1)
    frames = [*segments.frames(shard, wanted)]
    names = tuple(sorted({frame.id for frame in frames if frame.batch == start[0]}))
    if names != start[1]:
        return None
    return [frame for frame in frames if frame.batch > start[0]]


def apply_frames(copy: ShardCopy, frames: Iterable[ChangeFrame], onto: Lineage) -> None:
    """Apply frames in order; `onto` is the change before the first."""
    at, names = onto
    under = onto
    for frame in frames:
        if frame.batch != at:
            under, at, names = (at, names), frame.batch, ()
        copy.advance(frame.batch, frame.id, frame.changes, under)
        names = tuple(sorted({*names, frame.id}))


def brought_on(
    copy: ShardCopy, segments: SegmentReader, shard: int, manifest: ShardManifest
) -> bool:
    """Bring a copy to the manifest's last change of its shard, from its own last change or from the
    one before; False, with nothing changed, if neither of the two was committed.

    Raises CopyMoved if another task changes the copy meanwhile.
    """
    marks = copy.marks()
    for mark in (marks.current, marks.previous):
        if mark.batch == FORGOTTEN or (mark is marks.previous and marks == UNTOUCHED):
            continue
        if not mark.objects and mark.batch != NO_LINEAGE[0]:
            continue  # an attempt without changes: the change before it counts
        start = lineage_of(mark)
        is_last = start == manifest.lineage(shard)  # then no request goes to the place
        frames = [] if is_last else frames_after(segments, shard, start, manifest)
        if frames is not None:
            if mark is marks.previous:
                copy.take_back(marks)
            apply_frames(copy, frames, start)
            return True
    return False


def write_restored(
    place: Place,
    segments: SegmentReader,
    folder: Path,
    shard: int,
    manifest: ShardManifest,
    patience: float,
) -> None:
    """Make a copy of a shard, as of the manifest, in a folder that must not exist yet."""
    base = manifest.bases.get(shard)
    start = NO_LINEAGE if base is None else base.lineage
    frames = frames_after(segments, shard, start, manifest)
    assert frames is not None, "what follows a base is known"
    rows: Iterator[Row] = iter(()) if base is None else read_base(place, base, patience)
    lineage = manifest.lineage(shard)
    batch = max(lineage[0], -1 if base is None else base.batch)
    own = {} if lineage == NO_LINEAGE else {MARKS_KEY: marks_row(_marks_of(lineage))}
    write_shard(folder, merged(rows, folded(frames)), 0, batch, synced=False, own=own)


def folded(frames: Iterable[ChangeFrame]) -> dict[bytes, bytes | None]:
    """The combined changes of frames; of a function's attempts at one batch, the last counts."""
    whole: dict[bytes, bytes | None] = {}
    batch, tries = NO_LINEAGE[0], dict[str, Changes]()
    for frame in frames:
        if frame.batch != batch:
            for changes in tries.values():
                whole.update(changes)
            batch, tries = frame.batch, {}
        tries.update(frame.changes)
    for changes in tries.values():
        whole.update(changes)
    return whole


def merged(rows: Iterator[Row], changed: dict[bytes, bytes | None]) -> Iterator[Row]:
    """Applies changes to rows; yields them in key order.

    >>> [*merged(iter([(b"a", b"1"), (b"c", b"1")]), {b"b": b"2", b"c": None})]
    [(b'a', b'1'), (b'b', b'2')]
    """
    if not changed:
        return rows
    kept = ((key, value) for key, value in rows if key not in changed)
    put = ((key, value) for key, value in sorted(changed.items()) if value is not None)
    return heapq.merge(kept, put)


def _marks_of(lineage: Lineage) -> CopyMarks:
    """The marks of a restored copy, which remembers nothing before this change."""
    batch, names = lineage
    objects = {f"#{number}": name for number, name in enumerate(names)}
    return CopyMarks(BatchMark(batch, objects), BatchMark(FORGOTTEN, {}))
