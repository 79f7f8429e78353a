"""A mirror of a log in a place: local segments with the same blocks at the same positions.

`reader.LogReader` reads a mirror like a log on this disk, in any process. `follow` fetches new
pieces, with one request if there are none. A mirror may begin late, at a position that its owner
asks for, or at the current start of the log.

Nothing in a mirror is synced: the place has all of it. Its record has the boot id of the machine. A
mirror of another boot, of another log, or a damaged one, is built again.

    lock, end, <20>-<20>.log    as in a log (`log`)
    mirror                      the address of the log that it follows, and a token of this mirror

One process holds a mirror; its methods may be called by several threads.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from pathlib import Path
from uuid import uuid4

import msgspec

from millstream.durable import boot_id, with_checksum, without_checksum, write_at
from millstream.errors import LogError, PlaceError
from millstream.log.place_writer import blocks_of, log_pieces
from millstream.log.recovery import recover
from millstream.log.segments import (
    Segment,
    encode_end,
    failed,
    list_segments,
    locked,
    make_folder,
    segment_at,
)
from millstream.places.elapsed import ClockReading, moment
from millstream.places.piece_chain import PieceChain
from millstream.places.piece_log import PATIENCE, STALE_SECONDS
from millstream.places.place import Place

SEGMENT_BYTES = 16 << 20
RECORD = "mirror"
_NEVER = ClockReading(float("-inf"), float("-inf"))


class LogMirrorRecord(msgspec.Struct, frozen=True):
    """The record of a mirror."""

    log: str
    """The address of the log."""
    boot: str
    token: str
    """A unique id, by which a task recognizes the mirror that its plan refers to."""


def read_log_mirror(folder: Path) -> LogMirrorRecord | None:
    """The record of the mirror in a folder; None if there is none, or it is damaged."""
    try:
        data = without_checksum((folder / RECORD).read_bytes().rstrip(b"\n"))
        return msgspec.json.decode(data, type=LogMirrorRecord)
    except (OSError, ValueError):
        return None


class LogMirror:
    """The mirror of a stream's log in a folder; creates it if it does not exist."""

    def __init__(
        self,
        place: Place,
        stream: str,
        folder: Path,
        *,
        since: Sequence[int] | None = None,
        record: int | None = None,
        segment_bytes: int = SEGMENT_BYTES,
        patience: float = PATIENCE,
        now: Callable[[], ClockReading] = moment,
    ) -> None:
        """Brings the mirror up to the end of the log.

        A new mirror begins at the position `since`, or at the piece that has `record`. It begins at
        the start of the log if the log does not have that.
        """
        self.path = folder
        self._pieces = log_pieces(place, stream, patience)
        self._segment_bytes = segment_bytes
        self._now = now
        self._guard = threading.RLock()
        self._known_at = _NEVER
        """A moment at which there was no piece at the end, or after it."""
        self._position = [0, 0]
        self._segments: list[Segment] = []
        self._names: list[tuple[int, str]] = []
        """The objects that the mirror was built from, by the offset of their first byte."""
        self.token = ""
        self._lock = self._file = self._end = -1
        try:
            make_folder(folder)
            self._lock = locked(folder)
            self._end = os.open(folder / "end", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
            self._open(since, record)
        except PlaceError as error:
            self.close()
            raise LogError(f"log {self._pieces.address}: cannot be read: {error}") from None
        except OSError as error:
            self.close()
            raise failed(folder, "open it", error) from None
        except BaseException:
            self.close()
            raise

    @property
    def end(self) -> list[int]:
        """The position up to which the mirror has the log."""
        return list(self._position)

    @property
    def log(self) -> str:
        """The address of the log."""
        return self._pieces.address

    def follow(self) -> bool:
        """Fetch new pieces; False if there are none. LogError if the place does not answer."""
        with self._guard:
            before = list(self._position)
            try:
                self._follow()
            except PlaceError as error:
                raise LogError(f"log {self._pieces.address}: cannot be read: {error}") from None
            except OSError as error:
                raise failed(self.path, "append to it", error) from None
            return self._position != before

    def take(self, position: Sequence[int], data: bytes) -> None:
        """Add a piece that its writer has in memory; ignored if the mirror already has it."""
        with self._guard:
            if position[0] > self._position[0]:
                self.follow()
            elif list(position) == self._position:
                self._add(self._pieces.name_at(position), position[0], data)

    def trim(self, offset: int) -> None:
        """Remove the segments before an offset."""
        with self._guard:
            while len(self._segments) > 1 and self._segments[1].offset <= offset:
                Path(self._segments.pop(0).path).unlink(missing_ok=True)
            first = bisect_right(self._names, (self._segments[0].offset, chr(0x10FFFF))) - 1
            del self._names[: max(0, first)]

    def retain(self) -> None:
        """Remove the segments before the start of the log; LogError if the place fails."""
        try:
            start = self._pieces.chain().start
        except PlaceError as error:
            raise LogError(f"log {self._pieces.address}: cannot be read: {error}") from None
        with self._guard:
            if self._segments[-1].offset < start[0] <= self._position[0]:
                self._split_at(start)
            self.trim(start[0])

    def _split_at(self, position: Sequence[int]) -> None:
        """Begin a segment at a position within the last one; readers find it whole."""
        size = self._position[0] - position[0]
        data = os.pread(self._file, size, position[0] - self._segments[-1].offset)
        segment = segment_at(self.path, position[0], position[1])
        fresh = self.path / ".segment.tmp"
        fresh.write_bytes(data)
        os.replace(fresh, segment.path)
        os.close(self._file)
        self._file = os.open(segment.path, os.O_RDWR | os.O_CLOEXEC)
        self._segments.append(segment)

    def objects_between(self, start: int, stop: int) -> list[tuple[int, str]]:
        """The objects that have the bytes between two offsets, each with its first offset."""
        with self._guard:
            first = max(0, bisect_right(self._names, (start, chr(0x10FFFF))) - 1)
            objects = []
            for begin, name in self._names[first:]:
                if begin >= stop:
                    break
                objects.append((begin, name))
            return objects

    def close(self) -> None:
        """Close the files and release the lock."""
        with self._guard:
            for file in (self._file, self._end, self._lock):
                if file >= 0:
                    os.close(file)
            self._lock = self._file = self._end = -1

    def _open(self, since: Sequence[int] | None, record: int | None) -> None:
        asked = self._now()
        chain = self._pieces.chain()
        if not self._reopened(chain, whole=since is None and record is None):
            if since is None and record is not None:
                since = _piece_with(chain, record)
            within = since is not None and chain.start[0] <= since[0] <= chain.end
            self._begin_at(since if since is not None and within else chain.start)
        # The current objects: those that the segments were built from are not known any more.
        first = chain.covering(self._segments[0].offset)
        self._names = [(piece.begin[0], piece.name) for piece in chain.pieces[first:]]
        if self._take_in(chain):
            self._known_at = asked
        self.follow()

    def _reopened(self, chain: PieceChain, *, whole: bool) -> bool:
        """Reuse the existing segments; False if they cannot be trusted.

        With `whole`, also False if the log begins before them.
        """
        record = read_log_mirror(self.path)
        segments = list_segments(self.path)
        if record is None or not segments or record.log != self._pieces.address:
            return False
        if not record.boot or record.boot != boot_id():
            return False
        if whole and segments[0].offset > chain.start[0]:
            return False
        try:
            recovered = recover(self.path, None)
        except (LogError, OSError):
            return False
        self._position = [recovered.active.offset + recovered.size, recovered.records]
        self._file, self._segments = recovered.file, segments
        self.token = record.token
        if not chain.start[0] <= self._position[0] <= chain.end:
            return False
        self._publish()
        return True

    def _begin_at(self, position: Sequence[int]) -> None:
        """Start again at a position. The new segment is created before the old ones are removed, so
        that a reader always finds one."""
        old = list_segments(self.path)
        offset, records = position
        segment = segment_at(self.path, offset, records)
        self._create(segment)
        self._position = [offset, records]
        self._segments, self._names = [segment], []
        self._publish()
        for other in old:
            if other.path != segment.path:
                Path(other.path).unlink(missing_ok=True)
        self.token = uuid4().hex
        record = LogMirrorRecord(self._pieces.address, boot_id(), self.token)
        fresh = self.path / f".{RECORD}.tmp"
        fresh.write_bytes(with_checksum(msgspec.json.encode(record)))
        os.replace(fresh, self.path / RECORD)

    def _create(self, segment: Segment) -> None:
        flags = os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_CLOEXEC
        file = os.open(segment.path, flags, 0o644)
        if self._file >= 0:
            os.close(self._file)
        self._file = file

    def _follow(self) -> None:
        while self._known_at.until(asked := self._now()) <= STALE_SECONDS:
            data = self._pieces.piece_at(self._position)
            if data is None:
                self._known_at = asked
                return
            offset = self._position[0]
            self._add(self._pieces.name_at(self._position), offset, data)
        while True:
            asked = self._now()
            chain = self._pieces.chain()
            if self._position[0] < chain.start[0]:
                self._begin_at(chain.start)
            if self._take_in(chain):
                self._known_at = asked
                return

    def _take_in(self, chain: PieceChain) -> bool:
        """Add the pieces of a chain after the end; False if some were deleted meanwhile."""
        for piece, _, data in self._pieces.bytes_from(chain, self._position[0]):
            self._add(piece.name, piece.begin[0], data)
        return self._position[0] >= chain.end

    def _add(self, name: str, begin: int, data: bytes) -> None:
        """Append whole blocks, and publish the new end."""
        offset = written = self._position[0]
        try:
            for block in blocks_of(self._pieces, self._position, data):
                size = block.next_offset - self._segments[-1].offset
                if size > self._segment_bytes and block.offset > self._segments[-1].offset:
                    self._write(data[written - offset : block.offset - offset], written)
                    written = block.offset
                    segment = segment_at(self.path, block.offset, block.header.first)
                    self._create(segment)
                    self._segments.append(segment)
                records = block.header.first + block.header.count
            self._write(data[written - offset :], written)
        except BaseException:
            self._take_back()
            raise
        self._position = [offset + len(data), records]
        if not self._names or self._names[-1] < (begin, name):
            self._names.append((begin, name))
        self._publish()

    def _write(self, data: bytes, offset: int) -> None:
        write_at(self._file, data, offset - self._segments[-1].offset)

    def _take_back(self) -> None:
        """Remove what a failed append has left after the end."""
        while len(self._segments) > 1 and self._segments[-1].offset >= self._position[0]:
            Path(self._segments.pop().path).unlink(missing_ok=True)
        os.close(self._file)
        self._file = os.open(self._segments[-1].path, os.O_RDWR | os.O_CLOEXEC)
        os.ftruncate(self._file, self._position[0] - self._segments[-1].offset)

    def _publish(self) -> None:
        os.pwrite(self._end, encode_end(*self._position), 0)


def _piece_with(chain: PieceChain, record: int) -> Sequence[int]:
    """The position of the piece with a record; of the last piece if the record is not there yet."""
    begins = [piece.begin for piece in chain.pieces if piece.begin[0] >= chain.start[0]]
    number = bisect_right(begins, record, key=lambda begin: begin[1])
    return begins[number - 1] if number else chain.start
