"""A thread that does one thing after the other, for as long as somebody needs it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

CLOSE_SECONDS = 1.0
"""How long `close` waits; a thread that hangs in a call to the outside does not end with it."""


class WorkerThread:
    """Carries out what it is given, in order. What is given must not raise."""

    def __init__(self, name: str) -> None:
        self._todo: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=f"millstream-{name}", daemon=True)
        self._thread.start()

    def do(self, work: Callable[[], None]) -> None:
        """Carry this out, after what was given before."""
        self._todo.put(work)

    def close(self) -> None:
        """End after what was given."""
        self._todo.put(None)
        self._thread.join(CLOSE_SECONDS)

    def _work(self) -> None:
        while (work := self._todo.get()) is not None:
            work()
