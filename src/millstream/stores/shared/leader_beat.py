"""The heartbeat of the driver that leads an application: the object `leader`."""

from __future__ import annotations

import msgspec

from millstream.errors import PlaceDamaged
from millstream.places.place import Place, read

LEADER = "leader"
BEAT_SECONDS = 2.0


class LeaderBeat(msgspec.Struct, frozen=True):
    """The leader's heartbeat, written every two seconds."""

    host: str
    run: str
    """A new id for every run."""
    beat: int
    """A counter."""
    ended: bool = False
    """True if the leader has ended normally, so that a successor need not wait."""


def last_beat(place: Place) -> LeaderBeat | None:
    """The last heartbeat; None if there was never a leader, or the object is damaged."""
    try:
        data = read(place, LEADER)
        return None if data is None else msgspec.msgpack.decode(data, type=LeaderBeat)
    except (PlaceDamaged, msgspec.DecodeError):
        return None
