"""An agent is without its root for an hour (of log time): its buffer fills up, it pauses, and
catches up.

An hour of lines is written in some seconds, while the root refuses connections, or answers that it
is behind (503), by turns. The buffer is small, so that the agent must pause and leave the rest in
the log, which then serves as its buffer. The agent is killed once meanwhile.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from fault_runs.agents.app import APPS, NODE, job_of
from fault_runs.agents.killed import ROTATIONS, judged
from fault_runs.agents.running import Root, agent, finish
from fault_runs.agents.writing import A_SECOND, Log, Rotation
from fault_runs.processes import Started, start, wait_until
from fault_runs.result import Result
from fault_runs.scenario import Context, Scenario

HOUR = 3_600
PARTS = 6
BUFFER = 48 << 10
"""Bytes of the buffer; an hour of panes is several times as large."""
PATIENCE = 120.0


def run_cut_off(seed: int, folder: Path, context: Context) -> Result:
    """The lines written meanwhile arrive when the root is back, each line once."""
    random, name = Random(seed), "by_sequence"
    root, state = Root(name, folder / "store"), folder / "state"
    rotation: Rotation = random.choice(ROTATIONS)
    log = Log(folder / "log", job_of(APPS[name]).span, Random(seed + 1), rotation)
    words = agent(name, NODE, log.glob, root.url, state, "--buffer", str(BUFFER))
    said, ways = folder / "said", list[str]()
    root.start()
    log.write(20 * A_SECOND)
    running = start(words, said)
    try:
        _wait_for(running, lambda: root.taken() > 0)
        killed = random.randrange(PARTS)
        for part in range(PARTS):
            root.kill()
            ways.append(random.choice(["down", "behind"]))
            if ways[-1] == "behind":
                root.start(backlog_bytes=1)
            for _ in range(10):
                log.write(HOUR * A_SECOND // PARTS // 10)
                if random.random() < 0.3:
                    log.rotate()
                time.sleep(0.1)  # an hour in some seconds
            if part == killed:
                running.kill()
                running = start(words, said)
        _wait_for(running, lambda: bool(status(state).get("paused")))
        held = held_bytes(state / "outbox")
        root.kill()
        root.start()
        back = time.monotonic()
        log.write(10 * A_SECOND)
        _wait_for(running, lambda: _has_caught_up(state, log))
        caught_up = time.monotonic() - back
        running.kill()
        finish(words, said)
    finally:
        running.kill()
        root.kill()
        log.close()
    found = judged(APPS[name], root, log)
    note = f"{log.truth.lines} lines, {', '.join(ways)}; {held >> 10} KiB held"
    failed = "" if held <= 2 * BUFFER else f"its buffer of {BUFFER} bytes held {held}"
    return Result(
        CUT_OFF.name,
        seed,
        found.lost,
        found.doubled,
        (caught_up,),
        "; ".join(filter(None, (note, found.note))),
        failed=failed,
    )


def status(state: Path) -> dict[str, Any]:
    """The status that the agent has written; empty if there is none yet."""
    try:
        found: dict[str, Any] = json.loads((state / "status.json").read_text())
        return found
    except (OSError, ValueError):
        return {}


def held_bytes(folder: Path) -> int:
    """The size of all files in a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _has_caught_up(state: Path, log: Log) -> bool:
    """True if all of the log was read, and the root has all panes that have ended."""
    found = status(state)
    return found.get("read") == log.truth.lines and not found["outbox_bytes"]


def _wait_for(running: Started, what: Callable[[], bool]) -> None:
    if not wait_until(what, running, PATIENCE):
        raise AssertionError(f"the agent ended by itself: {running.said()}")


CUT_OFF = Scenario(
    "agent-without-root",
    "An hour of log without its root: the agent pauses when its buffer is full, then catches up",
    run_cut_off,
    least=5,
)
