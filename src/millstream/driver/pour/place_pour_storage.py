"""The pour storage of a shared store: keeps its durable data in the place.

DESIGN
------
Each time the record is written, it becomes a new object, `poured/SOURCE/records/NUMBER`; the one
with the highest number is valid. Writing creates the next number, and only one of two processes can
create it: as with commits, this is where a process that was overtaken finds out, and stops. A
process begins by creating a record of its own, with the content of the last.

Files with lines are objects, `poured/SOURCE/lines/NUMBER-NAME`, with the number of the record that
was the last when they were written. A process removes only those with numbers up to its own, so
that an overtaken process removes nothing that another needs.

An overtaken process may still append to the log. Its appends carry the tags of its batch and part,
by which the log accepts each part once, whichever process appends it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from millstream.driver.pour.pour_storage import (
    SUFFIX,
    FileLines,
    FolderPourStorage,
    LinesWriter,
    PourStorage,
)
from millstream.errors import LogLocked
from millstream.log.blocks import Tag
from millstream.log.place_writer import EventLogWriter, PlaceLogWriter, blocks_of, log_pieces
from millstream.log.poured_record import ID_BYTES, lines_of, records_of
from millstream.log.retention import Retention
from millstream.places.place import Place, created, persistent, read, sealed
from millstream.places.place_address import place_at

PATIENCE = 60.0
"""Seconds to retry while the place does not answer."""
OBJECT_BYTES = 8 << 20
"""The approximate size of an object with lines."""
KEPT = 8
"""The number of old records to keep, for processes that are still reading them."""


def put_lines(place: Place, name: str, lines: bytes, patience: float = PATIENCE) -> None:
    """Writes a file with lines. Tasks use this too."""
    persistent(lambda: place.put(name, sealed(name, lines)), patience)


class PlacePourStorage:
    """The pour storage of one source, in a place."""

    def __init__(
        self, place: Place, source: str, retention: Retention, patience: float = PATIENCE
    ) -> None:
        self._place = place
        self._source = source
        self._patience = patience
        self._records = records_of(source)
        self._files = lines_of(source)
        self._number, self._data = self._newest()
        self.write(self._data or b"")  # from now on no other process can write
        self._writer = PlaceLogWriter(place, source, retention=retention, beside=True)

    @property
    def writer(self) -> EventLogWriter:
        return self._writer

    @property
    def log(self) -> str:
        return log_pieces(self._place, self._source).address

    @property
    def record(self) -> str:
        return f"{self._place.address}/{self._name(self._number)}"

    @property
    def place(self) -> str:
        return self._place.address

    @property
    def target(self) -> str:
        return f"{self._files}{self._number:012d}-"

    def read(self) -> bytes | None:
        return self._data or None

    def write(self, data: bytes) -> None:
        number = self._number + 1
        name = self._name(number)
        content = sealed(name, uuid4().bytes + data)
        if not persistent(lambda: created(self._place, name, content), self._patience):
            raise LogLocked(
                f"{self._place.address}: another process now pours into source {self._source!r}; "
                "stop one of the two, this one has poured nothing since"
            )
        self._number, self._data = number, data
        if number >= KEPT:
            old = self._name(number - KEPT)
            persistent(lambda: self._place.delete([old]), self._patience)

    def tags_since(self, position: Sequence[int]) -> Iterator[Tag]:
        pieces = log_pieces(self._place, self._source, self._patience)
        chain = pieces.chain()
        at = max(list(position), [*chain.start])
        for _, _, data in pieces.bytes_from(chain, at[0]):
            for block in blocks_of(pieces, at, data):
                yield from block.tags()
                at = [block.next_offset, block.header.first + block.header.count]
        if at[0] < chain.end:  # pieces were joined meanwhile
            yield from self.tags_since(at)

    def keep(self, name: str, lines: bytes) -> str:
        put_lines(self._place, self.target + name, lines, self._patience)
        return self.target + name

    def secure(self) -> None:
        """Does nothing: an object is durable once it was put."""

    def open(self, name: str) -> BinaryIO:
        data = persistent(lambda: read(self._place, name), self._patience)
        if data is None:
            raise FileNotFoundError(f"{self._place.address}/{name}")
        return BytesIO(data)

    def clear(self) -> None:
        listed = persistent(lambda: [*self._place.list(self._files)], self._patience)
        own = f"{self._files}{self._number:012d}~"
        names = [entry.name for entry in listed if entry.name < own]
        if names:
            persistent(partial(self._place.delete, names), self._patience)

    def close(self) -> None:
        self._writer.close()

    def _name(self, number: int) -> str:
        return f"{self._records}{number:012d}"

    def _newest(self) -> tuple[int, bytes | None]:
        """Returns the number of the last record, and its content."""
        while True:
            listed = persistent(lambda: [*self._place.list(self._records)], self._patience)
            if not listed:
                return -1, None
            name = listed[-1].name
            data = persistent(partial(read, self._place, name), self._patience)
            if data is not None:  # else another process has written newer ones meanwhile
                return int(name.removeprefix(self._records)), data[ID_BYTES:]


class ObjectLines:
    """Writes lines to objects of a place, each small enough for a process to hold in memory."""

    def __init__(self, place: Place, stem: str) -> None:
        self._place, self._stem = place, stem
        self._waiting = bytearray()
        self._files: list[tuple[str, int]] = []

    def write(self, lines: Sequence[bytes]) -> None:
        self._waiting += b"".join(lines)
        if len(self._waiting) >= OBJECT_BYTES:
            self._put()

    def finished(self) -> list[tuple[str, int]]:
        if self._waiting:
            self._put()
        return self._files

    def _put(self) -> None:
        name = f"{self._stem}-{len(self._files)}{SUFFIX}"
        put_lines(self._place, name, bytes(self._waiting))
        self._files.append((name, len(self._waiting)))
        self._waiting.clear()

    def close(self) -> None:
        """Discards lines that were not put; an object exists whole or not at all."""


def written_lines(place: str, stem: str) -> LinesWriter:
    """Opens a writer of lines for a task: objects in the place at this address, or a file on disk.

    Their names begin with `stem`.
    """
    return ObjectLines(place_at(place), stem) if place else FileLines(stem)


def pour_storage_of(
    place: str, store: Path, source: str, log: Path, retention: Retention
) -> PourStorage:
    """Opens the pour storage of a source, for a store in a place or in a folder."""
    if place:
        return PlacePourStorage(place_at(place), source, retention)
    return FolderPourStorage(store, source, log, retention)
