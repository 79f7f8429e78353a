"""A background thread that carries out tasks one after the other."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

CLOSE_SECONDS = 1.0
"""Seconds that `close` waits: a thread that hangs in an external call may not end."""


class WorkerThread:
    """Carries out the work that it is given, in order. The work must not raise."""

    def __init__(self, name: str) -> None:
        self._todo: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"millstream-{name}", daemon=True)
        self._thread.start()

    def do(self, work: Callable[[], None]) -> None:
        """Adds `work` to the queue."""
        self._todo.put(work)

    def close(self) -> None:
        """Ends the thread after the work in the queue."""
        self._todo.put(None)
        self._thread.join(CLOSE_SECONDS)

    def _work(self) -> None:
        while (work := self._todo.get()) is not None:
            work()
