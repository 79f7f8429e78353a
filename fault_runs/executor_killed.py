"""An executor of a standalone cluster is killed in the middle of a batch.

Twice a run, at moments drawn by seed as for Python workers. With an executor its tasks are lost,
their Python workers, and the data that it kept of finished stages. Spark starts another and repeats
what is missing, including finished tasks of earlier layers, whose commits then replace themselves.
(Executors of one machine may read each other's files, even those of a dead one. That is turned off
here, so that they are lost as they would be on another machine.) Late commits of an orphaned Python
worker are undone by its successor, or refused by the fence.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from random import Random

from fault_runs.chain import chain, chain_difference, records, settings_of, write_records
from fault_runs.cluster import parent_of
from fault_runs.processes import start
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from fault_runs.strikes import (
    RECORDS_A_BATCH,
    Moment,
    Watch,
    drawn,
    in_functions,
    recoveries,
    strike_in,
)

STRIKES, BATCHES = 2, 4
ORPHAN_S = 0.5
"""Seconds for which a worker whose executor was killed stays in its function."""


def run_executor_killed(seed: int, folder: Path, context: Context) -> Result:
    """Kill executors, one after the other, and let the run finish."""
    given = records(seed, (BATCHES + 1) * RECORDS_A_BATCH)
    write_records(folder, given)
    marks = folder / "marks"
    marks.mkdir()
    lane, moments = _drawn(seed)
    arguments = [str(folder), context.cluster.url, str(seed)]
    (folder / "conf").mkdir()
    (folder / "conf" / "spark-defaults.conf").write_text("spark.shuffle.readHostLocalDisk false\n")
    environ = {"SPARK_CONF_DIR": str(folder / "conf")}
    with Watch(kill_executor, moments, marks, context.trace):
        driver = start(["-m", "fault_runs.executor_killed", *arguments], folder / "said", environ)
        code = driver.wait()
    if code != 0:
        raise AssertionError(f"the run failed ({lane}, {moments}): {driver.said()}")
    commits = [float(line) for line in (folder / "commits").read_text().split()]
    times = recoveries(marks, commits)
    if len(times) != STRIKES:
        raise AssertionError(f"{len(times)} of {STRIKES} executors were killed ({lane}, {moments})")
    found = chain_difference(folder, given)
    note = found.note or f"{lane}: {', '.join(f'{name} {number}' for name, number in moments)}"
    return Result(KILLED.name, seed, found.lost, found.doubled, times, note, runs=STRIKES)


def _drawn(seed: int) -> tuple[str, list[Moment]]:
    """Draws the lane and the moments of a run; two of three in the lane that has more to lose."""
    lane = "one-task" if seed % 3 == 2 else "shuffled"
    return lane, drawn(Random(seed), lane, STRIKES, BATCHES)


def kill_executor(process: int) -> bool:
    """Kill the executor that a Python worker belongs to, and no other process."""
    executor = parent_of(parent_of(process))
    try:
        command = Path(f"/proc/{executor}/cmdline").read_bytes()
        if b"CoarseGrainedExecutorBackend" not in command:
            return False
        os.kill(executor, signal.SIGKILL)
    except OSError:
        return False
    return True


def _and_linger(process: int) -> bool:
    """Like `kill_executor`, from within its own worker, which then goes on as an orphan."""
    struck = kill_executor(process)
    time.sleep(ORPHAN_S)
    return struck


def main(arguments: Sequence[str]) -> None:
    """Runs as the driver."""
    place, master, seed = arguments
    folder, (lane, moments) = Path(place), _drawn(int(seed))
    disturb = partial(strike_in, _and_linger, in_functions(moments), str(folder / "marks"))
    from millstream.spark.runner import run

    with (folder / "commits").open("a", buffering=1) as commits:
        run(
            chain(disturb),
            settings_of(folder, lane, master=master, memory="512m"),
            lambda batch: print(time.time(), file=commits),
        )


KILLED = Scenario(
    "executor-killed",
    "Spark runs its tasks anew on another executor; each batch takes effect once, in both lanes",
    run_executor_killed,
)

if __name__ == "__main__":
    main(sys.argv[1:])
