"""The files of a log: segments, and `end`, the position up to which readers may read.

`end` is written in place after each sync, 20 bytes with a checksum, and is never synced itself.
After a power cut it may be old or torn; a writer that opens the log scans the segments and rewrites
it. While a writer lives, `end` is correct, or in the middle of a write, which the checksum detects.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from millstream.durable import sync
from millstream.errors import LogError, LogLocked

_NAME = re.compile(r"(\d{20})-(\d{20})\.log")
_END = Struct("<QQI")
_TRIES = 5
_LOCK_TRIES, _LOCK_SECONDS = 10, 0.02
"""Attempts to take the lock: a reader may hold it for a moment."""


class Segment(NamedTuple):
    """A file of blocks: the offset and the record number of its first byte."""

    offset: int
    first: int
    path: str


def segment_at(folder: Path, offset: int, first: int) -> Segment:
    """The segment that begins at an offset, whether or not the file exists."""
    return Segment(offset, first, str(folder / f"{offset:020d}-{first:020d}.log"))


def list_segments(folder: Path) -> list[Segment]:
    """The segments in order; empty if there is no such folder.

    Safe while the writer adds and removes segments: it removes the oldest first. So if the first
    one listed still exists afterwards, none after it was removed during the listing.
    """
    while True:
        try:
            names = os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise unreadable(folder, error) from None
        segments = sorted(
            segment_at(folder, int(match[1]), int(match[2]))
            for match in map(_NAME.fullmatch, names)
            if match
        )
        if not segments or os.path.exists(segments[0].path):
            return segments


def create_segment(folder: Path, segment: Segment) -> int:
    """Creates an empty segment; returns the open file once the name is on disk.

    An existing file is truncated. A crash or a full disk left it, and nothing in it was ever
    acknowledged.
    """
    flags = os.O_CREAT | os.O_TRUNC | os.O_RDWR | os.O_CLOEXEC
    file = os.open(segment.path, flags, 0o644)
    try:
        sync(folder)
    except BaseException:
        os.close(file)
        os.unlink(segment.path)
        raise
    return file


def encode_end(offset: int, records: int) -> bytes:
    """The content of `end`."""
    return _END.pack(offset, records, crc32(_END.pack(offset, records, 0)[:16]))


def read_end(folder: Path) -> list[int] | None:
    """The position in `end`; None if there is none, or it is damaged."""
    for _ in range(_TRIES):
        try:
            file = os.open(folder / "end", os.O_RDONLY | os.O_CLOEXEC)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise unreadable(folder, error) from None
        try:
            data = os.read(file, _END.size + 1)
        except OSError as error:
            raise unreadable(folder, error) from None
        finally:
            os.close(file)
        if len(data) == _END.size:
            offset, records, _ = _END.unpack(data)
            if data == encode_end(offset, records):
                return [offset, records]
    return None


@contextmanager
def unwritten(folder: Path) -> Iterator[bool]:
    """True if no writer holds the log; then none can take it until the context is left.

    Keep it short: a writer that wants the lock retries only a few times.
    """
    try:
        file = os.open(folder / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        yield True
        return
    except OSError:
        yield False
        return
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        free = True
    except OSError:
        free = False
    try:
        yield free
    finally:
        os.close(file)


def locked(folder: Path) -> int:
    """Takes the lock; returns the open lock file. The system frees it if the process dies."""
    file = os.open(folder / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    try:
        for left in reversed(range(_LOCK_TRIES)):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if not left:
                    raise
                time.sleep(_LOCK_SECONDS)
        os.ftruncate(file, 0)
        os.pwrite(file, str(os.getpid()).encode(), 0)
    except BlockingIOError:
        holder = os.pread(file, 32, 0).decode(errors="replace").strip()
        os.close(file)
        raise LogLocked(
            f"log {folder}: another process writes to it (process {holder or 'unknown'}); a log "
            "has one writer: stop that one first, or send the records to it"
        ) from None
    except BaseException:
        os.close(file)
        raise
    return file


def make_folder(path: Path) -> None:
    """Create a folder and its parents; they are on disk when this returns."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def failed(folder: Path, act: str, error: OSError) -> LogError:
    """The error for a write that the system refuses."""
    return LogError(
        f"log {folder}: cannot {act}: {error.strerror or error}; make room or give the right to "
        "write there, and try again"
    )


def unreadable(folder: Path, error: OSError) -> LogError:
    """The error for a read that the system refuses."""
    return LogError(
        f"log {folder}: cannot be read: {error.strerror or error}; give the right to read it, or "
        "restore the log's folder from a copy"
    )


def damaged(segment: Segment, place: int, why: str) -> LogError:
    """The error for a segment that is damaged at a byte of its file."""
    return LogError(
        f"log segment {segment.path}: damaged at byte {place} (offset {segment.offset + place} of "
        f"the log): {why}; restore the log's folder from a copy, or move it away to begin a new log"
    )
