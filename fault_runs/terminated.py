"""SIGTERM, or Ctrl-C, while a batch runs: the process ends soon and well, and the next goes on.

Twice a run, at a moment of a batch that is drawn by seed. Half of the batches end within the
time that a stopping run gives them, and are committed; the others are cancelled and repeated by the
next start.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from random import Random

from fault_runs.chain import LANES, chain, chain_difference, records, settings_of, write_records
from fault_runs.processes import MILLSTREAM, ROOT, start, wait_until
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from millstream.spark.runner import run

STOPS, LIMIT_S = 2, 5.0
QUICK_MS, SLOW_MS = 5, 100
"""An event's time: a batch of a hundred takes half a second, or ten."""


def run_terminated(seed: int, folder: Path, context: Context) -> Result:
    """Stop it, start it again and stop that; the last start runs to the end."""
    random, given = Random(seed), records(seed, 600)
    write_records(folder, given)
    began, ends, notes = folder / "began", list[float](), list[str]()
    for number in range(STOPS):
        lane, event_ms = random.choice(LANES), random.choice([QUICK_MS, SLOW_MS])
        asked = random.choice([signal.SIGTERM, signal.SIGINT])
        began.unlink(missing_ok=True)
        environ = {"FAULT_RUNS_BEGAN": str(began), "FAULT_RUNS_MS": str(event_ms)}
        running = start(_command(folder, lane), folder / f"said-{number}", environ)
        try:
            if not wait_until(began.exists, running):
                raise AssertionError(f"no batch has begun: {running.said()}")
            time.sleep(random.uniform(0.0, event_ms / 20))  # the moment is the point
            at = time.monotonic()
            os.kill(running.process.pid, asked)
            code = running.wait()
            ends.append(time.monotonic() - at)
        finally:
            running.kill()
        if code != 0:
            raise AssertionError(f"{asked.name}: exit code {code} must be 0: {running.said()}")
        notes.append(f"{asked.name} {event_ms} ms {lane}: {ends[-1]:.1f} s")
    run(chain(), settings_of(folder, random.choice(LANES)), spark=context.spark)
    found = chain_difference(folder, given)
    note = found.note or "; ".join(notes)
    slow = [seconds for seconds in ends if seconds > LIMIT_S]
    if slow and _busy():
        slow, note = [], f"{note}; not judged, the machine is busy otherwise"
    failed = f"{len(slow)} of {STOPS} took over {LIMIT_S:.0f} s to end: {note}" if slow else ""
    return Result(
        TERMINATED.name, seed, found.lost, found.doubled, tuple(ends), note, STOPS, failed
    )


def _busy() -> bool:
    """Whether more wants to run here than this run itself: then seconds mean little."""
    return os.getloadavg()[0] > 2 * len(os.sched_getaffinity(0))


def _command(folder: Path, lane: str) -> list[str]:
    app = str(ROOT / "fault_runs" / "slow_app.py")
    source, sink = f"records=json:{folder / 'in'}", f"alerts=json:{folder / 'out' / 'alerts'}"
    places = ["--source", source, "--sink", sink, "--store", str(folder / "store")]
    size = ["--shards", "3", "--tasks", "2", "--batch-bytes", "4000", "--lane", lane]
    return [*MILLSTREAM, "run", app, *places, *size, "--available-now"]


TERMINATED = Scenario(
    "sigterm-mid-batch",
    "SIGTERM or Ctrl-C ends a run within 5 s, exit code 0; the next start goes on (the time is "
    "that to the end)",
    run_terminated,
)
