"""JSON lines: one JSON value per line.

DESIGN
------
A split owns the lines that begin in it (`line_blocks`). Each line is decoded by itself, never
joined with another: two torn lines could make one valid value. The file is read a block at a time;
the lines of a block are decoded in one pass, and a slower loop handles blocks with blank or wrong
lines. Compressed files (`.gz`) are one split, and so is a file that is one array (`json_arrays`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any

import msgspec

from millstream.columnar.picked_fields import Fields
from millstream.json_checks.json_depth import DEEPEST, any_too_deep, too_deep
from millstream.model.letter_records import Bad, bad_record
from millstream.model.line_records import is_array
from millstream.sources import line_blocks
from millstream.sources.formats import (
    CHUNK_RECORDS,
    Chunk,
    InputSplit,
    is_gzip,
    line_splits,
    opened,
)
from millstream.sources.json_arrays import array_chunks
from millstream.sources.line_blocks import LinesBefore, blocks, first_line
from millstream.sources.picked import picker
from millstream.sources.whole_files import unchanged, unfit, whole_file

_decode = msgspec.json.Decoder().decode


class JsonLines:
    """The JSON lines format, in units of bytes; a compressed file is one unit."""

    name = "json"
    look_back = 1 << 16
    splits = staticmethod(line_splits)

    def units(self, path: str, size: int) -> int:
        if is_gzip(path):
            return 1
        with open(path, "rb") as file:
            return 1 if _is_array(file) else max(1, size)

    def read(self, split: InputSplit, fields: Fields | None = None) -> Iterator[Chunk]:
        """Yields the records of a split. With `fields`, decodes only these where that is safe
        (`picked`)."""
        with opened(split.path, buffering=0) as file:
            if split.start == 0 and split.stop is None:
                yield from _read_whole(file, split.path, fields)
                return
            wrong = unfit(file, split, None)
            if wrong is not None:
                yield Chunk([], None, wrong, None)
                return
            begin = first_line(file, split.start, split.stop)
            if begin is not None:
                file.seek(begin)
                before = LinesBefore(split.path, begin)
                yield from _chunks(blocks(file.read, begin, split.stop), before, fields)


def _is_array(file: IO[bytes]) -> bool:
    """True if the file is one array. The file must be at its start, and is left there."""
    try:
        return is_array(file.read, line_blocks.LINE_BYTES)
    finally:
        file.seek(0)


def _read_whole(file: IO[bytes], path: str, fields: Fields | None) -> Iterator[Chunk]:
    whole = whole_file(file, path, None)
    if isinstance(whole, Bad):
        yield Chunk([], None, [whole], None)
        return
    with unchanged(path):
        if _is_array(whole):
            yield from array_chunks(whole)
        else:
            yield from _chunks(blocks(whole.read, 0, None), LinesBefore("", 0), fields)


def _chunks(
    blocks: Iterator[bytes], before: LinesBefore, fields: Fields | None = None
) -> Iterator[Chunk]:
    first = 0
    pick = None if fields is None else picker(fields)
    for block in blocks:
        if first == 0 and before.offset == 0:
            block = block.removeprefix(line_blocks.BOM)
        picked = pick(block) if pick is not None and len(block) <= line_blocks.LINE_BYTES else None
        if picked is not None:
            whole = partial(_whole, block, first, before)
            yield Chunk([], None, [], None, first, before, picked=picked, whole=whole)
            first += block.count(b"\n") + 1
            continue
        all_lines = block.split(b"\n")
        for low in range(0, len(all_lines), CHUNK_RECORDS):
            lines = all_lines[low : low + CHUNK_RECORDS]
            yield decode_lines(lines, first, before)
            first += len(lines)


def _whole(block: bytes, first: int, before: Callable[[], int]) -> Chunk:
    return decode_lines(block.split(b"\n"), first, before)


def decode_lines(lines: list[bytes], first: int, before: Callable[[], int]) -> Chunk:
    """Decodes lines into a chunk. `first` is the number of the first line, after `before()`
    others."""
    # Only the first line of a block can be longer than LINE_BYTES.
    if len(lines[0]) <= line_blocks.LINE_BYTES:
        try:
            records: list[Any] = list(map(_decode, lines))
            if not any_too_deep(lines):
                return Chunk(records, lines, [], None, first, before)
        except (ValueError, RecursionError):
            pass
    records = []
    raw: list[bytes] = []
    numbers: list[int] = []
    bad: list[Bad] = []
    for number, line in enumerate(lines, first):
        if not line or line.isspace():
            continue
        try:
            if len(line) > line_blocks.LINE_BYTES:
                raise ValueError(f"it is longer than {line_blocks.LINE_BYTES} bytes")
            record = _decode(line)
            if too_deep(line):
                raise ValueError(f"it is nested more than {DEEPEST} deep")
            records.append(record)
        except (ValueError, RecursionError) as error:
            reason = _reason(line, error)
            bad.append(bad_record(before() + number + 1, line, reason, "json"))
        else:
            raw.append(line)
            numbers.append(number)
    return Chunk(records, raw, bad, numbers, first, before)


def _reason(line: bytes, error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        got = "bytes that are not UTF-8; write the file as UTF-8"
    elif line.lstrip()[:1] in b"{[" and "truncated" in str(error):
        got = "one that ends too early; was it written in parts?"
    else:
        got = f"this: {str(error)[:200]}"
    return f"a line must be one whole JSON value; got {got}"
