"""Lines out of a stream of bytes, as they come.

Whoever writes a line into a pipe expects it to arrive, however little follows. So each piece that
was read is followed by None, which means: this is all there is for now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

PIECE = 1024 * 1024
LONGEST = 1024 * 1024
"""The server takes no longer line; of one, only as much is kept as shows that it is too long."""


def lines_of(read: Callable[[int], bytes]) -> Iterator[bytes | None]:
    """The lines that `read` gives, without their ends, and None whenever it has to be asked again.

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
