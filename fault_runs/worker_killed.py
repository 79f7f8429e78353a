"""Kills one of Spark's Python workers in the middle of a batch.

Three times a run, at moments drawn by seed: within the map, within an update of the first or the
second layer, while a layer commits, or after it. Spark retries the task, and the commit of the new
attempt replaces that of the old one.
"""

from __future__ import annotations

import os
import signal
import time
from functools import partial
from pathlib import Path
from random import Random

from fault_runs.chain import LANES, chain, chain_difference, records, settings_of, write_records
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from fault_runs.strikes import RECORDS_A_BATCH, Watch, drawn, in_functions, recoveries, strike_in
from millstream.spark.runner import run

STRIKES, BATCHES = 3, 5
DAEMONS = b"pyspark", b"millstream.spark"
"""Workers have the command line of the daemon that Spark, or `early_daemon`, has started."""


def run_worker_killed(seed: int, folder: Path, context: Context) -> Result:
    """Kill workers, one after the other, and let the run finish."""
    random, given = Random(seed), records(seed, (BATCHES + 1) * RECORDS_A_BATCH)
    write_records(folder, given)
    lane, marks, commits = LANES[seed % 2], folder / "marks", list[float]()
    marks.mkdir()
    moments = drawn(random, lane, STRIKES, BATCHES)
    disturb = partial(strike_in, kill_worker, in_functions(moments), str(marks))
    with Watch(kill_worker, moments, marks, context.trace):
        run(
            chain(disturb),
            settings_of(folder, lane),
            lambda batch: commits.append(time.time()),
            context=context.spark,
        )
    times = recoveries(marks, commits)
    if len(times) != STRIKES:
        raise AssertionError(f"{len(times)} of {STRIKES} workers were killed ({lane}, {moments})")
    found = chain_difference(folder, given)
    note = found.note or f"{lane}: {', '.join(f'{name} {number}' for name, number in moments)}"
    return Result(KILLED.name, seed, found.lost, found.doubled, times, note, runs=STRIKES)


def kill_worker(process: int) -> bool:
    """Kill a worker; spares another process that may have got its id since."""
    try:
        command = Path(f"/proc/{process}/cmdline").read_bytes()
        if not any(daemon in command for daemon in DAEMONS):
            return False
        os.kill(process, signal.SIGKILL)
    except OSError:
        return False
    return True


KILLED = Scenario(
    "python-worker-killed",
    "Spark tries the task again; the batch takes effect once, in both lanes",
    run_worker_killed,
)
