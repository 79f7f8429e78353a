"""Agents as users start them, each in a process of its own, some of them on a core of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.apart import RunFailedError
from bench.machine import ROOT
from bench.processes import process

APP = str(ROOT / "bench" / "imr" / "jobs_app.py")
PLAIN = ("-m", "millstream.cli.main", "agent")
ENDING = 15.0
"""The seconds that an agent has to end after it was told to."""


@dataclass(frozen=True, slots=True)
class Node:
    """Where an agent is to run: its files, its priority, its cores."""

    name: str
    job: str
    log: Path
    state: Path
    nice: int = 0
    cores: tuple[int, ...] = ()
    once: bool = False
    serves: bool = False
    """True if it can be a parent of others."""
    module: tuple[str, ...] = PLAIN
    """The module to run: the agent, or a variant that lacks a feature (`lacking`)."""


@dataclass(slots=True)
class Agent:
    """An agent that was started."""

    node: Node
    process: subprocess.Popen[bytes]
    said: Path
    resident: float = 0.0
    """The most memory that it was seen to have, in MiB."""

    def sample(self) -> None:
        """Look at its memory."""
        try:
            self.resident = max(self.resident, process(self.process.pid).resident)
        except (OSError, KeyError, ValueError, IndexError):
            pass  # it has ended

    def check(self) -> None:
        """RunFailedError if it has ended with an error."""
        code = self.process.poll()
        if code not in (None, 0):
            told = self.said.read_text(errors="replace")[-2_000:]
            raise RunFailedError(f"the agent of {self.node.name} ended with status {code}: {told}")

    def end(self) -> None:
        """End it in order."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(ENDING)
            except subprocess.TimeoutExpired:
                self.kill()

    def kill(self) -> None:
        """End it at once."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def status(self) -> dict[str, Any]:
        """Returns the agent's last status."""
        try:
            found: dict[str, Any] = json.loads((self.node.state / "status.json").read_text())
        except (OSError, ValueError):
            return {}
        return found


def start(node: Node, url: str, environ: Mapping[str, str]) -> Agent:
    """Start the agent of a node. It stays in this process's session, so that the kernel weighs it
    against the others by niceness alone."""
    node.state.mkdir(parents=True, exist_ok=True)
    line = [sys.executable, *node.module, APP, "--job", node.job, "--node", node.name]
    line += ["--log", str(node.log), "--root", url, "--state", str(node.state)]
    line += ["--nice", str(node.nice), *(["--once"] if node.once else [])]
    line += ["--serve", "0"] if node.serves else []
    said = node.state.with_suffix(".said")
    pinned = partial(os.sched_setaffinity, 0, node.cores) if node.cores else None
    plain = {name: text for name, text in os.environ.items() if not name.startswith("MILLSTREAM_")}
    with said.open("ab") as out:
        started = subprocess.Popen(
            line,
            cwd=ROOT,
            env={**plain, **environ},
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            preexec_fn=pinned,
        )
    return Agent(node, started, said)


@contextmanager
def running(nodes: Sequence[Node], url: str, environ: Mapping[str, str]) -> Iterator[list[Agent]]:
    """The agents of some nodes, ended on leaving. Who replaces one puts the new one in the list."""
    agents: list[Agent] = []
    try:
        for node in nodes:
            agents.append(start(node, url, environ))
        yield agents
    finally:
        for agent in agents:
            agent.end()


def split_cores() -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The core of the node that is burdened, and those of all else; none if there is one core."""
    cores = sorted(os.sched_getaffinity(0))
    return ((cores[0],), tuple(cores[1:])) if len(cores) > 1 else ((), ())


@contextmanager
def on_cores(cores: tuple[int, ...]) -> Iterator[None]:
    """Restricts the processes started inside it to these cores."""
    before = os.sched_getaffinity(0)
    if cores:
        os.sched_setaffinity(0, cores)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
