"""Spark's checkpoint files, as far as Millstream must know them.

A batch's offsets must be on disk before the first shard commits the batch, or a power cut could
leave slates that are ahead of what Spark remembers having planned. Spark does not force its files
to disk, so this does.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any
from zlib import crc32

from millstream.checkpoint import id_of, is_whole, offset_of
from millstream.durable import sync, write_synced, write_whole
from millstream.errors import StoreError
from millstream.stores.progress import Progress


def query_id(checkpoint: Path) -> str | None:
    """The id of the query whose checkpoint this is; None if it has not begun."""
    metadata = checkpoint / "metadata"
    if not metadata.exists():
        return None
    try:
        return id_of(metadata.read_bytes())
    except ValueError as error:
        raise StoreError(
            f"{metadata}: must be Spark's metadata of the query; got: {error}; restore it from a "
            "copy of the store"
        ) from None


def read_offset(checkpoint: Path, batch: int, *, synced: bool = True) -> tuple[dict[str, Any], int]:
    """The heartbeat's offset of a batch, and the checksum of its file; forced to disk first."""
    path = checkpoint / "offsets" / str(batch)
    before = checkpoint / "commits" / str(batch - 1)
    try:
        for file in (path, before, checkpoint / "metadata") if synced else ():
            if file == path or file.exists():
                sync(file)
        for folder in (path.parent, before.parent, checkpoint) if synced else ():
            if folder.exists():
                sync(folder)
        content = path.read_bytes()
        offset = offset_of(content)
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{path}: must be Spark's offsets of batch {batch}; got: {error}; restore the "
            "checkpoint from a copy of the store"
        ) from error
    return offset, crc32(content)


def kept_files(checkpoint: Path, batch: int) -> dict[str, str]:
    """The files that Spark needs to go on after a batch, by their paths; none before the first.

    It asks for the offsets of the last batch and of the one before.
    """
    names = ["metadata", f"offsets/{batch}"] + [f"offsets/{batch - 1}"] * (batch > 0)
    try:
        return {name: (checkpoint / name).read_text() for name in names} if batch >= 0 else {}
    except OSError as error:
        raise StoreError(
            f"{error.filename}: Spark's file of a batch that is to be flushed cannot be read: "
            f"{error.strerror}; nothing was flushed: restore the checkpoint, and start again"
        ) from error


def put_back(checkpoint: Path, files: dict[str, str]) -> None:
    """Make the checkpoint what it was when `files` were kept; they are on disk when this returns.

    Without Spark's commit the last batch is repeated, and skipped.
    """
    shutil.rmtree(checkpoint, ignore_errors=True)
    for name, content in files.items():
        path = checkpoint / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_synced(path, content.encode())
    sync_files(checkpoint)


def sync_files(checkpoint: Path) -> None:
    """Force all files of the checkpoint to disk: few, as Spark deletes those of old batches."""
    for path in checkpoint.rglob("*"):
        sync(path)
    for path in (checkpoint, checkpoint.parent):
        if path.exists():
            sync(path)


def clear_torn(checkpoint: Path, committed: int) -> None:
    """Remove what a power cut may leave of Spark's files: it renames them before they are on disk.

    Offsets of a batch that never ran and any commit are redundant for Millstream: the batch is
    planned again, or repeated and skipped. Offsets that a batch ran with were forced to disk.
    """
    for folder, last in (("offsets", committed), ("commits", -1)):
        for path in (checkpoint / folder).glob("[0-9]*"):
            if path.name.isdigit() and int(path.name) > last and not _is_whole(path):
                path.unlink()


def _is_whole(path: Path) -> bool:
    try:
        return is_whole(path.read_bytes())
    except OSError:
        return False


def check_checkpoint(checkpoint: Path, progress: Progress) -> str | None:
    """The id of the query; StoreError if the checkpoint is not the one that filled the store."""
    known = query_id(checkpoint)
    if progress.batch >= 0:
        if known is None or known != progress.query:
            raise StoreError(
                f"{checkpoint / 'metadata'}: the store was filled by query {progress.query}, and "
                f"the checkpoint is of {known or 'none'}; restore the checkpoint, or begin a new "
                "store with --store"
            )
        check_offsets(checkpoint, progress.batch, progress.offsets)
        _mend_before(checkpoint, progress.batch)
    return known


def _mend_before(checkpoint: Path, batch: int) -> None:
    """See that Spark can read the offsets of the batch before the last committed one.

    It asks for them if it has no commit of the last, only to tell whether that batch has input; and
    the batch is skipped. So those of the last batch will do in their place.
    """
    last, before = (checkpoint / "offsets" / str(number) for number in (batch, batch - 1))
    if batch > 0 and not _is_offset(before):
        write_whole(before, last.read_bytes())


def _is_offset(path: Path) -> bool:
    try:
        offset_of(path.read_bytes())
    except (OSError, ValueError):
        return False
    return is_whole(path.read_bytes())


def check_offsets(checkpoint: Path, batch: int, expected: int) -> None:
    """The offsets of the last committed batch must be those that it was committed with."""
    path = checkpoint / "offsets" / str(batch)
    if not path.exists():
        raise StoreError(
            f"{path}: the store has committed batch {batch}, and Spark's checkpoint does not know "
            "it; restore the checkpoint, or begin a new store"
        )
    found = crc32(path.read_bytes())
    if found != expected:
        raise StoreError(
            f"{path}: checksum {found:08x}, and batch {batch} was committed with {expected:08x}: "
            "the file is damaged; restore the checkpoint from a copy of the store"
        )
