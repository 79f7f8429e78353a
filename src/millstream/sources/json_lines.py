"""JSON lines: one JSON value a line.

DESIGN
------
A split owns the lines that *begin* in [start, stop): it skips the line that was begun before it,
and reads its last line to the end, past `stop` if need be. So the cuts may fall anywhere, and need
no look into the file. Lines are decoded one by one, never joined: two torn lines could make one
valid value. The file is read a block at a time; the lines of a block are decoded in one call, and
one by one only when something in it is blank or wrong. Compressed files (`.gz`) are one split.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import IO, Any

import msgspec

from millstream.nesting import DEEPEST, too_deep
from millstream.sources.formats import (
    CHUNK_RECORDS,
    Bad,
    Chunk,
    Split,
    cut_evenly,
    given_up,
    is_gzip,
    shown,
    shrunk,
    unreadable,
)
from millstream.sources.picked import picker

BLOCK_BYTES = 256 * 1024
LINE_BYTES = 64 * 1024 * 1024
"""A longer line is bad: a file that has no lines at all must not fill the memory."""
BOM = b"\xef\xbb\xbf"

_decode = msgspec.json.Decoder().decode
Fields = tuple[str | None, str | None]
"""The fields with the key and the time, when nothing else is needed."""


class JsonLines:
    """JSON lines, in bytes; a compressed file in one."""

    name = "json"

    def units(self, path: str, size: int) -> int:
        return 1 if is_gzip(path) else max(1, size)

    def splits(
        self, path: str, size: int, units: int, start: int, stop: int, target_bytes: int
    ) -> list[Split]:
        if is_gzip(path):
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
            if is_gzip(split.path):
                yield from _read_gzip(file)
                return
            size = os.fstat(file.fileno()).st_size
            if split.stop is not None and size < split.stop:
                if size:
                    taken = f"at least {split.stop} bytes"
                    raise shrunk(split.path, taken, f"{size} bytes")
                yield Chunk([], None, [given_up(f"at least {split.stop} bytes")], None)
                return
            begin = _first_line(file, split.start, split.stop)
            if begin is not None:
                file.seek(begin)
                before = _LinesBefore(split.path, begin)
                yield from _chunks(_blocks(file.read, begin, split.stop), before, fields)


def _read_gzip(file: IO[bytes]) -> Iterator[Chunk]:
    if not file.read(1):
        yield Chunk([], None, [given_up("its events")], None)
        return
    file.seek(0)
    try:
        with gzip.open(file) as unpacked:  # read1, because read drops what precedes an error
            yield from _chunks(_blocks(unpacked.read1, 0, None), _LinesBefore("", 0))
    except (EOFError, OSError, zlib.error) as error:
        yield Chunk([], None, [broken_gzip(error)], None)


def broken_gzip(error: Exception) -> Bad:
    """The whole of a compressed file that ends early or is corrupt; what came before was read."""
    return Bad(
        0,
        "",
        f"a .gz file must be whole; this one is cut short or corrupt ({error}), and what follows "
        "is not read: write it elsewhere, then rename it into the directory under a new name",
    )


class _LinesBefore:
    """The number of lines before an offset, counted once, when asked for."""

    def __init__(self, path: str, offset: int) -> None:
        self._path = path
        self.offset = offset
        self._count: int | None = None

    def __call__(self) -> int:
        if self._count is None:
            self._count, left = 0, self.offset
            if left:
                with open(self._path, "rb", buffering=0) as file:
                    while left > 0 and (block := file.read(min(left, 1 << 20))):
                        self._count += block.count(b"\n")
                        left -= len(block)
        return self._count


def _first_line(file: IO[bytes], start: int, stop: int | None) -> int | None:
    """Where the first line that begins at `start` or later begins; None if not before `stop`."""
    if start == 0:
        return 0
    at = start - 1  # a line begins at `start` itself if a newline comes just before it
    file.seek(at)
    while (stop is None or at + 1 < stop) and (block := file.read(64 * 1024)):
        newline = block.find(b"\n")
        if newline >= 0:
            return at + newline + 1
        at += len(block)
    return None


def _blocks(read: Callable[[int], bytes], at: int, stop: int | None) -> Iterator[bytes]:
    """All lines from `at` on that begin before `stop`, blank ones too, some at a time.

    The newline after the last of them is left out.

    `held` is the line that has been begun: in parts, so that a long one is put together once. Of
    one that is too long, only so much is held as shows that it is.
    """
    held: list[bytes] = []
    length = 0
    while True:
        past = stop is not None and at >= stop
        if past and not held:
            return
        block = read(BLOCK_BYTES if past or stop is None else min(BLOCK_BYTES, stop - at))
        if not block:
            break
        at += len(block)
        cut = block.find(b"\n") if past else block.rfind(b"\n")
        if cut < 0:
            if length <= LINE_BYTES:
                held.append(block)
                length += len(block)
            continue
        yield b"".join([*held, block[:cut]]) if held else block[:cut]
        if past:
            return
        rest = block[cut + 1 :]
        held, length = [rest] if rest else [], len(rest)
    if held:
        yield b"".join(held)


def _chunks(
    blocks: Iterator[bytes], before: _LinesBefore, fields: Fields | None = None
) -> Iterator[Chunk]:
    first = 0
    pick = None if fields is None else picker(*fields)
    for block in blocks:
        if first == 0 and before.offset == 0:
            block = block.removeprefix(BOM)
        picked = pick(block) if pick is not None and len(block) <= LINE_BYTES else None
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
    if len(lines[0]) <= LINE_BYTES:  # only the first of a block can be longer than the block
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
            if len(line) > LINE_BYTES:
                raise ValueError(f"it is longer than {LINE_BYTES} bytes")
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
