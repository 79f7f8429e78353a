"""A log of bytes in a place, in pieces: any number of hosts append to it, in one order for all.

DESIGN
------
A piece is an object named by the position at which it begins. The end of the log is the name of the
next piece, so an append creates that object: of all writers that try, one succeeds. The others read
the piece there and retry after it. A piece begins with an id, so that a writer that lost the answer
to a create recognizes its own piece. Objects are never changed.

*Joining*: a reader that starts late must not need a request for every piece ever written. Runs of
small pieces are joined into one object, whose name has its begin and its end; the pieces that it
covers are spare from then on. Any host may join; if two join the same pieces, both results are
right.

*Deleting*: the name of a deleted piece can be created again, by a host that has slept and still
takes it for the end. Therefore no piece is deleted until `SETTLE_SECONDS` after it was written, by
the clock of the place. And a writer whose knowledge of the end is older than `STALE_SECONDS` when
its create is answered checks that the log holds its piece (`holds`): a piece that came too late is
spare. The start of the log is marked before anything before it is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple, TypeVar
from uuid import uuid4

from millstream.errors import PlaceDamaged, PlaceError
from millstream.places.piece_chain import (
    ID_BYTES,
    START,
    Numbers,
    PieceChain,
    PieceRef,
    chain_of,
    numbered,
)
from millstream.places.place import Place, persistent, sealed, unsealed

T = TypeVar("T")
SETTLE_SECONDS = 600.0
"""No piece is deleted before it is this old."""
STALE_SECONDS = 30.0
"""A writer that last checked the end longer ago than this verifies that its create was in time."""
PATIENCE = 60.0
"""Seconds for which requests are retried while the place does not answer."""
AT_ONCE = 8
"""The number of pieces that are read in parallel."""
JOIN_PIECES, JOIN_BYTES = 32, 8 << 20
"""The least number of pieces that are joined, and the most bytes that they have together."""
_LOOKS = 3
"""Attempts at a listing without a gap: objects may be joined during a listing."""


class AppendOutcome(NamedTuple):
    """The outcome of an append."""

    won: bool
    there: bytes | None = None
    """The piece that another writer has created there; None if it was deleted meanwhile."""
    unsure: bool = False
    """True if the place failed meanwhile: the piece may have been created and deleted again."""


@dataclass(frozen=True, slots=True)
class PieceLog:
    """The log under a prefix such as `logs/NAME/`, with positions of `width` numbers."""

    place: Place
    prefix: str
    width: int
    patience: float = PATIENCE

    @property
    def address(self) -> str:
        """The address of the log, for messages."""
        return f"{self.place.address}/{self.prefix.rstrip('/')}"

    def name_at(self, position: Sequence[int]) -> str:
        """The name of the piece that begins at a position."""
        return self.prefix + numbered(position)

    def append(self, position: Sequence[int], payload: bytes) -> AppendOutcome:
        """Create the piece at a position; PlaceError if the outcome cannot be learned."""
        name = self.name_at(position)
        data = sealed(name, uuid4().bytes + payload)
        unsure = False

        def attempt() -> AppendOutcome:
            nonlocal unsure
            try:
                if self.place.create(name, data):
                    return AppendOutcome(True, unsure=unsure)
            except PlaceDamaged:
                raise
            except PlaceError:
                unsure = True
                if self.place.get(name) is None:
                    raise
            current = self.place.get(name)
            if current is None or current == data:
                return AppendOutcome(current is not None, unsure=unsure)
            return AppendOutcome(False, unsealed(self.place, name, current)[ID_BYTES:], unsure)

        return persistent(attempt, self.patience)

    def piece_at(self, position: Sequence[int]) -> bytes | None:
        """The piece that begins at a position; None if there is none. One request."""
        return self.object_named(self.name_at(position))

    def object_named(self, name: str) -> bytes | None:
        """The bytes of the log in an object; None if there is none."""

        def attempt() -> bytes | None:
            data = self.place.get(name)
            return None if data is None else unsealed(self.place, name, data)[ID_BYTES:]

        return persistent(attempt, self.patience)

    def chain(self) -> PieceChain:
        """The current chain of pieces. PlaceDamaged if pieces are missing."""
        for _ in range(_LOOKS):
            chain = persistent(
                lambda: chain_of(
                    self.place.list(self.prefix), self.prefix, self.width, SETTLE_SECONDS
                ),
                self.patience,
            )
            if not chain.gap:
                return chain
        raise PlaceDamaged(
            f"{self.address}: the log must go on at offset {chain.end}; no object begins there and "
            f"{chain.gap} is behind it; restore what is missing from a copy or an earlier version "
            "of the bucket"
        )

    def holds(self, position: Sequence[int], payload: bytes) -> bool | None:
        """True if the log has these bytes at a position, as a piece or joined with others.

        None if this is no longer known, since the log begins after the position.
        """
        while True:
            chain = self.chain()
            if position[0] < chain.start[0]:
                return None
            if position[0] >= chain.end:
                return False
            for _, _, data in self.bytes_from(chain, position[0]):
                return data.startswith(payload)

    def bytes_from(self, chain: PieceChain, offset: int) -> Iterator[tuple[PieceRef, int, bytes]]:
        """The log from an offset on: pieces, each with its bytes and the offset of the first one.

        Ends before the first object that was deleted meanwhile: then the chain has changed.
        """
        pieces = chain.pieces[chain.covering(offset) :]
        at = offset
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for first in range(0, len(pieces), AT_ONCE):
                group = pieces[first : first + AT_ONCE]
                for piece, data in zip(
                    group, pool.map(lambda piece: self.object_named(piece.name), group), strict=True
                ):
                    if data is None:
                        return
                    yield piece, at, data[at - piece.begin[0] :]
                    at = piece.end

    def start_at(self, position: Numbers) -> None:
        """Set the start of the log: pieces before it are spare, and are deleted later."""
        name = self.prefix + START + numbered(position)
        self._persistently(lambda: self.place.put(name, sealed(name, b"")))

    def tidy(self, chain: PieceChain, halted: Callable[[], bool] = lambda: False) -> None:
        """Delete spare objects, and join small pieces. The next call does what this one leaves.

        The last piece is never joined: only a piece after it gives the position at its end.
        """
        if chain.spare:
            self._persistently(lambda: self.place.delete(chain.spare))
        for first, stop in joinable(chain.pieces):
            self._join(chain.pieces[first:stop], chain.pieces[stop].begin, halted)

    def _join(self, pieces: Sequence[PieceRef], end: Numbers, halted: Callable[[], bool]) -> None:
        whole: list[bytes] = []
        with ThreadPoolExecutor(AT_ONCE) as pool:
            for first in range(0, len(pieces), AT_ONCE):
                group = pieces[first : first + AT_ONCE]
                for data in pool.map(lambda piece: self.object_named(piece.name), group):
                    if data is None or halted():
                        return  # another host has joined them, or this one must stop
                    whole.append(data)
        name = f"{self.prefix}{numbered((*pieces[0].begin, *end))}"
        data = sealed(name, uuid4().bytes + b"".join(whole))
        self._persistently(lambda: self.place.put(name, data))

    def _persistently(self, attempt: Callable[[], T]) -> T:
        return persistent(attempt, self.patience)


def joinable(pieces: Sequence[PieceRef]) -> list[tuple[int, int]]:
    """Ranges of adjacent pieces, each to be joined into one. The last piece is in none.

    A range grows to the left only while that at most doubles it. So the number of times that a byte
    is joined is logarithmic in the size of a joined piece.
    """
    ranges: list[tuple[int, int]] = []
    stop = len(pieces) - 1
    while stop > 0:
        first, size = stop, 0
        while first > 0:
            piece, following = pieces[first - 1], pieces[first]
            length = piece.end - piece.begin[0]
            grows = not size or (length <= size and size + length <= JOIN_BYTES)
            if piece.end != following.begin[0] or not grows:
                break
            first, size = first - 1, size + length
        if stop - first >= JOIN_PIECES:
            ranges.append((first, stop))
        stop = min(first, stop - 1)
    return ranges
