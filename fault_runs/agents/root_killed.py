"""The root on Spark is killed, with its JVM and its server, while agents send to it.

Each of three agents keeps its panes until the root has acknowledged them, and sends them again when
the root is back.
"""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

from fault_runs.agents.app import APPS, TREE, job_of
from fault_runs.agents.running import agent, finish, taken_in
from fault_runs.agents.spark_root import SparkRoot, judged
from fault_runs.agents.writing import Growing, Log
from fault_runs.processes import seconds_to_commit, start
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario

KILLS = 2
A_SECOND = 400


def run_root_killed(seed: int, folder: Path, context: Context) -> Result:
    """Kill the root and start it again; then all agents read to the end, and the root too."""
    random, root, times = Random(seed), SparkRoot(folder), list[float]()
    span = job_of(APPS["tree"]).span
    logs = {
        node: Log(folder / "log" / node, span, Random(f"{seed} {node}"), "rename") for node in TREE
    }
    commands = {
        node: agent("tree", node, log.glob, root.url, folder / "state" / node)
        for node, log in logs.items()
    }
    (folder / "state").mkdir()
    growing = Growing(list(logs.values()), Random(seed + 2), A_SECOND)
    root.start()
    growing.start()
    running = [start(words, folder / f"said-{node}") for node, words in commands.items()]
    try:
        root.wait()
        for _ in range(KILLS):
            _wait_for_more(root)
            time.sleep(random.uniform(0.0, 3.0))  # a random moment is intended
            root.kill()
            time.sleep(random.uniform(0.0, 2.0))
            seconds = seconds_to_commit(root.store, root.start())
            times += [seconds] if seconds is not None else []
        root.wait()
        _wait_for_more(root)
        growing.stop()
        for one in running:
            if one.process.poll() is not None:
                raise AssertionError(f"an agent ended by itself: {one.said()}")
            one.kill()
        for node, words in commands.items():
            finish(words, folder / f"said-{node}")
        root.settle()
    finally:
        growing.stop()
        for one in running:
            one.kill()
        root.kill()
        for log in logs.values():
            log.close()
    found = judged(root.store, logs)
    lines = sum(log.truth.lines for log in logs.values())
    note = found.note or f"{lines} lines of {len(logs)} nodes"
    return Result(ROOT_KILLED.name, seed, found.lost, found.doubled, tuple(times), note, runs=KILLS)


def _wait_for_more(root: SparkRoot) -> None:
    deadline, before = time.monotonic() + 120, taken_in(root.store)
    while taken_in(root.store) <= before + 10_000:
        if time.monotonic() > deadline:
            raise AssertionError("the agents send nothing any more")
        time.sleep(0.05)


ROOT_KILLED = Scenario(
    "root-of-agents-killed",
    "Agents keep their panes until the root has them; started again, it takes each once",
    run_root_killed,
    least=6,
)
