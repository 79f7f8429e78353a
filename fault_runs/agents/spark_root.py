"""The root on Spark, as users start it, and agents of all its nodes; what is left in the end."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import httpx

from fault_runs.agents import judging
from fault_runs.agents.app import APPS, NAME, job_of
from fault_runs.agents.running import APP, free_port, messages_in
from fault_runs.agents.writing import Log
from fault_runs.outcome import Difference, kept_rows
from fault_runs.processes import MILLSTREAM, Started, start, wait_until

TREE = "tree"


class SparkRoot:
    """`millstream run` over the jobs of `app`, at one address over all its lives."""

    def __init__(self, folder: Path) -> None:
        self._port = free_port()
        self._said = folder / "root-said"
        self._running: Started | None = None
        self.store = folder / "store"
        self.url = f"http://127.0.0.1:{self._port}"

    def start(self) -> Started:
        self._running = start([*self._words(), "--port", str(self._port)], self._said)
        return self._running

    def wait(self) -> None:
        """Until it answers."""
        assert self._running is not None
        if not wait_until(self._answers, self._running):
            raise AssertionError(f"the root ended by itself: {self._running.said()}")

    def kill(self) -> None:
        """End it with its JVM and its server; again, it does nothing."""
        if self._running is not None:
            self._running.kill()
            self._running = None

    def settle(self) -> None:
        """Let it take all that is there, and end."""
        self.kill()
        ending = start([*self._words(), "--available-now", "--no-serve"], self._said)
        try:
            if ending.wait() != 0:
                raise AssertionError(f"the last run failed: {ending.said()}")
        finally:
            ending.kill()

    def _words(self) -> list[str]:
        return [*MILLSTREAM, "run", f"{APP}:{TREE}", "--store", str(self.store), "--shards", "3"]

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/healthz", timeout=2.0).status_code == 200
        except httpx.HTTPError:
            return False


def judged(store: Path, logs: Mapping[str, Log]) -> Difference:
    """What the nodes told, and what the windows on Spark say, against the logs."""
    span, truths = job_of(APPS[TREE]).span, {node: log.truth for node, log in logs.items()}
    messages = messages_in(store)
    told = judging.told(messages, truths)
    late = sum((account.late for account in judging.accounts(messages).values()), Counter())
    rows = ((row["key"], row["value"]) for row in kept_rows(store, NAME))
    found = judging.answers(span, rows)
    return judging.both(told, judging.windows(span, found, list(truths.values()), late))


def residuals(status: str) -> list[int]:
    """The residual of each node, as the root says it."""
    jobs = json.loads(status)["jobs"]
    return [account["residual"] for account in jobs[NAME]["nodes"].values()]
