"""SIGTERM, or Ctrl-C, while a batch runs: the process ends soon and normally, the next goes on.

Twice a run, at a moment of a batch that is drawn by seed. The signal goes to the process alone, or
to its whole group, as a terminal and some service managers send it. Half of the batches end within
the time that a stopping run allows, and are committed; the others are cancelled, and the next start
takes their input again.
"""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path
from random import Random

from fault_runs.chain import LANES, chain, chain_difference, records, settings_of, write_records
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from fault_runs.slow_run import slow_run
from millstream.spark.runner import run

STOPS, LIMIT_S = 2, 5.0
STOPPING = "millstream: stopping; interrupt again to stop at once"
SUMMARY = re.compile(r"millstream: [\d,]+ events? in [\d,]+ batch(es)?, ")


def run_terminated(seed: int, folder: Path, context: Context) -> Result:
    """Stop the run, start it again and stop that; the last start runs to the end."""
    random, given = Random(seed), records(seed, 600)
    write_records(folder, given)
    ends, notes = list[float](), list[str]()
    for number in range(STOPS):
        asked = random.choice([signal.SIGTERM, signal.SIGINT])
        send = random.choice([os.kill, os.killpg])
        with slow_run(folder, number, random) as (running, slow):
            at = time.monotonic()
            send(running.process.pid, asked)
            code = running.wait()
            ends.append(time.monotonic() - at)
        problem = f"exit code {code} must be 0" if code else _wrongly_said(running.said())
        if problem:
            raise AssertionError(f"{asked.name}, {send.__name__}: {problem}: {running.said()}")
        notes.append(f"{send.__name__} {asked.name} {slow}: {ends[-1]:.1f} s")
    run(chain(), settings_of(folder, random.choice(LANES)), context=context.spark)
    found = chain_difference(folder, given)
    note = found.note or "; ".join(notes)
    slow_ends = [seconds for seconds in ends if seconds > LIMIT_S]
    if slow_ends and _busy():
        slow_ends, note = [], f"{note}; not judged, the machine is busy otherwise"
    failed = f"{len(slow_ends)} of {STOPS} took over {LIMIT_S:.0f} s to end: {note}"
    return Result(
        TERMINATED.name,
        seed,
        found.lost,
        found.doubled,
        tuple(ends),
        note,
        STOPS,
        failed if slow_ends else "",
    )


def _wrongly_said(said: str) -> str:
    """Describes an error in the messages of a stopped run: there must be one line that it stops,
    then one summary; besides these only its usual lines, such as its progress."""
    lines = said.splitlines()
    if lines.count(STOPPING) != 1:
        return f"it must say {STOPPING!r} once"
    summaries = [number for number, line in enumerate(lines) if SUMMARY.match(line)]
    if len(summaries) != 1 or summaries[0] < lines.index(STOPPING):
        return "it must say its summary once, after it was stopped"
    foreign = [line for line in lines if not line.startswith("millstream: ")]
    return f"it must not say {foreign[0]!r}" if foreign else ""


def _busy() -> bool:
    """True if other processes compete for the cores: then durations mean little."""
    return os.getloadavg()[0] > 2 * len(os.sched_getaffinity(0))


TERMINATED = Scenario(
    "sigterm-mid-batch",
    "SIGTERM or Ctrl-C ends a run within 5 s, with its summary and exit code 0; the next start "
    "goes on (the time is that to the end)",
    run_terminated,
)
