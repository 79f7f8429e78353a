"""Divides content into chunks, which are stored once, compressed, many in one object.

The key of a row decides whether a chunk ends there. So a row that is changed, added or removed
changes the chunk that it is in, or the two at its ends, and leaves the others as they were. Files,
most of which only grow, are cut at equal lengths.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from hashlib import sha256
from typing import Final
from zlib import crc32

import msgspec

from millstream.backups.record import PACKS, BackupRecord, ChunkId, ChunkPlace
from millstream.errors import StoreError
from millstream.places.place import Place, read, sealed

ROWS_MASK: Final = 0x1F
"""A chunk ends after a key whose checksum has none of these bits: after about 32 rows."""
MOST_BYTES: Final = 256 << 10
FILE_BYTES: Final = 64 << 10
PACK_BYTES: Final = 8 << 20
Item = tuple[bytes, bytes]
_encode = msgspec.msgpack.Encoder().encode
rows_in = msgspec.msgpack.Decoder(list[Item]).decode
"""Returns the rows in a chunk."""


def chunk_id(content: bytes) -> ChunkId:
    return sha256(content).digest()[:16]


def row_chunks(rows: Iterable[Item]) -> Iterator[bytes]:
    """Divides rows into chunks.

    >>> rows = [(b"%04d" % n, b"value") for n in range(1_000)]
    >>> one, other = [*row_chunks(rows)], [*row_chunks([*rows[:500], *rows[501:]])]
    >>> len(set(one) - set(other))
    1
    >>> [row for chunk in other for row in rows_in(chunk)] == [*rows[:500], *rows[501:]]
    True
    """
    chunk: list[Item] = []
    size = 0
    for key, value in rows:
        chunk.append((key, value))
        size += len(key) + len(value)
        if not crc32(key) & ROWS_MASK or size >= MOST_BYTES:
            yield _encode(chunk)
            chunk, size = [], 0
    if chunk:
        yield _encode(chunk)


def file_chunks(content: bytes) -> Iterator[bytes]:
    return (content[at : at + FILE_BYTES] for at in range(0, len(content), FILE_BYTES))


class ChunkWriter:
    """Writes the chunks that the previous backup does not have."""

    def __init__(self, place: Place, before: BackupRecord | None) -> None:
        self._place = place
        self.packs: list[str] = [] if before is None else list(before.packs)
        self._known = {} if before is None else before.chunks
        self.chunks: dict[ChunkId, ChunkPlace] = {}
        self.written = 0
        self._pending: list[bytes] = []
        self._size = 0

    def add(self, content: bytes) -> ChunkId:
        """Store a chunk, unless it is stored already; returns its id."""
        id = chunk_id(content)
        if id in self.chunks:
            return id
        known = self._known.get(id)
        if known is None:
            packed = zlib.compress(content, 1)
            known = ChunkPlace(len(self.packs), self._size, len(packed))
            self._pending.append(packed)
            self._size += len(packed)
        self.chunks[id] = known
        if self._size >= PACK_BYTES:
            self.flush()
        return id

    def flush(self) -> None:
        """Write the pending chunks."""
        if not self._pending:
            return
        data = b"".join(self._pending)
        name = PACKS + sha256(data).hexdigest()[:40]
        self._place.put(name, sealed(name, data))
        self.packs.append(name)
        self.written += len(data)
        self._pending, self._size = [], 0


class ChunkReader:
    """Reads the chunks of a backup; StoreError for one that is missing or damaged."""

    def __init__(self, place: Place, record: BackupRecord) -> None:
        self._place = place
        self._record = record
        self._packs: dict[int, bytes] = {}

    def get(self, id: ChunkId) -> bytes:
        where = self._record.chunks.get(id)
        if where is None:
            raise StoreError(f"{self._place.address}: backup {self._record.id}: a chunk is missing")
        packed = self._pack(where.pack)[where.start : where.start + where.length]
        content = zlib.decompress(packed)
        if chunk_id(content) != id:
            raise StoreError(
                f"{self._place.address}: backup {self._record.id}: a chunk is damaged; restore "
                "another backup"
            )
        return content

    def _pack(self, number: int) -> bytes:
        if number not in self._packs:
            name = self._record.packs[number]
            data = read(self._place, name)
            if data is None:
                raise StoreError(
                    f"{self._place.address}/{name}: is missing, and backup {self._record.id} needs "
                    "it; restore another backup"
                )
            if len(self._packs) >= 8:
                self._packs.pop(next(iter(self._packs)))
            self._packs[number] = data
        return self._packs[number]
