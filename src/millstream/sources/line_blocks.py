"""Reads the lines of a file a block at a time; a split owns the lines that *begin* in it.

A split skips the line that began before it, and reads its last line to the end, past `stop` if
necessary. So a file can be cut anywhere, without reading it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import IO

BLOCK_BYTES = 256 * 1024
LINE_BYTES = 64 * 1024 * 1024
"""A longer line is bad: a file without any newline must not fill the memory."""
BOM = b"\xef\xbb\xbf"
WIDE_BOMS = (b"\xff\xfe", b"\xfe\xff")
"""The byte-order marks of UTF-16."""


class LinesBefore:
    """The number of lines before an offset, counted once, on the first call."""

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


def first_line(file: IO[bytes], start: int, stop: int | None) -> int | None:
    """Returns the offset of the first line that begins in [start, stop); None if there is none."""
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


def blocks(read: Callable[[int], bytes], at: int, stop: int | None) -> Iterator[bytes]:
    """Yields all lines from `at` on that begin before `stop`, several at a time, with blank ones.

    Each block is without its last newline.
    """
    # The unfinished line, in parts, so that a long one is joined only once. Of a line that is too
    # long, only enough is held for the decoder to notice that.
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
