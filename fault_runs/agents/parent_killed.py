"""The parent of two agents is killed again and again, with the root on Spark.

The panes that it had merged in memory are lost with it. But its children keep their panes until the
root acknowledges them, and send them again, to the parent or past it. Once it stays away for so
long that they must bypass it. Before each kill the tree works again.
"""

from __future__ import annotations

import time
from pathlib import Path
from random import Random

from fault_runs.agents.app import APPS, TREE, job_of
from fault_runs.agents.running import agent, finish, free_port, messages_in, taken_in
from fault_runs.agents.spark_root import SparkRoot, judged
from fault_runs.agents.writing import Growing, Log
from fault_runs.processes import Started, start
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario

KILLS = 4
A_SECOND = 400
AWAY = 12.0
"""Seconds after which children bypass their parent."""


def run_parent_killed(seed: int, folder: Path, context: Context) -> Result:
    """Each pane of each node is counted once, whichever way it came."""
    random, root, times = Random(seed), SparkRoot(folder), list[float]()
    span, top, port = job_of(APPS["tree"]).span, TREE[0], free_port()
    logs = {
        node: Log(folder / "log" / node, span, Random(f"{seed} {node}"), "rename") for node in TREE
    }
    ways = {node: ["--parent", f"{top}=http://127.0.0.1:{port}"] for node in TREE[1:]}
    ways[top] = ["--serve", str(port), "--children", ",".join(TREE[1:])]
    commands = {
        node: agent("tree", node, log.glob, root.url, folder / "state" / node, *ways[node])
        for node, log in logs.items()
    }
    (folder / "state").mkdir()
    growing = Growing(list(logs.values()), Random(seed + 2), A_SECOND)
    root.start()
    root.wait()
    growing.start()
    running = {node: start(words, folder / f"said-{node}") for node, words in commands.items()}
    try:
        long = random.randrange(KILLS)
        for kill in range(KILLS):
            _wait_for_merged(root, running)
            time.sleep(random.uniform(0.0, 2.0))  # a random moment is intended
            running[top].kill()
            time.sleep(AWAY if kill == long else random.uniform(0.0, 2.0))
            began = time.monotonic()
            running[top] = start(commands[top], folder / f"said-{top}")
            _wait_for_merged(root, running)
            times.append(time.monotonic() - began)
        growing.stop()
        for node in TREE[1:]:
            running[node].kill()
            finish(commands[node], folder / f"said-{node}", 120.0)
        running[top].kill()
        finish(commands[top], folder / f"said-{top}", 120.0)
        root.settle()
    finally:
        growing.stop()
        for one in running.values():
            one.kill()
        root.kill()
        for log in logs.values():
            log.close()
    found = judged(root.store, logs)
    lines = sum(log.truth.lines for log in logs.values())
    note = f"{lines} lines, {_merged(root)} messages were merged"
    return Result(
        PARENT_KILLED.name,
        seed,
        found.lost,
        found.doubled,
        tuple(times),
        "; ".join(filter(None, (note, found.note))),
        KILLS,
    )


def _merged(root: SparkRoot) -> int:
    """The number of messages with several nodes that have come; the server must have written."""
    return sum(len(message.nodes) > 1 for message in messages_in(root.store))


def _wait_for_merged(root: SparkRoot, running: dict[str, Started]) -> None:
    """Wait until the parent works: its children use it, and it merges their panes."""
    deadline = time.monotonic() + 120
    while not taken_in(root.store):
        _still(running, deadline)
    before = _merged(root)
    while _merged(root) == before:
        _still(running, deadline)


def _still(running: dict[str, Started], deadline: float) -> None:
    for node, one in running.items():
        if one.process.poll() is not None:
            raise AssertionError(f"the agent of {node} ended by itself: {one.said()}")
    if time.monotonic() > deadline:
        raise AssertionError("no merged pane comes to the root any more")
    time.sleep(0.1)


PARENT_KILLED = Scenario(
    "parent-agent-killed",
    "Children of a parent that dies send again, to it or to the root; each pane counts once",
    run_parent_killed,
    least=8,
)
