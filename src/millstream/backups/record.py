"""The record of a backup: the chunks that make up its shards and files, as of one batch.

A folder of backups, or a place such as `s3://BUCKET/PREFIX`, holds

    backups/ID        a record; ID is the time of the backup and its batch
    chunks/NAME       many chunks, written together

A record is written last, so a backup that has a record is complete. Chunks are named by their
content and shared by all backups of the folder.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from millstream.errors import StoreError
from millstream.places.place import Place, read, sealed

RECORDS, PACKS = "backups/", "chunks/"
FORMAT = 1
ChunkId = bytes
"""The first 16 bytes of the SHA-256 of a chunk."""


class ChunkPlace(msgspec.Struct, frozen=True, array_like=True):
    """The location of a chunk."""

    pack: int
    """The index in the record's packs."""
    start: int
    length: int


class BackupRecord(msgspec.Struct):
    """A backup: everything of a store as of a batch."""

    id: str
    app: str
    store: str
    """The id of the store."""
    batch: int
    taken: int
    """The time of the backup, in microseconds."""
    facts: bytes
    progress: bytes
    shards: list[list[ChunkId]]
    """The rows of each shard, in order."""
    files: dict[str, list[ChunkId]]
    """Files of the store, by their path in it."""
    packs: list[str]
    chunks: dict[ChunkId, ChunkPlace]
    written: int = 0
    """Bytes that this backup has added."""
    size: int = 0
    """Stored bytes of all its chunks."""
    format: int = FORMAT


def backup_ids(place: Place) -> list[str]:
    """The ids of all backups, the oldest first."""
    return sorted(listed.name.removeprefix(RECORDS) for listed in place.list(RECORDS))


def read_record(place: Place, id: str) -> BackupRecord:
    """A backup; StoreError if there is none, or it is damaged."""
    data = read(place, RECORDS + id)
    if data is None:
        known = ", ".join(backup_ids(place)[-5:]) or "none"
        raise StoreError(f"{place.address}: there is no backup {id!r}; the last ones are: {known}")
    record = msgspec.msgpack.decode(data, type=BackupRecord)
    if record.format != FORMAT:
        raise StoreError(
            f"{place.address}: backup {id} has format {record.format}, and this version of "
            f"Millstream reads format {FORMAT}"
        )
    return record


def newest(place: Place) -> BackupRecord | None:
    """The last backup; None if there is none."""
    ids = backup_ids(place)
    return read_record(place, ids[-1]) if ids else None


def all_records(place: Place) -> Iterator[BackupRecord]:
    return (read_record(place, id) for id in backup_ids(place))


def write_record(place: Place, record: BackupRecord) -> None:
    """Write the record, which completes the backup. All its chunks must be written already."""
    name = RECORDS + record.id
    if not place.create(name, sealed(name, msgspec.msgpack.encode(record))):
        raise StoreError(f"{place.address}: there is a backup {record.id} already; try again")
