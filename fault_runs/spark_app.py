"""Runs an application on Spark as users do; kills it and starts it again at the same address."""

from __future__ import annotations

from pathlib import Path

import httpx

from fault_runs.agents.running import free_port
from fault_runs.processes import MILLSTREAM, Started, start, wait_until


class SparkApp:
    """`millstream run` of an application, at the same address in all starts."""

    def __init__(self, folder: Path, app: str) -> None:
        self._app = app
        self._port = free_port()
        self._said = folder / "root-said"
        self._running: Started | None = None
        self.store = folder / "store"
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self) -> Started:
        self._running = start([*self._words(), "--port", str(self._port)], self._said)
        return self._running

    def wait(self) -> None:
        """Wait until it answers."""
        assert self._running is not None
        if not wait_until(self._answers, self._running):
            raise AssertionError(f"the application ended by itself: {self._running.said()}")

    def kill(self) -> None:
        """Kill it with its JVM and its server; a second call does nothing."""
        if self._running is not None:
            self._running.kill()
            self._running = None

    def settle(self) -> None:
        """Let it process all existing input, and end."""
        self.kill()
        ending = start([*self._words(), "--available-now", "--no-serve"], self._said)
        try:
            if ending.wait() != 0:
                raise AssertionError(f"the last run failed: {ending.said()}")
        finally:
            ending.kill()

    def _words(self) -> list[str]:
        return [*MILLSTREAM, "run", self._app, "--store", str(self.store), "--shards", "3"]

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", timeout=2.0).status_code == 200
        except httpx.HTTPError:
            return False
