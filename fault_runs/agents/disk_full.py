"""The disk that an agent keeps its panes on fills up, stays full for a while, and is freed.

As in `fault_runs.disk_full` the disk is a small tmpfs in the mount namespace of a separate process,
`python -m fault_runs.agents.disk_full FOLDER SEED`. The log and the root are on another disk: the
log goes on growing. Some agents are killed while the disk is full, and started again on it.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict
from pathlib import Path
from random import Random

from fault_runs.agents.app import APPS, NODE, job_of
from fault_runs.agents.killed import judged
from fault_runs.agents.running import Root, agent, finish
from fault_runs.agents.writing import Growing, Log
from fault_runs.disk_full import Disk, on_a_disk_apart
from fault_runs.processes import Started, start, wait_until
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario

FAULT = "agent-disk-full"
TIMES = 4
FULL_SECONDS = (1.0, 2.5)
PATIENCE = 60.0


def run_disk_full(seed: int, folder: Path, context: Context) -> Result:
    """The agent waits, says why, and goes on when there is space: each line is counted once."""
    return on_a_disk_apart(FAULT, "fault_runs.agents.disk_full", seed, folder)


def _main(folder: Path, seed: int) -> Result:
    """Everything that happens on the disk, which is gone when this process ends."""
    random, name = Random(seed), "by_sequence"
    disk, root = Disk(folder / "disk"), Root(name, folder / "store")
    log = Log(folder / "log", job_of(APPS[name]).span, Random(seed + 1), "rename")
    growing, said = Growing([log], Random(seed + 2)), folder / "said"
    words = agent(name, NODE, log.glob, root.url, disk.path / "state")
    root.start()
    growing.start()
    running, times, kills = start(words, said), list[float](), 0
    try:
        for _ in range(TIMES):
            _wait_for_more(root, running)
            _fill(disk, running, random.choice([0, 0, 1]))
            time.sleep(random.uniform(*FULL_SECONDS))  # the log grows meanwhile
            if random.random() < 0.4:
                kills += 1
                running.kill()
                running = start(words, said)
                time.sleep(random.uniform(0.0, 1.5))  # the agent may start on the full disk
            disk.free()
            freed = time.monotonic()
            if running.process.poll() is not None:  # the agent may refuse to start there
                if "No space left on device" not in running.said():
                    raise AssertionError(f"the agent ended by itself: {running.said()}")
                running = start(words, said)
            _wait_for_more(root, running)
            times.append(time.monotonic() - freed)
        growing.stop()
        running.kill()
        finish(words, said)
    finally:
        growing.stop()
        running.kill()
        root.kill()
        log.close()
    found = judged(APPS[name], root, log)
    note = f"full {TIMES} times, killed {kills} times, {log.truth.lines} lines"
    return Result(
        FAULT,
        seed,
        found.lost,
        found.doubled,
        tuple(times),
        "; ".join(filter(None, (note, found.note))),
        runs=TIMES,
    )


def _wait_for_more(root: Root, running: Started) -> None:
    """Wait until the root has got more messages: the agent works."""
    before = root.taken()
    if not wait_until(lambda: root.taken() > before + 1_000, running, PATIENCE):
        raise AssertionError(f"the agent ended by itself: {running.said()}")


def _fill(disk: Disk, running: Started, pages_left: int) -> None:
    """Fill the disk, and the space that the agent frees, until it reports a full disk."""
    before = _said(running)

    def is_said() -> bool:
        disk.fill(pages_left)
        return _said(running) > before

    if not wait_until(is_said, running, PATIENCE):
        raise AssertionError(f"the agent ended by itself: {running.said()}")


def _said(running: Started) -> int:
    """The number of times that agents have reported a full disk."""
    return running.log.read_text(errors="replace").count("No space left on device")


DISK_FULL = Scenario(
    FAULT,
    "With its own disk full an agent waits and says so; freed, it goes on where it was",
    run_disk_full,
)

if __name__ == "__main__":
    place = Path(sys.argv[1])
    (place / "result.json").write_text(json.dumps(asdict(_main(place, int(sys.argv[2])))))
