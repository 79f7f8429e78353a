"""The sinks that are failing now, for operators and monitoring: the file `trouble`.

The driver writes the file while a sink fails and removes it when the sink works again. The file is
information only, and nothing depends on it: a full disk may prevent writing it.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import msgspec

from millstream.durable import write_whole
from millstream.errors import StoreError


class Trouble(msgspec.Struct, frozen=True):
    """A sink that fails."""

    name: str
    since: int
    """The wall time of the first failure."""
    error: str


def write_troubles(store: Path, troubles: list[Trouble]) -> None:
    """Record the sinks that fail; an empty list removes the file."""
    path = store / "trouble"
    with suppress(StoreError, OSError):
        if troubles:
            write_whole(path, msgspec.json.encode(troubles))
        else:
            path.unlink(missing_ok=True)


def read_troubles(store: Path) -> list[Trouble]:
    """The failing sinks that a driver has recorded."""
    try:
        return msgspec.json.decode((store / "trouble").read_bytes(), type=list[Trouble])
    except (OSError, msgspec.MsgspecError):
        return []
