"""Measures a contestant with a load: the whole run, its warm rate, and its resources.

The whole run is from the start of its process to its end, or to the moment at which it says that
all results are out. The warm rate is that of the events after the first tenth, by what its own
functions count up while they are called. Then its answers are compared with those of a plain loop:
if they differ, the row says so and has no figures.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench.apart import RunFailedError
from bench.machine import ROOT
from bench.peers.answers import difference
from bench.peers.contestants import Contestant, Run
from bench.peers.environments import FOLDER, interpreter
from bench.peers.footprint import Footprint
from bench.peers.progress import processed

LOOK_SECONDS = 0.02
COLD = 0.1
"""The share of the events that the warm rate leaves out."""
MOMENT = 0.1
"""Calls within this share of the run have no rate."""
SETTLED_SECONDS = 5.0
"""For so long, answers may be on their way into files after a run has said that it is done."""
COMMITTED_SECONDS = 1.5
"""So long after its last event, a system that commits every second has committed all."""
Marks = list[tuple[int, float]]
"""The numbers of processed events, with the times at which they rose."""


def raced(contestant: Contestant, run: Run, most: float) -> dict[str, Any]:
    """The row of a contestant; it must be done within so many seconds."""
    row: dict[str, Any] = {"what": contestant.shown, "name": contestant.name}
    python = python_of(contestant)
    for folder in (run.state, run.result):
        folder.mkdir(parents=True)
    variables = variables_of(contestant, run)
    if contestant.prepare is not None:
        _prepared([str(python), *contestant.prepare(run)], variables)
    began = time.perf_counter()
    with ExitStack() as stack:
        processes = [
            stack.enter_context(started_process([str(python), *command], run, number, variables))
            for number, command in enumerate(contestant.commands(run))
        ]
        with Footprint([process.pid for process in processes]) as footprint:
            marks, failure = _followed(contestant, run, processes, began, most)
            whole = time.perf_counter() - began
        if contestant.collect and not failure:
            _prepared([str(python), *contestant.collect], variables)
        failure = failure or _wrong(contestant, run)
    if failure:
        return {**row, "failed": " ".join(failure.split())[-400:]}
    durable = {} if contestant.durable is None else {"batches": contestant.durable(run)}
    return {
        **row,
        **durable,
        "whole_s": whole,
        "whole_per_s": run.load.events / whole,
        "events_per_s": warm_rate(marks, run.load.events),
        "cpu_s": footprint.cpu_seconds,
        "cpu_us": footprint.cpu_seconds / run.load.events * 1e6,
        "resident_mib": footprint.resident_mib,
        "own_mib": footprint.own_mib,
        "cpu_others": round(footprint.cpu_others, 2),
    }


def python_of(contestant: Contestant) -> Path:
    """The Python that runs a contestant."""
    name = contestant.environment
    return interpreter(name) if name else Path(sys.executable)


def warm_rate(marks: Marks, events: int) -> float | None:
    """Events a second after the first tenth; None if there was too little to see.

    A system that reads all of its input before it calls the function has no such rate: its calls
    come within a moment.

    >>> warm_rate([(0, 0.0), (10, 5.0), (60, 6.0), (100, 6.5)], 100)
    60.0
    >>> warm_rate([(0, 0.0), (10, 5.0), (60, 5.1), (100, 5.2)], 100)
    """
    later = [mark for mark in marks if mark[0] >= COLD * events]
    if len(later) < 2:
        return None
    (first, began), (last, ended) = later[0], later[-1]
    if ended - began < MOMENT * (ended - marks[0][1]):
        return None
    return (last - first) / (ended - began)


def _followed(
    contestant: Contestant,
    run: Run,
    processes: Sequence[subprocess.Popen[bytes]],
    began: float,
    most: float,
) -> tuple[Marks, str]:
    """The marks of a run, until it is done; and how it failed, if it did."""
    marks: Marks = [(0, began)]
    done, stopped = run.result / "done", False
    while True:
        running = any(process.poll() is None for process in processes)
        count, now = processed(list(run.folder.glob("progress-*"))), time.perf_counter()
        if count > marks[-1][0]:
            marks.append((count, now))
        if any(process.poll() for process in processes):
            return marks, f"it has ended in failure: {said_by(run)}"
        if done.exists():
            return marks, ""
        if not running:
            ended = contestant.ends == "itself" or stopped
            return marks, "" if ended else f"it has ended early: {said_by(run)}"
        over = count >= run.load.events and now - marks[-1][1] >= COMMITTED_SECONDS
        if contestant.ends == "stopped" and over and not stopped:
            stopped = True
            for process in processes:
                process.terminate()
        if now - began > most:
            return marks, f"not done after {most:.0f} s, with {count:,} events: {said_by(run)}"
        time.sleep(LOOK_SECONDS)


def _wrong(contestant: Contestant, run: Run) -> str:
    """Describes how the answers differ from the expected ones."""
    deadline = time.monotonic() + (0.0 if contestant.ends == "itself" else SETTLED_SECONDS)
    while True:
        try:
            found = contestant.answers(run)
            asked = {name: found[name] for name in found if name not in run.load.open}
            wrong = difference(run.load.expected, asked)
        except (ValueError, KeyError, TypeError) as error:  # a line that is still being written
            wrong = f"its answers cannot be read: {error!r}"
        if not wrong or time.monotonic() > deadline:
            return wrong and f"WRONG ANSWERS: {wrong}"
        time.sleep(0.1)


def variables_of(contestant: Contestant, run: Run) -> dict[str, str]:
    paths = [FOLDER] if contestant.environment else [FOLDER, ROOT / "src"]
    return {
        **os.environ,
        **contestant.variables,
        "PATH": f"{python_of(contestant).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(map(str, paths)),
        "PEER_WORK": run.load.work,
        "PEER_INPUT": str(run.load.source),
        "PEER_EVENTS": str(run.load.events),
        "PEER_ANSWERS": str(len(run.load.expected)),
        "PEER_STATE": str(run.state),
        "PEER_RESULT": str(run.result),
        "PEER_PROGRESS": str(run.folder / "progress"),
        "PEER_SERVERS": run.servers,
        "PEER_TOPIC": run.topic,
    }


def _prepared(command: list[str], variables: dict[str, str]) -> None:
    done = subprocess.run(command, cwd=FOLDER, env=variables, capture_output=True, text=True)
    if done.returncode != 0:
        raise RunFailedError(f"{command[1:]} failed: {done.stderr[-500:]}")


@contextmanager
def started_process(
    command: list[str], run: Run, number: int, variables: dict[str, str]
) -> Iterator[subprocess.Popen[bytes]]:
    """A process in a group of its own, all of which is ended on leaving."""
    with (run.folder / f"said-{number}").open("wb") as said:
        process = subprocess.Popen(
            command,
            cwd=FOLDER,
            env={**variables, "PEER_PROCESS": str(number)},
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        _signal(process.pid, signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            pass
        _signal(process.pid, signal.SIGKILL)
        process.wait()


def _signal(group: int, number: signal.Signals) -> None:
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass  # all have ended


def said_by(run: Run) -> str:
    texts = [path.read_text(errors="replace") for path in sorted(run.folder.glob("said-*"))]
    return " | ".join(text[-400:].strip() for text in texts)
