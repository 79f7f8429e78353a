"""Keeps a mirror at the last commit, and records in it how fresh it is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import msgspec

from millstream.errors import PlaceError, StoreError
from millstream.places.place import Place
from millstream.stores.shared.follow_pace import FollowPace
from millstream.stores.shared.leader_beat import last_beat
from millstream.stores.shared.mirror_record import MirrorRecord, write_mirror
from millstream.stores.shared.store_mirror import StoreMirror

SAY_EVERY = 0.5
"""Seconds between two records of the time at which the place answered."""
FAILED_PAUSE = 0.5
"""Seconds between a failed request to the place and the next one."""


class StoreFollower:
    """Follows the commits of a shared store into a mirror."""

    def __init__(
        self,
        place: Place,
        mirror: StoreMirror,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self._place = place
        self._mirror = mirror
        self._clock = clock
        self._wall = wall
        self._pace = FollowPace(clock())
        self._said: MirrorRecord | None = None

    def run(self, stop: threading.Event) -> None:
        """Follow until `stop` is set. Retries while the place does not answer."""
        while not stop.wait(self.step()):
            pass

    def step(self) -> float:
        """Polls the place once; returns the seconds until the next poll."""
        try:
            pause = self._look()
        except (PlaceError, StoreError) as error:
            self._say(str(error))
            return FAILED_PAUSE
        self._pace.answered(self._clock())
        self._say("")
        return pause

    def _look(self) -> float:
        pace, mirror = self._pace, self._mirror
        if mirror.follow():
            pace.committed(self._clock())
            return 0.0  # there may be more
        now = self._clock()
        if pace.looks_back(now) and mirror.catch_up():
            pace.committed(self._clock())
            return 0.0
        if pace.asks_leader(now):
            pace.beat(last_beat(self._place), self._clock())
        return pace.pause(self._clock())

    def _say(self, error: str) -> None:
        """Record how fresh the mirror is; not with every poll."""
        last, asked = self._said, int(self._wall() * 1e6)
        if error and last is not None:
            asked = last.asked
        record = msgspec.structs.replace(
            self._mirror.record,
            asked=asked,
            error=error,
            running=self._pace.leads(self._clock()),
        )
        if last is None or _differ(last, record) or asked - last.asked >= SAY_EVERY * 1e6:
            write_mirror(self._mirror.path, record)
            self._said = record


def _differ(said: MirrorRecord, record: MirrorRecord) -> bool:
    """True if the two records differ in more than the time."""
    return msgspec.structs.replace(said, asked=record.asked) != record
