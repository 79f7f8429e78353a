"""The position that each reader of a log has committed: `readers/NAME.json`, replaced as a whole.

The first commit is on disk when it returns, so that a known reader stays known. Later commits are
not synced. After a power cut a file may be an older one, and retention keeps more; or it may be
damaged, and retention keeps everything, until that reader commits again.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from millstream.durable import sync, with_checksum, without_checksum
from millstream.log.segments import failed, make_folder


class CommittedPosition(msgspec.Struct, frozen=True):
    """A reader's position: it needs nothing before it."""

    offset: int
    records: int


_decode = msgspec.json.Decoder(CommittedPosition).decode


def commit(folder: Path, name: str, position: Sequence[int]) -> None:
    """Record that this reader needs nothing before the position any more."""
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise ValueError(f"a reader's name must be a file name that begins with no dot: {name!r}")
    readers = folder / "readers"
    fresh, known = readers / f".{name}.tmp", knows(folder, name)
    offset, records = position
    data = with_checksum(msgspec.json.encode(CommittedPosition(offset, records)))
    try:
        try:
            fresh.write_bytes(data)
        except FileNotFoundError:
            make_folder(readers)
            fresh.write_bytes(data)
        if not known:
            sync(fresh)
        os.replace(fresh, readers / f"{name}.json")
        if not known:
            sync(readers)
    except OSError as error:
        raise failed(folder, f"commit reader {name!r}", error) from None


def knows(folder: Path, name: str) -> bool:
    """True if the reader has ever committed."""
    return os.path.exists(folder / "readers" / f"{name}.json")


def read_committed(path: Path) -> tuple[int, int]:
    """The position in a reader's file; ValueError (msgspec's errors too) if it is damaged."""
    committed = _decode(without_checksum(path.read_bytes().rstrip(b"\n")))
    return committed.offset, committed.records


def read_committed_by(path: Path) -> int:
    """The offset in a reader's file; ValueError if it is damaged."""
    return read_committed(path)[0]


def least_committed(folder: Path) -> int | None:
    """The offset of the reader that is furthest behind; None if none ever committed.

    Returns 0, which keeps everything, if a reader's file cannot be read.
    """
    try:
        names = os.listdir(folder / "readers")
    except FileNotFoundError:
        return None
    except OSError:
        return 0
    offsets = []
    for name in names:
        if name.endswith(".json") and not name.startswith("."):
            try:
                offsets.append(read_committed_by(folder / "readers" / name))
            except FileNotFoundError:
                continue  # the reader was removed meanwhile
            except (OSError, ValueError):
                return 0
    return min(offsets, default=None)
