"""Runs a peer over a whole topic, in two processes, and measures its rate.

Each is set up as its documentation shows it: JSON values, state by the record's key, on disk, with
the intervals of commits and snapshots that it has by itself. The rate is that after the first part
of the records, as with Millstream, where a first batch is left out; what was counted is looked at
from outside, while it runs.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.peers.environments import FOLDER, interpreter
from bench.peers.progress import processed
from bench.processes import Sampler, Usage

PROCESSES = 2
LOOK_SECONDS = 0.02
NO_PROGRESS_SECONDS = 120.0
"""With no further record for so long, it is given up."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The command that starts a peer."""

    name: str
    shown: str
    command: Callable[[int, Path], list[str]]
    """By the number of the process, and the folder of its run: the words after the Python."""
    prepare: Callable[[Path], list[str]] | None = None
    """Run once before, if anything."""


def _bytewax(number: int, folder: Path) -> list[str]:
    addresses = (folder / "addresses").read_text()
    recovery = ["-r", str(folder / "recovery"), "-s", "10", "-b", "0"]
    place = ["-i", str(number), "-a", addresses]
    return ["-m", "bytewax.run", "bytewax_count", *recovery, *place]


def _prepare_bytewax(folder: Path) -> list[str]:
    (folder / "recovery").mkdir()
    ports = _free_ports(PROCESSES)
    (folder / "addresses").write_text(";".join(f"127.0.0.1:{port}" for port in ports))
    return ["-m", "bytewax.recovery", str(folder / "recovery"), str(PROCESSES)]


def _faust(number: int, folder: Path) -> list[str]:
    return ["-m", "faust", "-A", "faust_count", "worker", "--without-web"]


PEERS = (
    Peer("bytewax", "Bytewax", _bytewax, _prepare_bytewax),
    Peer("quix", "Quix Streams", lambda number, folder: ["quix_count.py"]),
    Peer("faust", "Faust", _faust),
)


def measured(
    peer: Peer, folder: Path, servers: str, topic: str, records: int, first: int, most: float
) -> dict[str, Any]:
    """Returns a peer's rate: the records after the first `first`, processed within a number of
    seconds."""
    python, usage = interpreter(peer.name), Usage()
    folder.mkdir(parents=True, exist_ok=True)
    if peer.prepare is not None:
        subprocess.run([str(python), *peer.prepare(folder)], check=True, cwd=FOLDER)
    paths = [folder / f"progress-{number}" for number in range(PROCESSES)]
    began = time.perf_counter()
    with (
        _running(peer, python, folder, servers, topic) as processes,
        Sampler(os.getpid(), usage),
    ):
        marks = followed(paths, records, first, most, processes)
    start = next(mark for mark in marks if mark[0] >= first)
    count, ended = marks[-1]
    return {
        "what": peer.shown,
        "events_per_s": (count - start[0]) / (ended - start[1]),
        "events": count,
        "whole_s": ended - began,
        "cpu_others": round(usage.cpu_others, 2),
    }


def followed(
    paths: list[Path],
    records: int,
    first: int,
    most: float,
    processes: Sequence[subprocess.Popen[bytes]] = (),
) -> list[tuple[int, float]]:
    """Returns the numbers of processed records, with the times at which they rose."""
    marks = [(0, time.perf_counter())]
    deadline: float | None = None
    while marks[-1][0] < records:
        time.sleep(LOOK_SECONDS)
        now, count = time.perf_counter(), processed(paths)
        if count > marks[-1][0]:
            marks.append((count, now))
            if count >= first and deadline is None:
                deadline = now + most
        elif now - marks[-1][1] > NO_PROGRESS_SECONDS or any(one.poll() for one in processes):
            said = paths[0].with_name("said-0").read_text(errors="replace")[-2_000:]
            raise RuntimeError(f"it has ended, or does not go on after {count:,} records: {said}")
        if deadline is not None and now > deadline and marks[-1][0] > first:
            break
    return marks


@contextmanager
def _running(
    peer: Peer, python: Path, folder: Path, servers: str, topic: str
) -> Iterator[list[subprocess.Popen[bytes]]]:
    processes = []
    for number in range(PROCESSES):
        state = folder / f"state-{number}"
        state.mkdir()
        environ = {
            "PEER_SERVERS": servers,
            "PEER_TOPIC": topic,
            "PEER_GROUP": f"{peer.name}-{topic}",
            "PEER_STATE": str(state),
            "PEER_PROCESS": str(number),
            "PEER_PROGRESS": str(folder / f"progress-{number}"),
        }
        with (folder / f"said-{number}").open("wb") as said:
            processes.append(
                subprocess.Popen(
                    [str(python), *peer.command(number, folder)],
                    cwd=FOLDER,
                    stdin=subprocess.DEVNULL,
                    stdout=said,
                    stderr=said,
                    env={**os.environ, **environ, "PYTHONPATH": str(FOLDER)},
                )
            )
    try:
        yield processes
    finally:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        for process in processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports
