"""Durable files: replaced as a whole, or grown by whole appends, and synced to disk."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Self
from zlib import crc32

from millstream.errors import StoreError

GIVE_READING = "give the right to read it, or run this as its owner"
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
        raise unwritable(path, error) from error


def unwritable(path: Path, error: OSError) -> StoreError:
    """Returns the error that says what to do about a file or folder that cannot be written."""
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
        raise unwritable(path, error) from error


def write_record(path: Path, data: bytes, *, synced: bool = True) -> None:
    """Like `write_whole`, with a checksum that `read_record` verifies."""
    (write_whole if synced else write_unsynced)(path, with_checksum(data))


def read_record(path: Path) -> bytes | None:
    """Reads what `write_record` wrote; None if there is no such file, StoreError if damaged.

    The cause of the StoreError is a PermissionError if the file must not be read.
    """
    try:
        whole = path.read_bytes()
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}; {GIVE_READING}") from error
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


def write_at(file: int, data: bytes, offset: int) -> None:
    """Writes all of the data, however many calls it takes."""
    left = memoryview(data)
    while left:
        written = os.pwrite(file, left, offset)
        left, offset = left[written:], offset + written


class AppendFile:
    """A file that grows by whole appends. One process writes to it, one thread at a time.

    A failed append is taken back, and can be tried again. A crash may leave a part of the last
    append, or all of it. The format of the file must show where the last whole one ends, for
    example by a newline or a checksum: whoever opens the file finds that end, and calls `truncate`.
    """

    def __init__(self, file: int, end: int) -> None:
        """`file` is open to read and write, and is closed with this object."""
        self.file = file
        self.end = end
        """The length of what was appended."""
        self.torn = ""
        """The reason why there may be a part of an append after `end`; empty if there is none. The
        next append removes it first."""

    @classmethod
    def open(cls, path: Path | str) -> Self:
        """Opens a file, which is created if missing, to append after all that it has.

        The name of a new file is durable only once its directory is synced.
        """
        file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        return cls(file, os.fstat(file).st_size)

    @property
    def is_ours(self) -> bool:
        """False if another process has appended to the file, or truncated it."""
        return os.fstat(self.file).st_size == self.end

    def append(self, data: bytes, *, synced: bool = True) -> None:
        """Adds the data, on disk on return if `synced`; raises OSError if it was not added."""
        if self.torn:
            self.truncate(self.end, synced=synced)
        self.torn = "an append was interrupted"
        try:
            write_at(self.file, data, self.end)
            if synced:
                os.fdatasync(self.file)
        except OSError:
            with suppress(OSError):  # `torn` has the reason
                self.truncate(self.end, synced=synced)
            raise
        self.end += len(data)
        self.torn = ""

    def truncate(self, end: int, *, synced: bool = True) -> None:
        """Removes what follows `end`. Unless `synced`, a power failure may bring it back."""
        self.end = end
        try:
            os.ftruncate(self.file, end)
            if synced:
                os.fsync(self.file)
        except OSError as error:
            self.torn = f"a failed append could not be taken back: {error.strerror or error}"
            raise
        self.torn = ""

    def sync(self) -> None:
        """Forces appends that were not synced to disk."""
        os.fsync(self.file)

    def close(self) -> None:
        """Closes the file; it may be closed already."""
        if self.file >= 0:
            os.close(self.file)
        self.file = -1
