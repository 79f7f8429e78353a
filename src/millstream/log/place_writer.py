"""Appends to a log in a place: any number of writers, on any hosts, in one order for all.

A piece of the log is one append, a block, as in a segment on disk (`blocks`); its object is named
by the position at which it begins (`places.piece_log`). An append is acknowledged once its object
is created. A writer that finds its position taken reads the piece there, with its tags, and retries
after it. So an entry with a tag is appended once, whichever writers get it.

When a writer opens a log, it loads the tags of the last day: from the segments of a mirror on this
host if it has them, else from the pieces. Another kind of index may need fewer.

A writer belongs to one thread at a time.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from millstream.errors import LogError, PlaceError, StoreError
from millstream.log.blocks import BadBlock, FoundBlock, Tag, encode_block, walk_bytes
from millstream.log.entries import Appended, Entry, TagMismatch, sorted_out
from millstream.log.mirror_tags import Mirrored, mirrored_tags
from millstream.log.place_readers import least_committed_in
from millstream.log.retention import Retention, Sealed, removable
from millstream.log.tags import TAG_TTL, Tags
from millstream.places.elapsed import ClockReading, moment
from millstream.places.piece_chain import PieceChain
from millstream.places.piece_log import PATIENCE, STALE_SECONDS, PieceLog
from millstream.places.place import Place
from millstream.wall_clock import wall_clock

T = TypeVar("T")
RETAIN_SECONDS = 60.0
"""Seconds between two runs of retention, which also join small pieces, in a writer that appends."""
_NEVER = ClockReading(float("-inf"), float("-inf"))


class TagIndex(Protocol):
    """A writer's index of the tags in its log."""

    @property
    def is_complete(self) -> bool:
        """True if the index needs no older tags of the log."""

    def get(self, tag: str) -> Tag | None: ...

    def add(self, tags: Sequence[Tag]) -> None: ...

    def forget_before(self, record: int) -> None: ...


class EventLogWriter(Protocol):
    """A writer of a log, on disk or in a place."""

    last_tag: str
    torn: int
    torn_said: str

    @property
    def end(self) -> list[int]: ...

    def append(self, entries: Sequence[Entry]) -> list[Appended | TagMismatch]: ...

    def retain(self) -> int: ...

    def close(self) -> None: ...


def log_pieces(place: Place, stream: str, patience: float = PATIENCE) -> PieceLog:
    """The log of a stream in a place. Its positions are an offset and a number of records."""
    return PieceLog(place, f"logs/{stream}/", 2, patience)


def blocks_of(pieces: PieceLog, begin: Sequence[int], data: bytes) -> Iterator[FoundBlock]:
    """The blocks in bytes of a log; LogError if they are damaged."""
    try:
        yield from walk_bytes(data, begin[0], begin[1])
    except BadBlock as error:
        raise LogError(
            f"log {pieces.address}: damaged at offset {error.offset}: {error.why}; restore the "
            "object from a copy or an earlier version of the bucket"
        ) from None


class PlaceLogWriter:
    """A writer of a stream's log in a place. Creates nothing before the first append."""

    def __init__(
        self,
        place: Place,
        stream: str,
        *,
        mirror: Path | None = None,
        retention: Retention = Retention(),  # noqa: B008  # frozen
        index: TagIndex | None = None,
        taken: Callable[[Sequence[int], bytes], None] = lambda position, data: None,
        patience: float = PATIENCE,
        beside: bool = False,
        clock: Callable[[], int] = wall_clock,
        now: Callable[[], ClockReading] = moment,
    ) -> None:
        """`mirror` is a folder that follows the log. The tags of older pieces are added to `index`
        until it has `found` what it needs. `taken` is called with every piece that this writer
        appends, or reads from the place after it is opened, and its position. With `beside`, a
        thread does `retain`, and appends do not wait for it.
        """
        self.last_tag, self.torn, self.torn_said = "", 0, ""
        self._pieces = log_pieces(place, stream, patience)
        self._place = place
        self._stream = stream
        self._mirror = mirror
        self._retention = retention
        self._tags: TagIndex = Tags() if index is None else index
        self._by_age = index is None
        self._taken = taken
        self._clock = clock
        self._now = now
        self._position = [0, 0]
        self._stamp = 0
        self._known_at = _NEVER
        """A moment at which there was no piece at the position, or after it."""
        self._retained = now()
        self._forget = 0
        """Tags of records before this one are not needed; set by `retain`."""
        self._beside = beside
        self._retaining: threading.Thread | None = None
        self._closed = threading.Event()
        self._guarded("opened", self._open)

    @property
    def end(self) -> list[int]:
        """The position after the last piece that this writer knows."""
        return list(self._position)

    def append(self, entries: Sequence[Entry]) -> list[Appended | TagMismatch]:
        """Append the entries that are new, in one piece; they are in the place when this returns.

        Raises LogError if the place does not answer: then they may or may not be appended.
        """
        try:
            self._tags.forget_before(self._forget)
            results = self._guarded("appended to", lambda: self._append(entries))
        except BaseException:
            self._known_at = _NEVER  # the piece may exist, now or later
            raise
        if self._retained.until(self._now()) > RETAIN_SECONDS:
            try:
                self.retain()
            except LogError:
                pass  # the append is done
        return results

    def clear(self) -> None:
        """Remove all records that every reader has committed; the numbers of records go on.

        A block without records remains: it has the last tag, which identifies the last append.
        The writer must have been opened with the retention `NOTHING`. Raises LogError if the place
        does not answer: then it may be retried.
        """

        def clear() -> None:
            if self._position[1]:
                self._append(None)
            self._retain()

        self._guarded("emptied", clear)

    def retain(self) -> int:
        """Apply retention, and join small pieces; returns the bytes released.

        Returns 0 if a thread does it.
        """
        self._retained = self._now()
        if not self._beside:
            return self._guarded("tidied", self._retain)
        if self._retaining is None or not self._retaining.is_alive():
            self._retaining = threading.Thread(
                target=self._retain_beside, name=f"tidy {self._stream}", daemon=True
            )
            self._retaining.start()
        return 0

    def close(self) -> None:
        """Stop joining pieces, and wait for the thread that does it."""
        self._closed.set()
        if self._retaining is not None:
            self._retaining.join()

    def _retain_beside(self) -> None:
        try:
            self._retain()
        except StoreError:
            pass  # the next run retries

    def _append(self, entries: Sequence[Entry] | None) -> list[Appended | TagMismatch]:
        """Append entries; None: a block that only repeats the last tag of all writers."""
        while True:
            if self._is_stale():
                self._catch_up()
            position, log = list(self._position), self._pieces.address
            if entries is None:
                last = [Entry.of([], self.last_tag)] if self.last_tag else []
                payload, count, tags, results = sorted_out(last, position[1], None, log)
            else:
                payload, count, tags, results = sorted_out(entries, position[1], self._tags, log)
                if not count and not tags:
                    return results
            stamp = max(self._clock(), self._stamp)
            block = encode_block(payload, count, position[1], stamp, self._stamp, tags)
            asked = self._now()
            outcome = self._pieces.append(position, block)
            if not self._is_stale():
                if outcome.won:
                    self._known_at = asked
                    self._take(block)
                    return results
                if outcome.there is not None:
                    self._take(outcome.there)
                self._catch_up()
            elif (outcome.won or outcome.unsure) and self._holds(position, block):
                self._take(block)
                return results

    def _is_stale(self) -> bool:
        """True if a piece may have been created here and deleted again since the last check."""
        return self._known_at.until(self._now()) > STALE_SECONDS

    def _holds(self, position: Sequence[int], block: bytes) -> bool:
        holds = self._pieces.holds(position, block)
        if holds is None:
            raise LogError(
                f"log {self._pieces.address}: an append at {list(position)} was interrupted for so "
                "long that the log begins behind it by now; whether it was appended is not known"
            )
        return holds

    def _retain(self) -> int:
        chain = self._pieces.chain()
        start = self._start_after(chain)
        if start is not None:
            self._pieces.start_at(start)
        young = self._clock() - TAG_TTL
        for piece in chain.pieces:
            if piece.modified * 1e6 >= young:
                self._forget = piece.begin[1]
                break
        self._pieces.tidy(chain, self._closed.is_set)
        return 0 if start is None else start[0] - chain.start[0]

    def _start_after(self, chain: PieceChain) -> tuple[int, ...] | None:
        """The new start of the log, if retention moves it; else None."""
        least = least_committed_in(self._place, self._stream, self._pieces.patience)
        *sealed, active = [
            Sealed(piece.begin[0], piece.begin[1], piece.end, int(piece.modified * 1e6))
            for piece in chain.pieces
        ] or [Sealed(0, 0, 0, 0)]
        size = active.end - active.offset
        count = removable(sealed, size, least, self._clock(), self._retention)
        while count and chain.pieces[count].begin[0] != sealed[count - 1].end:
            count -= 1  # joined pieces may overlap: then no piece begins where this one ends
        return chain.pieces[count].begin if count else None

    def _open(self) -> None:
        """Find the end of the log, and load the tags."""
        self._known_at = self._now()
        chain = self._pieces.chain()
        mirrored = self._mirrored(chain)
        if mirrored is not None:
            self._position, self._stamp = list(mirrored.end), mirrored.stamp
            self._remember(mirrored.tags)
            self._take_in(chain)
            return
        self._position = [*chain.start]
        tags: list[list[Tag]] = []
        for piece in reversed(chain.pieces):
            old = piece.modified * 1e6 < self._clock() - TAG_TTL
            if tags and ((self._by_age and old) or self._tags.is_complete):
                break
            data = self._pieces.object_named(piece.name)
            if data is None:  # joined or removed meanwhile
                self._open()
                return
            blocks = [*blocks_of(self._pieces, piece.begin, data)]
            if not tags:
                header = blocks[-1].header
                self._position = [piece.end, header.first + header.count]
                self._stamp = header.stamp
            tags.append([tag for block in blocks for tag in block.tags()])
            if not self._by_age:
                self._tags.add(tags[-1])
        for piece_tags in reversed(tags):
            self._remember(piece_tags)

    def _mirrored(self, chain: PieceChain) -> Mirrored | None:
        """The tags of the mirror; None if the mirror does not go back far enough."""
        if self._mirror is None:
            return None
        young = self._clock() - TAG_TTL
        mirrored = mirrored_tags(self._mirror, None, young)
        if mirrored is None or not chain.start[0] <= mirrored.end[0] <= chain.end:
            return None
        number = chain.covering(mirrored.start[0])
        before = chain.pieces[number - 1] if 0 < number < len(chain.pieces) else None
        old = before is None or before.modified * 1e6 < young
        return mirrored if old or mirrored.start[0] <= chain.start[0] else None

    def _catch_up(self) -> None:
        """Read what other writers have appended."""
        if self._mirror is not None:
            mirrored = mirrored_tags(self._mirror, self._position)
            if mirrored is not None and mirrored.end > self._position:
                self._position, self._stamp = list(mirrored.end), mirrored.stamp
                self._remember(mirrored.tags)
        while self._known_at.until(asked := self._now()) <= STALE_SECONDS:
            data = self._pieces.piece_at(self._position)
            if data is None:
                self._known_at = asked
                return
            self._take(data)
        while True:
            asked = self._now()
            if self._take_in(self._pieces.chain()):
                self._known_at = asked
                return

    def _take_in(self, chain: PieceChain) -> bool:
        """Read the pieces of a chain after the position; False if some were deleted meanwhile."""
        if self._position[0] < chain.start[0]:
            self._position = [*chain.start]
        for _, _, data in self._pieces.bytes_from(chain, self._position[0]):
            self._take(data)
        return self._position[0] >= chain.end

    def _take(self, data: bytes) -> None:
        """Advance over the next bytes of the log."""
        position = list(self._position)
        tags: list[Tag] = []
        for block in blocks_of(self._pieces, position, data):
            tags += block.tags()
            self._position = [block.next_offset, block.header.first + block.header.count]
            self._stamp = block.header.stamp
        self._remember(tags)
        self._taken(position, data)

    def _remember(self, tags: Sequence[Tag]) -> None:
        if tags:
            self._tags.add(tags)
            self.last_tag = tags[-1].tag

    def _guarded(self, done: str, act: Callable[[], T]) -> T:
        try:
            return act()
        except PlaceError as error:
            raise LogError(f"log {self._pieces.address}: cannot be {done}: {error}") from None
