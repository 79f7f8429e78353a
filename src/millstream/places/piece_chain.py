"""Derives from a listing which objects make up a log in pieces, and which are spare. Pure.

    PREFIX/<begin>               a piece as it was appended
    PREFIX/<begin>-<end>         many pieces joined into one object, unchanged
    PREFIX/start-<position>      the log begins here: everything before is gone

`begin`, `end` and `position` are one or more numbers of 20 digits, joined by `-`; the first of them
is an offset in bytes. Every log begins at offset 0. A piece begins where the one before it ends,
and its length follows from the size of its object, so a listing gives the whole chain.

Objects before the start, or in a range that a joined one covers, are spare. A host may write a
piece without knowing that its position was taken and freed again. That piece is spare too: its
range is covered, or lies before the start.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from millstream.places.place import SEAL, Listed

ID_BYTES = 16
"""Bytes of the unique id that a piece begins with."""
OVERHEAD = ID_BYTES + SEAL
START = "start-"
_NUMBERS = re.compile(r"\d{20}(?:-\d{20})*")

Numbers = tuple[int, ...]
"""A position: an offset, and other counts."""


class PieceRef(NamedTuple):
    """An object with a part of a log."""

    name: str
    begin: Numbers
    end: int
    """The offset after its last byte."""
    joined: bool
    modified: float
    """The time at which it was written, by the clock of the place."""


@dataclass(frozen=True, slots=True)
class PieceChain:
    """A log as derived from a listing."""

    start: Numbers
    pieces: tuple[PieceRef, ...]
    """In order from the start to the end; a joined piece may begin before the end of the one
    before it."""
    spare: tuple[str, ...]
    """Objects that are not needed and old enough to be deleted."""
    end: int
    gap: str
    """An object after a missing range; empty if nothing is missing."""

    def covering(self, offset: int) -> int:
        """The index of the piece that has an offset; the number of pieces if none has it."""
        low, high = 0, len(self.pieces)
        while low < high:
            middle = (low + high) // 2
            if self.pieces[middle].end <= offset:
                low = middle + 1
            else:
                high = middle
        return low


def numbered(position: Iterable[int]) -> str:
    """Formats a position for a name.

    >>> numbered([7, 2])
    '00000000000000000007-00000000000000000002'
    """
    return "-".join(f"{number:020d}" for number in position)


def chain_of(listed: Iterable[Listed], prefix: str, width: int, settle: float) -> PieceChain:
    """Derives the chain from a listing of a log whose positions have `width` numbers.

    Leaves out spare objects younger than `settle` seconds.
    """
    raw: dict[int, PieceRef] = {}
    joined: list[PieceRef] = []
    marks: list[tuple[Numbers, Listed]] = []
    now = 0.0
    for entry in listed:
        now = max(now, entry.modified)
        rest = entry.name.removeprefix(prefix)
        mark = rest.startswith(START)
        rest = rest.removeprefix(START)
        if not _NUMBERS.fullmatch(rest):
            continue
        numbers = tuple(map(int, rest.split("-")))
        begin, length = numbers[:width], entry.size - OVERHEAD
        if mark:
            marks.append((begin, entry))
        elif len(numbers) == width and length > 0:
            end = begin[0] + length
            raw[begin[0]] = PieceRef(entry.name, begin, end, False, entry.modified)
        elif len(numbers) == 2 * width and begin[0] + length == numbers[width]:
            joined.append(PieceRef(entry.name, begin, numbers[width], True, entry.modified))
    marks.sort()
    start = marks[-1][0] if marks else (0,) * width
    pieces = _walked(start[0], raw, sorted(joined, key=lambda piece: piece.begin))
    end = pieces[-1].end if pieces else start[0]
    used = {piece.name for piece in pieces}
    spare = [entry.name for _, entry in marks[:-1]]
    gap = ""
    for piece in (*raw.values(), *joined):
        if piece.begin[0] > end:
            gap = min(gap, piece.name) if gap else piece.name
        elif piece.name not in used and now - piece.modified > settle:
            spare.append(piece.name)
    return PieceChain(start, tuple(pieces), tuple(spare), end, gap)


def _walked(at: int, raw: dict[int, PieceRef], joined: list[PieceRef]) -> list[PieceRef]:
    """Walks the pieces from an offset on; prefers the joined piece that goes furthest."""
    pieces: list[PieceRef] = []
    furthest: PieceRef | None = None
    following = 0
    while True:
        while following < len(joined) and joined[following].begin[0] <= at:
            if furthest is None or joined[following].end > furthest.end:
                furthest = joined[following]
            following += 1
        piece = furthest if furthest is not None and furthest.end > at else raw.get(at)
        if piece is None:
            return pieces
        pieces.append(piece)
        at = piece.end
