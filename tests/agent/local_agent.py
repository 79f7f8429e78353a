"""An agent without a network: it reads a log to its end, or is killed on the way."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event
from typing import Any

from millstream.agent.job_panes import JobPanes
from millstream.agent.limits import Limits
from millstream.agent.looping import Loop
from millstream.agent.options import Options
from millstream.agent.outbox import Outbox
from millstream.agent.state import State
from millstream.agent.surroundings import Surroundings
from millstream.windows.placed import PlacedJob


class Killed(Exception):
    """The process dies here."""


class Windows:
    """What the root says."""

    def __init__(self, closed: Callable[[int], bool]) -> None:
        self.closed = closed

    def opened(self, window: int) -> float | None:
        return None


def run(
    folder: Path,
    made: PlacedJob,
    *,
    puts: int = 10**9,
    closed: Callable[[int], bool] = lambda window: False,
) -> tuple[list[Any], dict[str, Any]]:
    """Read the log to its end, or until so many groups of panes were put; what was sent of it."""
    options = Options(
        node="web1",
        patterns=(str(folder / "app.log*"),),
        root="http://root",
        state=folder / "state",
        once=True,
        memory=1 << 40,
    )
    state, outbox = State(options.state, made, "web1"), Outbox(folder / "outbox", 10**9, print)
    real, left = outbox.put, [puts]

    def counting(entries: Any) -> None:
        if not left[0]:
            raise Killed
        left[0] -= 1
        real(entries)

    outbox.put = counting  # type: ignore[method-assign]
    status: dict[str, Any] = {}
    try:
        around = Surroundings(
            lambda words: None,
            Event(),
            lambda: None,
            time.monotonic,
            lambda: time.time_ns() // 1_000,
        )
        limits = Limits(options.memory, around)
        limits.outboxes.append(outbox)
        windows = Windows(closed)
        panes = JobPanes(made, "web1", "", state, outbox, windows, limits, around)
        loop = Loop(panes, options, limits, around)
        loop.run()
        status = panes.status()
        loop.close()
    except Killed:
        pass
    finally:
        state.close()
    return [json.loads(entry.body) for entry in outbox.entries()], status
