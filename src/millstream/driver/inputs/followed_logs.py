"""Follows, in background threads, the event logs in a place that sources read.

The threads copy what servers append into the mirrors on this host. The driver notices this as it
does with a local log: the kernel reports that files have changed (`input_watch`). So no batch waits
for a request to the place. An idle log costs one request per check.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from millstream.log.logs_follower import follow_log
from millstream.log.stream_logs import PlaceLogs


class LogFollowing:
    """A context manager that follows the logs of some streams while it is open."""

    def __init__(self, logs: PlaceLogs, streams: Sequence[str], say: Callable[[str], None]) -> None:
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(
                target=follow_log,
                args=(logs.mirror(stream), self._stop, say),
                name=f"follow {stream}",
                daemon=True,
            )
            for stream in streams
        ]

    def __enter__(self) -> LogFollowing:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()
