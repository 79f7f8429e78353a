"""Orders to start and to stop jobs while an agent runs.

Any thread may add an order. The agent's loop takes the orders between two chunks of its log.
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
        """Order a job to be run. A running job of the same name is stopped first."""
        with self._lock:
            self._orders += [placed.name, placed]

    def stop_job(self, name: str) -> None:
        """Order a job to be stopped. The panes that it has not sent stay in its folder."""
        with self._lock:
            self._orders.append(name)

    def taken(self) -> list[PlacedJob | str]:
        """Removes and returns all orders since the last call, in order."""
        with self._lock:
            orders, self._orders = self._orders, []
            return orders
