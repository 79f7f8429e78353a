"""Splits a stream of bytes into lines as they come.

A line that is written into a pipe must be sent even if nothing follows. So each piece that was read
is followed by None, which means that this is all there is for now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

PIECE = 1024 * 1024
LONGEST = 1024 * 1024
"""The longest line that the server accepts. One byte more is kept of a longer line, which shows
that it is too long."""


def lines_of(read: Callable[[int], bytes]) -> Iterator[bytes | None]:
    """Yields the lines from `read` without their ends, and None before each further call of it.

    >>> from io import BytesIO
    >>> list(lines_of(BytesIO(b"1" + bytes([10]) + b"2").read))
    [b'1', None, b'2']
    """
    rest = b""
    while piece := read(PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        yield from lines
        yield None
        rest = rest[: LONGEST + 1]
    if rest:
        yield rest
