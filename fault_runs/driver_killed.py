"""A driver is killed, with its whole process group at once, at named points of a batch."""

from __future__ import annotations

import signal
from pathlib import Path
from random import Random

from fault_runs.chain import LANES, chain, chain_difference, records, settings_of, write_records
from fault_runs.processes import seconds_to_commit, start
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from millstream.engine.points import POINTS
from millstream.spark.runner import run


def run_at_points(seed: int, folder: Path, context: Context) -> Result:
    """Kills the driver at every named point, in an order, in lanes and in batches drawn by seed,
    and starts it again each time; the last start runs to the end."""
    random, given = Random(seed), records(seed, 1_200)
    write_records(folder, given)
    points, batch, times = random.sample(POINTS, len(POINTS)), 0, []
    for point in points:
        lane = "shuffled" if point == "between-layers" else random.choice(LANES)
        arguments = ["-m", "fault_runs.chain", str(folder), lane, point, str(batch)]
        driver = start(arguments, folder / "said")
        seconds = seconds_to_commit(folder / "store", driver)
        code = driver.wait()
        if code != -signal.SIGKILL:
            raise AssertionError(f"{point} of batch {batch} was never reached: {driver.said()}")
        if seconds is not None:
            times.append(seconds)
        batch += random.choice([1, 2])
    run(chain(), settings_of(folder, random.choice(LANES)), context=context.spark)
    found = chain_difference(folder, given)
    note = found.note or ", ".join(points)
    return Result(
        AT_POINTS.name, seed, found.lost, found.doubled, tuple(times), note, runs=len(points)
    )


AT_POINTS = Scenario(
    "driver-killed-at-point",
    "Killed at any named point of a batch, it goes on where it was at the next start",
    run_at_points,
    least=60,
)
