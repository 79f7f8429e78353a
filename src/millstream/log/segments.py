"""The files of a log: segments by their names, and `end`, which says how far readers may read.

`end` is written in place after each sync, 20 bytes with a checksum, and never synced itself: after
a power cut it may be old or torn, and the writer, which looks at the segments, writes it anew when
it opens. While a writer lives it is right, or caught in the middle of a write, which the checksum
tells.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from millstream.durable import sync
from millstream.errors import LogError

_NAME = re.compile(r"(\d{20})-(\d{20})\.log")
_END = Struct("<QQI")
_TRIES = 5


class Segment(NamedTuple):
    """A file of blocks: the offset and the record number of its first byte."""

    offset: int
    first: int
    path: str


def segment_at(folder: Path, offset: int, first: int) -> Segment:
    """The segment that begins there, whether or not the file exists."""
    return Segment(offset, first, str(folder / f"{offset:020d}-{first:020d}.log"))


def list_segments(folder: Path) -> list[Segment]:
    """The segments in order; none if there is no such folder.

    Safe while the writer adds and removes: it removes the oldest first, so if the first one listed
    is still there afterwards, none behind it was removed while we looked.
    """
    while True:
        try:
            names = os.listdir(folder)
        except (FileNotFoundError, NotADirectoryError):
            return []
        except OSError as error:
            raise unreadable(folder, error) from None
        found = sorted(
            segment_at(folder, int(match[1]), int(match[2]))
            for match in map(_NAME.fullmatch, names)
            if match
        )
        if not found or os.path.exists(found[0].path):
            return found


def create_segment(folder: Path, segment: Segment) -> int:
    """An empty segment, its name on disk when this returns; the open file.

    One that is there holds nothing that was ever acknowledged: a crash or a full disk left it.
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
    """Whether no writer has the log; if so, none gets it until this is left.

    That is for a moment only: a writer that wants it tries a few times.
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


def make_folder(path: Path) -> None:
    """Make a folder and those above it, on disk when this returns."""
    if not path.is_dir():
        make_folder(path.parent)
        path.mkdir(exist_ok=True)
        sync(path.parent)


def failed(folder: Path, act: str, error: OSError) -> LogError:
    """What to say when the system refuses."""
    return LogError(
        f"log {folder}: cannot {act}: {error.strerror or error}; make room or give the right to "
        "write there, and try again"
    )


def unreadable(folder: Path, error: OSError) -> LogError:
    """What to say when the system does not let us read."""
    return LogError(
        f"log {folder}: cannot be read: {error.strerror or error}; give the right to read it, or "
        "restore the log's folder from a copy"
    )


def damaged(segment: Segment, place: int, why: str) -> LogError:
    """What to say when a segment holds something else than it must at a byte of its file."""
    return LogError(
        f"log segment {segment.path}: damaged at byte {place} (offset {segment.offset + place} of "
        f"the log): {why}; restore the log's folder from a copy, or move it away to begin a new log"
    )
