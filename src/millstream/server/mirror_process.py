"""The process that follows a shared store for a server: its shards, its event logs, its actions."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from millstream.actions.place_records import fetch_action_records
from millstream.errors import StoreError
from millstream.log.logs_follower import logs_followed
from millstream.places.place import Place
from millstream.stores.shared.follower_process import main

ACTIONS_SECONDS = 2.0
"""Seconds between two fetches of the records of actions."""


@contextmanager
def followed_beside(place: Place, folder: Path) -> Iterator[None]:
    """Follows the event logs and actions of a mirror, which it has besides its shards."""
    stop = threading.Event()

    def actions() -> None:
        while True:
            try:
                fetch_action_records(place, folder)
            except StoreError:
                pass  # the follower of the commits reports it
            if stop.wait(ACTIONS_SECONDS):
                return

    thread = threading.Thread(target=actions, name="follow actions", daemon=True)
    with logs_followed(place, folder / "logs"):
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()


if __name__ == "__main__":
    sys.exit(main(followed_beside))
