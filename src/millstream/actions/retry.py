"""Puts back dead letters of an action, for the command and for the server."""

from __future__ import annotations

from pathlib import Path

from millstream.actions.letters import failed_log
from millstream.actions.overview import action_state, records_of
from millstream.actions.place_records import ask_retry_in
from millstream.actions.record import ask_retry
from millstream.places.place import Place


def put_back(store: Path, action: str, place: Place | None = None, *, dry_run: bool = False) -> int:
    """Requests that all dead letters of an action be carried out again. Returns their number.

    If the application runs, it finds the request within seconds, otherwise at its next start.
    `place` is the place of a shared store, and `store` a copy of it.
    """
    count = action_state(store, action).failed
    if not count or dry_run:
        return count
    until = records_of(failed_log(store, action))
    if place is None:
        ask_retry(store, action, until)
    else:
        ask_retry_in(place, action, until)
    return count
