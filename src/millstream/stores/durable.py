"""Small files that are either the old or the new whole, and on disk when the call returns."""

from __future__ import annotations

import os
from pathlib import Path
from zlib import crc32

from millstream.errors import StoreError


def sync(path: Path) -> None:
    """Force a file or a directory to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_whole(path: Path, data: bytes) -> None:
    """Replace a file's content; a reader, or a crash, sees the old or the new, never a mix."""
    fresh = path.with_name(f".{path.name}.tmp")
    try:
        with open(fresh, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(fresh, path)
        sync(path.parent)
    except OSError as error:
        raise StoreError(
            f"{path}: cannot be written: {error.strerror or error}; make room or give the right to "
            "write there, and start again"
        ) from error


def write_record(path: Path, data: bytes) -> None:
    """Like `write_whole`, with a checksum that `read_record` verifies."""
    write_whole(path, b"%08x %s\n" % (crc32(data), data))


def read_record(path: Path) -> bytes | None:
    """What `write_record` wrote; None if there is no such file, StoreError if it was damaged."""
    try:
        whole = path.read_bytes()
    except FileNotFoundError:
        return None
    check, _, data = whole.rstrip(b"\n").partition(b" ")
    if check != b"%08x" % crc32(data):
        raise StoreError(
            f"{path}: its checksum says {check[:8].decode(errors='replace')}, its content "
            f"{crc32(data):08x}: the file is damaged; restore it from a copy of the store"
        )
    return data
