"""Spark's checkpoint files, as far as Millstream must know them.

A batch's offsets must be on disk before the first shard commits the batch, or a power cut could
leave slates that are ahead of what Spark remembers having planned. Spark does not force its files
to disk, so this does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zlib import crc32

from millstream.durable import sync
from millstream.errors import StoreError


def query_id(checkpoint: Path) -> str | None:
    """The id of the query whose checkpoint this is; None if it has not begun."""
    metadata = checkpoint / "metadata"
    if not metadata.exists():
        return None
    try:
        return str(json.loads(metadata.read_text())["id"])
    except (ValueError, KeyError) as error:
        raise StoreError(
            f"{metadata}: must be Spark's metadata of the query; got: {error}; restore it from a "
            "copy of the store"
        ) from None


def read_offset(checkpoint: Path, batch: int) -> tuple[dict[str, Any], int]:
    """The heartbeat's offset of a batch, and the checksum of its file; forced to disk first."""
    path = checkpoint / "offsets" / str(batch)
    before = checkpoint / "commits" / str(batch - 1)
    try:
        for file in (path, before, checkpoint / "metadata"):
            if file == path or file.exists():
                sync(file)
        for folder in (path.parent, before.parent, checkpoint):
            if folder.exists():
                sync(folder)
        content = path.read_bytes()
        offset: dict[str, Any] = json.loads(content.splitlines()[2])
    except (OSError, ValueError, IndexError) as error:
        raise StoreError(
            f"{path}: must be Spark's offsets of batch {batch}; got: {error}; restore the "
            "checkpoint from a copy of the store"
        ) from error
    return offset, crc32(content)


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
    """Whether a file of Spark's logs has its version and lines of JSON."""
    try:
        version, *lines = path.read_text().splitlines()
        return version == "v1" and all(json.loads(line) is not None for line in lines)
    except (OSError, ValueError):
        return False


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
