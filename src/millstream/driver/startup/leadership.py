"""Leadership on a shared store: one driver leads and runs the application, others stand by.

The leader overwrites the object `leader` every two seconds. A standby takes over when neither this
object nor the commits have changed for the duration of the lease, by its own clock: it commits the
next batch, with the next epoch (`SharedHome.take_over`). Safety does not depend on any clock: a
leader that was only slow finds that its next commit already exists, and ends.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable

import msgspec

from millstream.errors import PlaceError
from millstream.places.place import Place, sealed
from millstream.stores.shared.commit_log import CommitLog
from millstream.stores.shared.leader_beat import BEAT_SECONDS, LEADER, LeaderBeat, last_beat

LOOK_SECONDS = 0.5


class Leading:
    """A context manager that announces, while it is open, that this process leads."""

    def __init__(self, place: Place, run: str, seconds: float = BEAT_SECONDS) -> None:
        self._place = place
        self._run = run
        self._seconds = seconds
        self._beat = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._say_so, name="leader", daemon=True)

    def __enter__(self) -> Leading:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *exc: object) -> None:
        self._stop.set()
        self._thread.join()
        if kind is None:  # after a failure another driver may lead, which has not ended
            self._write(ended=True)

    def _say_so(self) -> None:
        while True:
            self._write()
            if self._stop.wait(self._seconds):
                return

    def _write(self, *, ended: bool = False) -> None:
        self._beat += 1
        beat = LeaderBeat(socket.gethostname(), self._run, self._beat, ended)
        try:
            self._place.put(LEADER, sealed(LEADER, msgspec.msgpack.encode(beat)))
        except PlaceError:
            pass  # the next one may succeed; at worst a standby takes over


class LeaderWatch:
    """A standby's observations of the leader. Does no I/O: its input comes as arguments."""

    def __init__(self, lease: float) -> None:
        self._lease = lease
        self._seen: tuple[LeaderBeat | None, int | None] | None = None
        self._since = 0.0

    def may_lead(self, beat: LeaderBeat | None, newest: int | None, now: float) -> bool:
        """True if the leader is gone, judging by its last beat and the newest commit."""
        if self._seen != (beat, newest):
            self._seen, self._since = (beat, newest), now
        return (beat is not None and beat.ended) or now - self._since >= self._lease


def stand_by(
    place: Place,
    lease: float,
    stop: threading.Event,
    say: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
    started: Callable[[], bool] = lambda: True,
) -> bool:
    """Waits until there is no leader; returns False if `stop` was set first.

    `started` returns True if this driver could run a batch at once, and raises if it never can. If
    the place does not answer, that says nothing about the leader: the lease starts again.
    """
    watch, log = LeaderWatch(lease), CommitLog(place, patience=0.0)
    last_said = ""
    while not stop.is_set():
        ready = started()
        try:
            beat, newest = last_beat(place), log.newest()
        except PlaceError as error:
            watch = LeaderWatch(lease)
            say(f"standing by; the place does not answer: {error}")
            stop.wait(BEAT_SECONDS)
            continue
        if watch.may_lead(beat, newest, clock()):
            return True
        host = beat.host if beat is not None else "nobody"
        sentence = f"standing by: {host} leads{'; ready to take over' if ready else ''}"
        if sentence != last_said:
            say(sentence)
            last_said = sentence
        stop.wait(LOOK_SECONDS)
    return False
