"""Turns records whose times jump (`model.time_jumps`) into dead letters.

A record is compared with its neighbours in the file, so a split also reads some records before its
start and after its end. This reads a few records twice, but the result does not depend on where the
file was split.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import msgspec

from millstream.model.duration import shown_duration
from millstream.model.letter_records import bad_record
from millstream.model.source import Source
from millstream.model.time_jumps import NEIGHBOURS, jumping
from millstream.sources.formats import Chunk, Format, InputSplit

TimeOf = Callable[[Any], int | None]


@dataclass(slots=True)
class _HeldChunk:
    """A chunk that is held until the times of the records after it are known."""

    chunk: Chunk
    times: list[int]
    """The times of the records that have one."""
    indexes: list[int]
    """The indexes of these records in the chunk."""


def without_jumps(format: Format, split: InputSplit, source: Source, clock: int) -> Iterator[Chunk]:
    """Yields the chunks of a split; records whose times jump are bad records in them."""
    assert source.jump is not None
    time_of = _reader(source, clock)
    before = _times_before(format, split, time_of)
    held: list[_HeldChunk] = []
    for chunk in format.read(split):
        held.append(_held(chunk, time_of))
        while sum(len(later.times) for later in held[1:]) >= NEIGHBOURS:
            after = [ts for later in held[1:] for ts in later.times]
            yield _judged(held[0], before, after, source)
            before = (before + held.pop(0).times)[-NEIGHBOURS:]
    beyond = _times_after(format, split, time_of)
    while held:
        after = [ts for later in held[1:] for ts in later.times] + beyond
        yield _judged(held[0], before, after, source)
        before = (before + held.pop(0).times)[-NEIGHBOURS:]


def _reader(source: Source, clock: int) -> TimeOf:
    extract = replace(source, key=None, ahead=None).extractor()

    def time_of(record: Any) -> int | None:
        try:
            return extract(record, clock)[0]
        except Exception:
            return None  # the intake will report what is wrong with it

    return time_of


def _held(chunk: Chunk, time_of: TimeOf) -> _HeldChunk:
    timed = [
        (index, ts)
        for index, record in enumerate(chunk.records)
        if (ts := time_of(record)) is not None
    ]
    return _HeldChunk(chunk, [ts for _, ts in timed], [index for index, _ in timed])


def _times_before(format: Format, split: InputSplit, time_of: TimeOf) -> list[int]:
    """Returns the times of the last records before a split."""
    back = format.look_back
    while split.start > 0:
        begin = max(0, split.start - back)
        chunks = format.read(InputSplit(split.path, begin, split.start))
        times = [ts for chunk in chunks for ts in _held(chunk, time_of).times]
        if len(times) >= NEIGHBOURS or begin == 0:
            return times[-NEIGHBOURS:]
        back *= 4
    return []


def _times_after(format: Format, split: InputSplit, time_of: TimeOf) -> list[int]:
    """Returns the times of the first records after a split."""
    if split.stop is None:
        return []
    chunks = format.read(InputSplit(split.path, split.stop, None))
    return list(islice((ts for chunk in chunks for ts in _held(chunk, time_of).times), NEIGHBOURS))


def _judged(held: _HeldChunk, before: list[int], after: list[int], source: Source) -> Chunk:
    assert source.jump is not None
    times = [*before, *held.times, *after[:NEIGHBOURS]]
    stop = len(before) + len(held.times)
    jumps = jumping(times, source.jump, len(before), stop)
    if not jumps:
        return held.chunk
    return _without(held.chunk, {held.indexes[at - len(before)]: times[at] for at in jumps}, source)


def _without(chunk: Chunk, wrong: dict[int, int], source: Source) -> Chunk:
    kept = [index for index in range(len(chunk.records)) if index not in wrong]
    bad = list(chunk.bad)
    for index, ts in wrong.items():
        raw = chunk.raw[index] if chunk.raw else msgspec.json.encode(chunk.records[index])
        bad.append(bad_record(chunk.line_of(index), raw, _error(source, ts), "json"))
    lines = chunk.lines
    return chunk._replace(
        records=[chunk.records[index] for index in kept],
        raw=None if chunk.raw is None else [chunk.raw[index] for index in kept],
        bad=bad,
        lines=[chunk.first + index if lines is None else lines[index] for index in kept],
        stamps=None if chunk.stamps is None else [chunk.stamps[index] for index in kept],
    )


def _error(source: Source, ts: int) -> str:
    try:
        shown_time = datetime.fromtimestamp(ts / 1e6, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        shown_time = f"{ts} microseconds"
    return (
        f"source {source.name!r}: ts must be no more than {shown_duration(source.jump or 0)} "
        f"(jump=) after those of the records around it; got {shown_time}: one such time would make "
        "the records after it late"
    )
