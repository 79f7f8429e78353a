"""The positions of a shared store's actions: small objects in its place, overwritten by the leader.

    records/actions/NAME         the position
    records/actions/NAME+retry   dead letters up to this number are carried out again

They are fetched into the working folder at a start, where they are read as in a local store. A
driver that has been replaced may still finish its current event, and overwrite a position with its
own, older one. The events that are then carried out again keep their ids.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from millstream.actions.record import (
    RETRY,
    ActionRecords,
    Position,
    Retry,
    folder_of,
    make_folder,
    retry_until,
    write_position,
)
from millstream.durable import write_record
from millstream.places.place import Place, persistent, read, sealed

PREFIX = "records/actions/"
LOOK_SECONDS = 5.0
"""Seconds between two checks for a request to retry dead letters."""
PATIENCE = 10.0
"""Seconds that the place may be unreachable before an action reports it, and tries again."""


def fetch_action_records(place: Place, store: Path, patience: float = PATIENCE) -> None:
    """Fetches the records of all actions into the folder of a store."""
    names = persistent(lambda: [listed.name for listed in place.list(PREFIX)], patience)
    for name in names:
        _fetch(place, store, name.removeprefix(PREFIX), patience)


def _fetch(place: Place, store: Path, record: str, patience: float) -> None:
    data = persistent(lambda: read(place, PREFIX + record), patience)
    if data is not None:
        make_folder(store)
        write_record(folder_of(store) / record, data, synced=False)


def put_action_record(place: Place, record: str, data: bytes) -> None:
    """Writes a record to the place. It is durable when this returns."""
    name = PREFIX + record
    persistent(lambda: place.put(name, sealed(name, data)), PATIENCE)


def ask_retry_in(place: Place, action: str, until: int) -> None:
    """Requests a retry of dead letters. The running application, or the next run, finds the
    request."""
    put_action_record(place, action + RETRY, msgspec.json.encode(Retry(until)))


class PlaceActionRecords(ActionRecords):
    """Records in a place, and copies of them in the working folder."""

    sync_seconds = 1.0

    def __init__(
        self, place: Place, store: Path, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(store)
        self._place = place
        self._clock = clock
        self._looked: dict[str, float] = {}
        fetch_action_records(place, store)

    def write_position(self, action: str, position: Position) -> None:
        put_action_record(self._place, action, msgspec.json.encode(position))
        write_position(self._store, action, position)

    def retry_until(self, action: str) -> int:
        now = self._clock()
        if now - self._looked.get(action, now - LOOK_SECONDS) >= LOOK_SECONDS:
            self._looked[action] = now
            _fetch(self._place, self._store, action + RETRY, PATIENCE)
        return retry_until(self._store, action)
