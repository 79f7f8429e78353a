"""The record of a mirror, in its file `mirror.json`: what it follows, and how fresh it is."""

from __future__ import annotations

from pathlib import Path

import msgspec

from millstream.durable import read_record, write_record

FILE = "mirror.json"


class MirrorRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The store that a mirror follows, and the outcome of the last poll."""

    place: str
    """The address of the shared store."""
    store: str
    """The id of the store that the shards here belong to."""
    boot: str
    """The boot id of the machine: files of another boot were never synced, and are not used."""
    asked: int = 0
    """The time of the place's last answer, in microseconds since the epoch."""
    running: bool = False
    """True if a driver leads the application, as far as is known."""
    error: str = ""
    """The reason why the place does not answer now; empty if it does."""


def read_mirror(folder: Path) -> MirrorRecord | None:
    """The record of a mirror; None if the folder is not a mirror."""
    data = read_record(folder / FILE)
    return None if data is None else msgspec.json.decode(data, type=MirrorRecord)


def write_mirror(folder: Path, record: MirrorRecord) -> None:
    write_record(folder / FILE, msgspec.json.encode(record), synced=False)
