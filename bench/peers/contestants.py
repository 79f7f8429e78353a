"""The contestants of the peers' benchmark: how each is started, and where its answers are.

Each is written as its documentation has it, with two workers where it has workers, state on disk,
and what its engine needs to continue after a crash. What each promises is in docs/peers.md.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from bench.peers import answers
from bench.peers.loads import Load

WORKERS = 2
BASIC, QUERIES = ("count", "rules"), ("q4", "q5", "q7", "q11")
Command = list[str]


@dataclass(frozen=True, slots=True)
class Run:
    """The folders of one run."""

    folder: Path
    load: Load
    servers: str = ""
    """The brokers of a topic with the events, if the contestant needs one."""
    topic: str = ""

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def result(self) -> Path:
        return self.folder / "result"


def _by_script(name: str) -> Callable[[Run], list[Command]]:
    return lambda run: [[f"{name}/{run.load.work}.py"]]


def _built_in(name: str) -> Callable[[Run], list[Command]]:
    """The system's own count instead of a function that is called for each event."""
    return lambda run: [[f"{name}/built_in_{run.load.work}.py"]]


def _result(read: Callable[[Path], Mapping[str, Any]]) -> Callable[[Run], Mapping[str, Any]]:
    return lambda run: read(run.result)


@dataclass(frozen=True, slots=True)
class Contestant:
    """A system as it is measured."""

    name: str
    shown: str
    works: tuple[str, ...]
    commands: Callable[[Run], list[Command]]
    """The words after the Python, of each process that is started."""
    answers: Callable[[Run], Mapping[str, Any]] = field(default=_result(answers.written_once))
    environment: str = ""
    """The environment's name, or none: that of Millstream."""
    prepare: Callable[[Run], Command] | None = None
    """Run once before, without being measured."""
    variables: Mapping[str, str] = field(default_factory=dict)
    collect: Command = field(default_factory=list)
    """Run once after, without being measured: writes the answers."""
    ends: Literal["itself", "done", "stopped"] = "itself"
    """How the contestant ends: with its input, when it reports that it is done, or when it is
    stopped after all events."""
    broker: bool = False
    """True if it reads a topic of Kafka."""
    durable: Callable[[Run], int] | None = None
    """How often the run has made its state durable, for those who can be asked."""


def _millstream(run: Run) -> Mapping[str, Any]:
    if run.load.name == "q11":
        return answers.sessions(run.result)
    return answers.slates(run.state / "store")


def _batches(run: Run) -> int:
    return answers.batches(run.state / "store")


def _snapshots(run: Run) -> int:
    return answers.snapshots(run.state)


def _bytewax(seconds: int) -> Callable[[Run], list[Command]]:
    """Two processes with a snapshot at a fixed interval."""

    def commands(run: Run) -> list[Command]:
        addresses = (run.folder / "addresses").read_text()
        recovery = ["-r", str(run.state), "-s", str(seconds), "-b", "0"]
        flow = ["-m", "bytewax.run", f"on_bytewax.{run.load.work}:flow", *recovery]
        return [[*flow, "-i", str(number), "-a", addresses] for number in range(WORKERS)]

    return commands


def _prepare_bytewax(run: Run) -> Command:
    ports = _free_ports(WORKERS)
    (run.folder / "addresses").write_text(";".join(f"127.0.0.1:{port}" for port in ports))
    return ["-m", "bytewax.recovery", str(run.state), str(WORKERS)]


def _pathway(prefix: str = "") -> Callable[[Run], list[Command]]:
    """Two processes of one program."""

    def commands(run: Run) -> list[Command]:
        spawn = ["-m", "pathway", "spawn", "--processes", str(WORKERS)]
        port = ["--first-port", str(_free_ports(1)[0])]
        return [[*spawn, *port, "python", f"on_pathway/{prefix}{run.load.work}.py"]]

    return commands


CONTESTANTS = (
    Contestant(
        "loops",
        "two plain loops at once, a core each",
        BASIC,
        lambda run: _by_script("on_nothing")(run) * WORKERS,
        _result(answers.written_in_parts),
    ),
    Contestant(
        "millstream",
        "Millstream",
        (*BASIC, *QUERIES),
        _by_script("on_millstream"),
        _millstream,
        durable=_batches,
    ),
    Contestant(
        "millstream_built_in",
        "Millstream, its own count",
        ("count",),
        _built_in("on_millstream"),
        _millstream,
        durable=_batches,
    ),
    Contestant(
        "bytewax",
        "Bytewax, a snapshot a second",
        (*BASIC, *QUERIES),
        _bytewax(1),
        environment="bytewax",
        prepare=_prepare_bytewax,
        durable=_snapshots,
    ),
    Contestant(
        "bytewax_10",
        "Bytewax, a snapshot every 10 s",
        BASIC,
        _bytewax(10),
        environment="bytewax",
        prepare=_prepare_bytewax,
        durable=_snapshots,
    ),
    Contestant(
        "pathway",
        "Pathway, a Python reducer",
        (*BASIC, *QUERIES),
        _pathway(),
        _result(answers.written_changes),
        environment="pathway",
        ends="done",
    ),
    Contestant(
        "pathway_built_in",
        "Pathway, its own count",
        ("count",),
        _pathway("built_in_"),
        _result(answers.written_changes),
        environment="pathway",
        ends="done",
    ),
    Contestant(
        "spark",
        "PySpark",
        (*BASIC, *QUERIES),
        _by_script("on_spark"),
        _result(answers.written_last),
    ),
    Contestant(
        "spark_built_in",
        "PySpark, its own count",
        ("count",),
        _built_in("on_spark"),
        _result(answers.written_last),
    ),
    Contestant(
        "flink",
        "PyFlink",
        (*BASIC, *QUERIES),
        _by_script("on_flink"),
        _result(answers.written_last),
        environment="flink",
    ),
    Contestant(
        "flink_built_in",
        "PyFlink, its own count",
        ("count",),
        _built_in("on_flink"),
        _result(answers.written_last),
        environment="flink",
    ),
    Contestant(
        "quix",
        "Quix Streams, from a topic",
        ("count",),
        lambda run: [["on_quix/count.py"]] * WORKERS,
        _result(answers.written_last),
        environment="quix",
        collect=["on_quix/kept.py"],
        ends="stopped",
        broker=True,
    ),
)


def _free_ports(count: int) -> list[int]:
    probes = [socket.socket() for _ in range(count)]
    for probe in probes:
        probe.bind(("127.0.0.1", 0))
    ports: list[int] = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports
