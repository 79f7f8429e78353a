"""Runs the slowed chain with `millstream run`, to be disturbed while one of its batches runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

from fault_runs.chain import LANES
from fault_runs.processes import MILLSTREAM, ROOT, Started, start, wait_until

QUICK_MS, SLOW_MS = 5, 100
"""Milliseconds for an event: a batch of a hundred takes half a second, or ten."""


@contextmanager
def slow_run(folder: Path, number: int, random: Random) -> Iterator[tuple[Started, str]]:
    """A run in the middle of a batch, and its lane and speed, which are drawn, in words.

    It reads `folder`/in to its end; its output is in `folder`/said-`number`.
    """
    lane, event_ms = random.choice(LANES), random.choice([QUICK_MS, SLOW_MS])
    began = folder / "began"
    began.unlink(missing_ok=True)
    environ = {"FAULT_RUNS_BEGAN": str(began), "FAULT_RUNS_MS": str(event_ms)}
    running = start(_command(folder, lane), folder / f"said-{number}", environ)
    try:
        if not wait_until(began.exists, running):
            raise AssertionError(f"no batch has begun: {running.said()}")
        time.sleep(random.uniform(0.0, event_ms / 20))  # a random moment is intended
        yield running, f"{event_ms} ms {lane}"
    finally:
        running.kill()


def _command(folder: Path, lane: str) -> list[str]:
    app = str(ROOT / "fault_runs" / "slow_app.py")
    source, sink = f"records=json:{folder / 'in'}", f"alerts=json:{folder / 'out' / 'alerts'}"
    places = ["--source", source, "--sink", sink, "--store", str(folder / "store")]
    size = ["--shards", "3", "--tasks", "2", "--batch-bytes", "4000", "--lane", lane]
    return [*MILLSTREAM, "run", app, *places, *size, "--available-now"]
