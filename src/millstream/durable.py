"""Atomic, durable writes of small files: a file is wholly old or wholly new, and synced to disk."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from zlib import crc32

from millstream.errors import StoreError

BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@cache
def boot_id() -> str:
    """Returns an id that changes at each start of the machine; empty if the system has none."""
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


def sync(path: Path | str) -> None:
    """Forces a file or a directory to disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_synced(path: Path | str, data: bytes) -> None:
    """Writes a file and syncs it; its name is durable only once its directory is synced too."""
    file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o644)
    try:
        left = memoryview(data)
        while left:
            left = left[os.write(file, left) :]
        os.fsync(file)
    finally:
        os.close(file)


def write_whole(path: Path, data: bytes) -> None:
    """Replaces a file's content; a reader, or a crash, sees the old or the new, never a mix."""
    fresh = path.with_name(f".{path.name}.tmp")
    try:
        write_synced(fresh, data)
        os.replace(fresh, path)
        sync(path.parent)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise _unwritable(path, error) from error


def _unwritable(path: Path, error: OSError) -> StoreError:
    return StoreError(
        f"{path}: cannot be written: {error.strerror or error}; make room or give the right to "
        "write there, and start again"
    )


def write_unsynced(path: Path, data: bytes) -> None:
    """Like `write_whole`, but without a sync: a power failure may leave anything there."""
    fresh = path.with_name(f".{path.name}.tmp")
    try:
        fresh.write_bytes(data)
        os.replace(fresh, path)
    except OSError as error:
        fresh.unlink(missing_ok=True)
        raise _unwritable(path, error) from error


def write_record(path: Path, data: bytes, *, synced: bool = True) -> None:
    """Like `write_whole`, with a checksum that `read_record` verifies."""
    (write_whole if synced else write_unsynced)(path, with_checksum(data))


def read_record(path: Path) -> bytes | None:
    """Reads what `write_record` wrote; None if there is no such file, StoreError if damaged."""
    try:
        whole = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return without_checksum(whole.rstrip(b"\n"))
    except ValueError as error:
        raise StoreError(
            f"{path}: {error}: the file is damaged; restore it from a copy of the store"
        ) from None


def read_checked(path: Path) -> bytes:
    """Reads a file that holds a result of `with_checksum`; ValueError if it is damaged."""
    whole = path.read_bytes()
    if not whole.endswith(b"\n"):
        raise ValueError("its end is missing")
    return without_checksum(whole[:-1])


def with_checksum(data: bytes) -> bytes:
    """Returns a line: the crc32 of the data in eight hex digits, a space, the data.

    >>> with_checksum(b"{}")
    b'a3a6bf43 {}\\n'
    """
    return b"%08x %s\n" % (crc32(data), data)


def without_checksum(line: bytes) -> bytes:
    """Returns the data of a line without its newline; ValueError if the checksum does not match."""
    check, _, data = line.partition(b" ")
    if check != b"%08x" % crc32(data):
        raise ValueError(
            f"its checksum says {check[:8].decode(errors='replace')}, its content {crc32(data):08x}"
        )
    return data
