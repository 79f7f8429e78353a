"""The position that each reader of a log in a place has committed: `readers/STREAM/NAME`.

A reader overwrites its own object. Retention waits for the reader that is furthest behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from millstream.errors import PlaceDamaged
from millstream.log.readers import CommittedPosition
from millstream.places.place import Place, persistent, read, sealed

PATIENCE = 60.0
_decode = msgspec.json.Decoder(CommittedPosition).decode


def reader_name(stream: str, reader: str) -> str:
    """The name of the object of a reader of a stream's log."""
    return f"readers/{stream}/{reader}"


def commit_in(place: Place, stream: str, reader: str, position: Sequence[int]) -> None:
    """Record that this reader needs nothing before the position any more."""
    name = reader_name(stream, reader)
    data = sealed(name, msgspec.json.encode(CommittedPosition(*position)))
    persistent(lambda: place.put(name, data), PATIENCE)


def knows_in(place: Place, stream: str, reader: str) -> bool:
    """True if the reader has ever committed."""
    name = reader_name(stream, reader)
    return persistent(lambda: place.get(name) is not None, PATIENCE)


def release_in(place: Place, stream: str, reader: str) -> None:
    """Remove this reader: retention no longer waits for it."""
    persistent(lambda: place.delete([reader_name(stream, reader)]), PATIENCE)


def readers_in(place: Place, stream: str) -> dict[str, CommittedPosition]:
    """The committed position of each reader of a stream's log."""
    prefix, positions = reader_name(stream, ""), {}
    for name in persistent(lambda: [listed.name for listed in place.list(prefix)], PATIENCE):
        data = persistent(partial(read, place, name), PATIENCE)
        if data is not None:
            positions[name.removeprefix(prefix)] = _decode(data)
    return positions


def least_committed_in(place: Place, stream: str, patience: float = PATIENCE) -> int | None:
    """The offset of the reader that is furthest behind; None if none ever committed.

    Returns 0, which keeps everything, if a reader's object is damaged.
    """
    prefix = reader_name(stream, "")
    names = persistent(lambda: [listed.name for listed in place.list(prefix)], patience)
    offsets = []
    for name in names:
        try:
            data = persistent(lambda name=name: read(place, name), patience)  # type: ignore[misc]
            if data is not None:  # else the reader was removed meanwhile
                offsets.append(_decode(data).offset)
        except (PlaceDamaged, msgspec.MsgspecError):
            return 0
    return min(offsets, default=None)
