"""Spark's JVM is killed while a batch runs, as the kernel does when memory runs out.

Twice a run, at a moment of a batch that is drawn by seed. The run ends with one line that says what
happened, and exit code 1. The batch was not committed and has no effect: the next start takes its
input again. The killed JVM's Python workers live on for a moment; the fence refuses their late
commits, or the next start undoes them.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from random import Random

from fault_runs.chain import LANES, chain, chain_difference, records, settings_of, write_records
from fault_runs.cluster import children_of, command_of
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from fault_runs.slow_run import slow_run
from millstream.spark.runner import run

KILLS = 2


def run_jvm_killed(seed: int, folder: Path, context: Context) -> Result:
    """Kill the JVM, start again and kill the next JVM; the last start runs to the end."""
    random, given = Random(seed), records(seed, 600)
    write_records(folder, given)
    ends, notes, problems = list[float](), list[str](), list[str]()
    for number in range(KILLS):
        with slow_run(folder, number, random) as (running, slow):
            at = time.monotonic()
            os.kill(_jvm_of(running.process.pid), signal.SIGKILL)
            code = running.wait()
            ends.append(time.monotonic() - at)
        problem = f"exit code {code} must be 1" if code != 1 else _wrongly_said(running.said())
        if problem:
            problems.append(f"{problem}: {running.said()}")
        notes.append(f"{slow}: {ends[-1]:.1f} s")
    run(chain(), settings_of(folder, random.choice(LANES)), context=context.spark)
    found = chain_difference(folder, given)
    note = found.note or "; ".join(notes)
    failed = problems[0] if problems else ""
    return Result(KILLED.name, seed, found.lost, found.doubled, tuple(ends), note, KILLS, failed)


def _jvm_of(driver: int) -> int:
    (jvm,) = (
        child for child in children_of(driver) if b"java" in command_of(child).split(b"\0")[0]
    )
    return jvm


def _wrongly_said(said: str) -> str:
    """Describes an error in the run's messages: there must be one error line, at the end."""
    lines = said.splitlines()
    errors = [line for line in lines if line.startswith("error: ")]
    if len(errors) != 1 or lines[-1] != errors[0]:
        return "it must end with one line 'error: ...'"
    foreign = [line for line in lines[:-1] if not line.startswith("millstream: ")]
    return f"it must not say {foreign[0]!r}" if foreign else ""


KILLED = Scenario(
    "jvm-killed",
    "The run ends with one error that says so, exit code 1; the next start goes on (the time is "
    "that to the end)",
    run_jvm_killed,
)
