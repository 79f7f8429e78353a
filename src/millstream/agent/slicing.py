"""What was read, in slices of lines: short enough that between two of them the agent can look up.

How many lines that is depends on how long the last ones took. Lines of a slice have one time, if
they bring none of their own: that at which they were first seen (`stamping`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from millstream.agent.files import Chunk
from millstream.agent.limits import Limits
from millstream.agent.stamping import Stamps

QUICK, SLOW = 0.02, 0.1
"""Seconds that a slice should take."""
MOST_LINES = 4_096
LOOK_AHEAD = 8


@dataclass(frozen=True, slots=True)
class Slice:
    """Some lines of a chunk."""

    lines: list[bytes]
    stamp: int
    """The time of records that bring none."""
    offset: int
    """Where the first line begins in the chunk."""
    place: tuple[str, int]
    """The same in its file."""
    after: list[bytes]
    """Some lines that follow in the chunk, only to be looked at."""


class Slicer:
    """Cuts chunks into slices. One thread."""

    def __init__(
        self,
        limits: Limits,
        stamps: Stamps | None,
        clock: Callable[[], float],
        wall: Callable[[], int],
    ) -> None:
        self._limits, self._stamps, self._clock, self._wall = limits, stamps, clock, wall
        self._most = 64

    def slices(self, chunk: Chunk) -> Iterator[Slice]:
        """The lines of a chunk; the time between two slices is that of the first."""
        lines = chunk.data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        at = offset = 0
        while at < len(lines):
            place, part = chunk.start + offset, lines[at : at + self._most]
            stamp = self._stamp(chunk, place)
            if stamp is None:
                return  # it was stopped
            if self._stamps is not None:
                part = _before(part, self._stamps.until(chunk.file.key, place) - place)
            began = self._clock()
            after = lines[at + len(part) : at + len(part) + LOOK_AHEAD]
            yield Slice(part, stamp, offset, (str(chunk.file.path), place), after)
            self._fit(self._clock() - began)
            at += len(part)
            offset += size_of(part)

    def _fit(self, took: float) -> None:
        if took < QUICK:
            self._most = min(MOST_LINES, self._most * 2)
        elif took > SLOW:
            self._most = max(1, self._most // 2)

    def _stamp(self, chunk: Chunk, place: int) -> int | None:
        if self._stamps is None:
            return self._wall()
        stamps, end, found = self._stamps, chunk.start + chunk.size, [0]

        def stamp() -> None:
            key, size = chunk.file.key, chunk.file.size
            found[0] = stamps.stamp(key, place, end - place, size, self._wall())

        return found[0] if self._limits.when_there_is_room(stamp) else None


def size_of(lines: list[bytes]) -> int:
    """Bytes of lines, with their ends."""
    return sum(map(len, lines)) + len(lines)


def _before(lines: list[bytes], size: int) -> list[bytes]:
    """The lines that begin within so many bytes."""
    begin = 0
    for index, line in enumerate(lines):
        if begin >= size:
            return lines[:index]
        begin += len(line) + 1
    return lines
