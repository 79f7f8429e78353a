"""Jobs that an agent is told to start and to stop while it runs.

Any thread may order; the agent's own thread takes the orders between two pieces of its log.
"""

from __future__ import annotations

from threading import Lock

from millstream.windows.placed import PlacedJob


class JobOrders:
    """A queue of jobs to start, and of names of jobs to stop. Threads may share it."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._orders: list[PlacedJob | str] = []

    def start_job(self, placed: PlacedJob) -> None:
        """Run a job. One of this name that runs already is stopped first."""
        with self._lock:
            self._orders += [placed.name, placed]

    def stop_job(self, name: str) -> None:
        """Run a job no more. What it has made and not sent stays in its folder."""
        with self._lock:
            self._orders.append(name)

    def taken(self) -> list[PlacedJob | str]:
        """All orders since the last call, in order."""
        with self._lock:
            orders, self._orders = self._orders, []
            return orders
