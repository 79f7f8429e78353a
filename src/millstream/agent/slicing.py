"""What was read, in slices of lines: short enough that between two of them the agent can look up.

How many lines that is depends on how long the last ones took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from millstream.agent.files import Chunk
from millstream.agent.line_times import LOOK_AHEAD

QUICK, SLOW = 0.02, 0.1
"""Seconds that a slice should take."""
MOST_LINES = 4_096


@dataclass(frozen=True, slots=True)
class Slice:
    """Some lines of a chunk."""

    lines: list[bytes]
    offset: int
    """Where the first line begins in the chunk."""
    place: tuple[str, int]
    """The same in its file."""
    after: list[bytes]
    """Some lines that follow in the chunk, only to be looked at."""

    def parted(self, size: int) -> tuple[Slice, Slice]:
        """The lines that begin within so many bytes, and the others."""
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
    """Cuts chunks into slices. One thread."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._most = 64

    def slices(self, chunk: Chunk) -> Iterator[Slice]:
        """The lines of a chunk; the time between two slices is that of the first."""
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


def lines_of(chunk: Chunk) -> list[bytes]:
    """The lines of a chunk, without their ends; or its records, if they have several lines."""
    lines, framing = chunk.data.split(b"\n"), chunk.file.framing
    if not lines[-1]:
        lines.pop()
    return lines if framing is None else framing.joined(lines)


def size_of(lines: Sequence[bytes]) -> int:
    """Bytes of lines, with their ends."""
    return sum(map(len, lines)) + len(lines)
