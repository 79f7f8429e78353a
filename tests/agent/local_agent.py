"""An agent without a network: it reads a log to its end, or is killed on the way."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import msgspec

from millstream.agent.agent_job import AgentJob
from millstream.agent.agent_loop import Loop
from millstream.agent.delivery.outbox import Outbox
from millstream.agent.job_orders import JobOrders
from millstream.agent.job_status import SendingStatus
from millstream.agent.limits import Limits
from millstream.agent.options import AgentOptions
from millstream.agent.state import job_folder
from millstream.agent.surroundings import Surroundings
from millstream.windows.placed import PlacedJob

Sent = list[dict[str, Any]]


class Killed(Exception):
    """The process dies here."""


class Windows:
    """The root's windows."""

    def __init__(self, closed: Callable[[int], bool]) -> None:
        self.closed = closed

    def opened(self, window: int) -> float | None:
        return None


class NoLink:
    """Nothing is sent."""

    def __init__(self, closed: Callable[[int], bool]) -> None:
        self.decisions = Windows(closed)

    def start(self) -> None: ...

    def check(self) -> None: ...

    def stop(self, seconds: float) -> None: ...

    def status(self) -> SendingStatus:
        return SendingStatus()


class LocalAgent:
    """An agent of some jobs over one log; it dies when so many groups of panes were put."""

    def __init__(
        self,
        folder: Path,
        jobs: Sequence[PlacedJob],
        *,
        puts: int = 10**9,
        closed: Callable[[int], bool] = lambda window: False,
        orders: JobOrders | None = None,
        once: bool = True,
    ) -> None:
        self._left, self._closed, self.said = puts, closed, list[str]()
        self.options = AgentOptions(
            node="web1",
            patterns=(str(folder / "app.log*"),),
            root="http://root",
            state=folder / "state",
            once=once,
            memory=1 << 40,
        )
        self.stop, self.tick = Event(), lambda: None
        self.around = Surroundings(
            self.said.append,
            self.stop,
            lambda: self.tick(),
            time.monotonic,
            lambda: time.time_ns() // 1_000,
        )
        self._limits = Limits(self.options.memory, self.around)
        self._several = len(jobs) != 1 or orders is not None
        self.loop = Loop(self.options, self._limits, self.around, self._open, orders)
        self.jobs: dict[str, AgentJob] = {}
        try:
            for job in jobs:
                self.loop.start(job)
        except BaseException:
            self.loop.close()
            raise

    def run(self) -> None:
        try:
            self.loop.run()
        except Killed:
            pass
        finally:
            self.loop.close()

    def sent(self, name: str = "counts") -> Sent:
        return [json.loads(entry.body) for entry in self.jobs[name].outbox.entries()]

    def status(self, name: str = "counts") -> dict[str, Any]:
        status: dict[str, Any] = msgspec.to_builtins(self.loop.ended[name])
        return status

    def _open(self, placed: PlacedJob) -> AgentJob:
        state = self.options.state
        folder = job_folder(state, placed.name) if self._several else state
        link = NoLink(self._closed)
        job = AgentJob(
            placed,
            self.options,
            folder,
            lambda placed, outbox: link,
            self._limits,
            self.around,
        )
        self._count_puts(job.outbox)
        self.jobs[placed.name] = job
        return job

    def _count_puts(self, outbox: Outbox) -> None:
        real = outbox.put

        def counting(entries: Any) -> None:
            if not self._left:
                raise Killed
            self._left -= 1
            real(entries)

        outbox.put = counting  # type: ignore[method-assign]


def run(
    folder: Path,
    made: PlacedJob,
    *,
    puts: int = 10**9,
    closed: Callable[[int], bool] = lambda window: False,
) -> tuple[Sent, dict[str, Any]]:
    """Reads the log to its end, or until a number of groups of panes were put. Returns the sent
    messages."""
    try:
        agent = LocalAgent(folder, [made], puts=puts, closed=closed)
    except Killed:
        return [], {}
    agent.run()
    return agent.sent(), agent.status()
