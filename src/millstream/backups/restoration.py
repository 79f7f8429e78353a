"""Restores a backup to a store: completely and checked, or not at all.

The store gets a new id, so that no sink confuses its batches with those of the store that was
backed up. It is built in a temporary folder, which is renamed when all of it is on disk.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from uuid import uuid4

import msgspec

from millstream.backups.chunks import ChunkReader, Item, rows_in
from millstream.backups.record import BackupRecord
from millstream.durable import sync, write_record
from millstream.errors import StoreError
from millstream.places.place import Place
from millstream.stores.home import Facts
from millstream.stores.progress import decoded
from millstream.stores.shard_writer import write_shard

EPOCH = 1


def restore(place: Place, record: BackupRecord, store: Path, say: Callable[[str], None]) -> None:
    """Restore a backup to a store, in a folder that does not exist yet or is empty.

    Raises StoreError, and leaves nothing, if a part of the backup is missing or damaged.
    """
    if store.exists() and (not store.is_dir() or any(store.iterdir())):
        raise StoreError(f"{store}: must be a new or an empty folder; name another")
    store.parent.mkdir(parents=True, exist_ok=True)
    temporary = store.with_name(f".{store.name}.{uuid4().hex[:8]}.tmp")
    temporary.mkdir(mode=0o700)
    try:
        _fill(temporary, ChunkReader(place, record), record, say)
        if store.is_dir():
            store.rmdir()
        os.rename(temporary, store)
        sync(store.parent)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def check(place: Place, record: BackupRecord, say: Callable[[str], None]) -> None:
    """Read all of a backup; StoreError if anything is missing or damaged."""
    chunks = ChunkReader(place, record)
    for number, ids in enumerate(record.shards):
        say(f"shard {number + 1} of {len(record.shards)}")
        for id in ids:
            rows_in(chunks.get(id))
    for ids in record.files.values():
        for id in ids:
            chunks.get(id)


def _fill(
    folder: Path, chunks: ChunkReader, record: BackupRecord, say: Callable[[str], None]
) -> None:
    facts = msgspec.json.decode(record.facts, type=Facts)
    progress = decoded(record.progress)
    old = facts.id
    facts.id, facts.folder, facts.here = uuid4().hex, "shards", None
    for name in ("sources", "staging", "shards"):
        (folder / name).mkdir()
    for number, ids in enumerate(record.shards):
        say(f"shard {number + 1} of {len(record.shards)}")
        rows = _rows(chunks, ids)
        write_shard(folder / "shards" / f"shard-{number:04d}", rows, EPOCH, progress.batch)
    for name, ids in record.files.items():
        path = folder / _renamed(name, facts.app, old, facts.id)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"".join(chunks.get(id) for id in ids))
        sync(path)
        sync(path.parent)
    staged = [name.removeprefix("staging/") for name in record.files if name.startswith("staging/")]
    waiting = [name for _, names in progress.unpublished for name in names]
    names = dict.fromkeys((*waiting, *progress.staged))
    progress.staged = [name for name in names if name in staged]
    progress.unpublished, progress.soft, progress.query, progress.folder = [], "", "", ""
    progress.last_batches = []
    write_record(folder / "epoch", str(EPOCH).encode())
    write_record(folder / "progress", msgspec.json.encode(progress))
    write_record(folder / "store.json", msgspec.json.encode(facts))


def _rows(chunks: ChunkReader, ids: list[bytes]) -> Iterator[Item]:
    for id in ids:
        yield from rows_in(chunks.get(id))


def _renamed(name: str, app: str, old: str, new: str) -> str:
    """The path of a file in the new store: readers of logs are named by the store's id."""
    folder, slash, file = name.rpartition("/")
    if folder.startswith("logs/") and folder.endswith("/readers"):
        prefix = f"{app}-{old[:8]}-"
        if file.startswith(prefix):
            file = f"{app}-{new[:8]}-{file.removeprefix(prefix)}"
    return folder + slash + file
