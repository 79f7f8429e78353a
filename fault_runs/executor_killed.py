"""An executor of a standalone cluster ended with SIGKILL in the middle of a batch.

Twice a run, at moments drawn by seed as for Python workers. With an executor go its tasks, their
Python workers and all that it kept of finished stages: Spark starts another and runs anew what is
missing, the finished tasks of earlier layers too, whose commits then replace themselves. (Executors
of one machine may read each other's files, the dead one's too. That is turned off here, so that
they are lost as those of another machine would be.) What an orphaned Python worker still commits is
undone by its successor, or refused by the fence.
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
    """Kill executors, one after the other, and let the run come to its end."""
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
    """The lane and the moments of a run; two of three in the lane that has more to lose."""
    lane = "one-task" if seed % 3 == 2 else "shuffled"
    return lane, drawn(Random(seed), lane, STRIKES, BATCHES)


def kill_executor(process: int) -> bool:
    """End the executor that a Python worker belongs to; no other process."""
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
    """The same from within its own worker, which is then an orphan, and goes on."""
    struck = kill_executor(process)
    time.sleep(ORPHAN_S)
    return struck


def main(arguments: Sequence[str]) -> None:
    """Be the driver."""
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
