"""Cuts chunks into short slices of lines, so that an agent can do other things between two slices.

The number of lines in a slice is adapted to how long the last slices took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from millstream.agent.log.line_times import LOOK_AHEAD
from millstream.agent.log.log_files import LineChunk

QUICK, SLOW = 0.02, 0.1
"""Seconds that a slice should take, at least and at most."""
MOST_LINES = 4_096


@dataclass(frozen=True, slots=True)
class Slice:
    """Some lines of a chunk."""

    lines: list[bytes]
    offset: int
    """The offset of the first line in the chunk."""
    place: tuple[str, int]
    """The file, and the offset of the first line in it."""
    after: list[bytes]
    """Some of the next lines of the chunk, to look ahead."""

    def parted(self, size: int) -> tuple[Slice, Slice]:
        """Splits off the lines that begin within the first `size` bytes."""
        begin = count = 0
        for line in self.lines:
            if begin >= size:
                break
            begin += len(line) + 1
            count += 1
        name, place = self.place
        rest = Slice(self.lines[count:], self.offset + begin, (name, place + begin), self.after)
        return Slice(self.lines[:count], self.offset, self.place, rest.lines[:LOOK_AHEAD]), rest


class Slicer:
    """Cuts chunks into slices. Used by one thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._most = 64

    def slices(self, chunk: LineChunk) -> Iterator[Slice]:
        """Yields the slices of a chunk. The time until the next one is requested counts as the time
        that a slice took."""
        lines = lines_of(chunk)
        at = offset = 0
        while at < len(lines):
            part = lines[at : at + self._most]
            after = lines[at + len(part) : at + len(part) + LOOK_AHEAD]
            began = self._clock()
            yield Slice(part, offset, (str(chunk.file.path), chunk.start + offset), after)
            self._fit(self._clock() - began)
            at += len(part)
            offset += size_of(part)

    def _fit(self, took: float) -> None:
        if took < QUICK:
            self._most = min(MOST_LINES, self._most * 2)
        elif took > SLOW:
            self._most = max(1, self._most // 2)


def lines_of(chunk: LineChunk) -> list[bytes]:
    """Returns the lines of a chunk without newlines; with framing, its records."""
    lines, framing = chunk.data.split(b"\n"), chunk.file.framing
    if not lines[-1]:
        lines.pop()
    return lines if framing is None else framing.joined(lines)


def size_of(lines: Sequence[bytes]) -> int:
    """Returns the number of bytes of lines, newlines included."""
    return sum(map(len, lines)) + len(lines)
