"""JSON lines: one JSON value a line.

DESIGN
------
A split owns the lines that begin in it (`line_blocks`). Lines are decoded one by one, never joined:
two torn lines could make one valid value. The file is read a block at a time; the lines of a block
are decoded in one call, and one by one only when something in it is blank or wrong. Compressed
files (`.gz`) are one split, and so is a file that is one array (`json_arrays`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any

import msgspec

from millstream.nesting import DEEPEST, too_deep
from millstream.sources import line_blocks
from millstream.sources.formats import (
    CHUNK_RECORDS,
    Bad,
    Chunk,
    Split,
    cut_evenly,
    is_gzip,
    shown,
    unreadable,
)
from millstream.sources.json_arrays import array_chunks, is_array
from millstream.sources.line_blocks import LinesBefore, blocks, first_line
from millstream.sources.picked import picker
from millstream.sources.whole_files import unchanged, unfit, whole_file

_decode = msgspec.json.Decoder().decode
Fields = tuple[str | None, str | None]
"""The fields with the key and the time, when nothing else is needed."""


class JsonLines:
    """JSON lines, in bytes; a compressed file in one."""

    name = "json"
    look_back = 1 << 16

    def units(self, path: str, size: int) -> int:
        if is_gzip(path):
            return 1
        with open(path, "rb") as file:
            return 1 if is_array(file) else max(1, size)

    def splits(
        self, path: str, size: int, units: int, start: int, stop: int, target_bytes: int
    ) -> list[Split]:
        if is_gzip(path) or units < size:
            return [Split(path, 0, None)]
        parts = -(-(stop - start) // max(1, target_bytes))
        return [Split(path, *cut) for cut in cut_evenly(start, stop, parts)]

    def read(self, split: Split, fields: Fields | None = None) -> Iterator[Chunk]:
        """The records of a split; with `fields`, no more of them than these where that will do."""
        try:
            file = open(split.path, "rb", buffering=0)  # noqa: SIM115  # its errors are told from the reader's
        except OSError as error:
            raise unreadable(split.path, error) from None
        with file:
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


def _read_whole(file: IO[bytes], path: str, fields: Fields | None) -> Iterator[Chunk]:
    whole = whole_file(file, path, None)
    if isinstance(whole, Bad):
        yield Chunk([], None, [whole], None)
        return
    with unchanged(path):
        if is_array(whole):
            yield from array_chunks(whole)
        else:
            yield from _chunks(blocks(whole.read, 0, None), LinesBefore("", 0), fields)


def _chunks(
    blocks: Iterator[bytes], before: LinesBefore, fields: Fields | None = None
) -> Iterator[Chunk]:
    first = 0
    pick = None if fields is None else picker(*fields)
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
    """Lines as a chunk, `first` being the line of the first of them, after `before()` others."""
    if (
        len(lines[0]) <= line_blocks.LINE_BYTES
    ):  # only the first of a block can be longer than the block
        try:
            records: list[Any] = list(map(_decode, lines))
            if not any(map(too_deep, lines)):
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
            bad.append(Bad(before() + number + 1, shown(line), _reason(line, error)))
        else:
            raw.append(line)
            numbers.append(number)
    return Chunk(records, raw, bad, numbers, first, before)


def _reason(line: bytes, error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        found = "bytes that are not UTF-8; write the file as UTF-8"
    elif line.lstrip()[:1] in b"{[" and "truncated" in str(error):
        found = "one that ends too early; was it written in parts?"
    else:
        found = f"this: {str(error)[:200]}"
    return f"a line must be one whole JSON value; got {found}"
