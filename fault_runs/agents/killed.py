"""An agent is killed again and again, while its log grows and is rotated.

Half of the kills come at a moment drawn by seed, half at a named point: before or after the write
of a pane to disk, before or after the request, between the root's answer and the removal
(`struck`). The log may also be rotated between a kill and the next start. Finally an agent reads
the log to its end. The root is the server alone.
"""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from random import Random

from fault_runs.agents import judging
from fault_runs.agents.app import APPS, NAME, NODE, job_of
from fault_runs.agents.running import Root, agent, finish
from fault_runs.agents.struck import POINTS
from fault_runs.agents.writing import Growing, Log, Rotation
from fault_runs.outcome import Difference
from fault_runs.processes import Started, start, wait_until
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario
from millstream import App

KILLS = 10
AXES = ("by_sequence", "by_records", "by_time")
ROTATIONS: tuple[Rotation, ...] = ("rename", "rename", "copy")
PATIENCE = 30.0


def run_killed(seed: int, folder: Path, context: Context) -> Result:
    """Kills an agent at drawn moments. Each line is counted once, and each window is right."""
    random = Random(seed)
    name, rotation = AXES[seed % len(AXES)], random.choice(ROTATIONS)
    log = Log(folder / "log", job_of(APPS[name]).span, Random(seed + 1), rotation)
    root, times, struck = Root(name, folder / "store"), list[float](), Counter[str]()
    growing = Growing([log], Random(seed + 2))
    words = (name, NODE, log.glob, root.url, folder / "state")
    root.start()
    growing.start()
    try:
        for _ in range(KILLS):
            point = random.choice([*POINTS]) if random.random() < 0.5 else ""
            at = f"{point}:{random.randrange(1, 6)}" if point else ""
            running = start(agent(*words, struck=at), folder / "said")
            struck[_end(running, root, random, point, times)] += 1
        growing.stop()
        finish(agent(*words), folder / "said")
    finally:
        growing.stop()
        root.kill()
        log.close()
    found = judged(APPS[name], root, log)
    points = ", ".join(f"{point} {count}" for point, count in sorted(struck.items()))
    note = f"{name}, {rotation}, {log.truth.lines} lines, {log.rotations} rotations; {points}"
    return Result(
        KILLED.name,
        seed,
        found.lost,
        found.doubled,
        tuple(times),
        "; ".join(filter(None, (note, found.note))),
        runs=KILLS,
    )


def _end(running: Started, root: Root, random: Random, point: str, times: list[float]) -> str:
    """Kill the agent at the point, or at a moment after the first message; returns where."""
    try:
        if point and _ends_itself(running, point):
            return point
        if random.random() < 0.7:
            before = root.taken()
            if wait_until(lambda: root.taken() > before, running, PATIENCE):
                times.append(time.time() - running.at)
        time.sleep(random.uniform(0.0, 0.7))  # a random moment is intended
        return point if _was_struck(running, point) else "at random"
    finally:
        running.kill()


def _ends_itself(running: Started, point: str) -> bool:
    """True if the agent reaches its point soon."""
    deadline = time.monotonic() + 5.0
    while running.process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return _was_struck(running, point)


def _was_struck(running: Started, point: str) -> bool:
    """True if the agent has reached its point, and False if it still runs; it must not end for
    another reason."""
    code = running.process.poll()
    if code is None:
        return False
    if code != -9 or not point:
        raise AssertionError(f"the agent ended by itself with {code}: {running.said()}")
    return True


def judged(app: App, root: Root, log: Log, node: str = NODE) -> Difference:
    """Compares the root's messages, and the application's result, with the log."""
    messages, span = root.messages(), job_of(app).span
    told = judging.told(messages, {node: log.truth})
    late = judging.accounts(messages)[node].late
    first = -(-min(log.truth.records) // span.panes) if span.axis == "time" else 0
    ran = judging.in_memory(app, messages)
    rows = ((event.key, event.value) for event in ran.stream(NAME))
    windows = judging.windows(span, judging.answers(span, rows), [log.truth], late, first)
    return judging.both(told, windows)


KILLED = Scenario(
    "agent-killed",
    "Killed at any moment, an agent goes on where it was: each line of its log is counted once",
    run_killed,
    least=100,
)
