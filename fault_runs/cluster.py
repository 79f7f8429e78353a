"""A standalone Spark cluster on this machine: a master and workers, each a process of its own.

    with cluster(workers=2) as spark_cluster:
        run(app, settings with master=spark_cluster.url)
        spark_cluster.kill_executor()

All of it listens on loopback, at ports that were free. A worker leads a process group, its
executors in it; all are ended when the block is left.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

HOST = "127.0.0.1"
PATIENCE = 60.0
"""Seconds for a process of the cluster to be there."""
REGISTERED = b"Successfully registered"
_LISTEN = ("--host", HOST, "--webui-port", "0")
_DAEMON = {
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "SPARK_LOCAL_IP": HOST,
    "SPARK_NO_DAEMONIZE": "1",
}


class Cluster:
    """A master and its workers. Made by `cluster`, which ends it."""

    def __init__(self, folder: Path, cores: int, memory: str, environ: Mapping[str, str]) -> None:
        self._folder, self._cores, self._memory = folder, cores, memory
        self._environ = {**os.environ, **_DAEMON, **environ}
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: dict[int, subprocess.Popen[bytes]] = {}
        self._started = 0
        self.url = ""
        """What the setting `master` must be."""

    def start_master(self) -> None:
        """Start the master and wait until it listens."""
        port = _free_port()
        self.url = f"spark://{HOST}:{port}"
        self._master = self._start(
            "master", "org.apache.spark.deploy.master.Master", "--port", str(port)
        )
        self._wait(self._folder / "master.said", self._master, lambda: _listens(port))

    def start_worker(self) -> int:
        """Start one more worker, and wait until the master knows it; gives its number."""
        return self.start_workers(1)[0]

    def start_workers(self, count: int) -> list[int]:
        """Start so many at once, and wait until the master knows all of them."""
        numbers = list(range(self._started, self._started + count))
        self._started += count
        for number in numbers:
            name = f"worker-{number}"
            self._workers[number] = self._start(
                name,
                "org.apache.spark.deploy.worker.Worker",
                *("--cores", str(self._cores), "--memory", self._memory),
                *("--work-dir", str(self._folder / name), self.url),
            )
        for number in numbers:
            said = self._folder / f"worker-{number}.said"
            self._wait(said, self._workers[number], partial(_says, said, REGISTERED))
        return numbers

    def kill_worker(self, number: int) -> None:
        """End a worker with its executors at once, as a machine that is switched off."""
        _end(self._workers.pop(number))

    def kill_executor(self, choice: int = 0) -> int:
        """End one executor process with SIGKILL; its worker lives and starts another."""
        found = self.executors()
        if not found:
            raise LookupError("no executor runs: is an application connected?")
        process = found[choice % len(found)]
        os.kill(process, signal.SIGKILL)
        return process

    def executors(self) -> list[int]:
        """The process numbers of the executors that run, in the order of their workers."""
        return [
            process
            for number in sorted(self._workers)
            for process in children_of(self._workers[number].pid)
            if b"CoarseGrainedExecutorBackend" in command_of(process)
        ]

    @property
    def workers(self) -> dict[int, int]:
        """The process of each worker that runs, by the worker's number."""
        return {number: process.pid for number, process in list(self._workers.items())}

    def close(self) -> None:
        """End all of it."""
        for number in list(self._workers):
            self.kill_worker(number)
        if self._master is not None:
            _end(self._master)

    def _start(self, name: str, java_class: str, *arguments: str) -> subprocess.Popen[bytes]:
        import pyspark

        home = Path(pyspark.__file__).parent
        with (self._folder / f"{name}.said").open("wb") as said:
            return subprocess.Popen(
                [home / "bin" / "spark-class", java_class, *_LISTEN, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                env={**self._environ, "SPARK_HOME": str(home)},
            )

    def _wait(self, said: Path, process: subprocess.Popen[bytes], what: Callable[[], bool]) -> None:
        deadline = time.monotonic() + PATIENCE
        while not what():
            if process.poll() is not None or time.monotonic() > deadline:
                text = said.read_text(errors="replace")[-2_000:]
                raise RuntimeError(f"the cluster's {said.stem} did not start: {text}")
            time.sleep(0.05)


@contextmanager
def cluster(
    workers: int = 2,
    *,
    cores: int = 1,
    memory: str = "512m",
    environ: Mapping[str, str] | None = None,
) -> Iterator[Cluster]:
    """A cluster with so many workers, each with so many cores and so much memory for executors.

    `environ` is added to the environment of its processes, executors and their Python included.
    """
    folder = Path(tempfile.mkdtemp(prefix="spark-cluster-"))
    made = Cluster(folder, cores, memory, environ or {})
    try:
        made.start_master()
        made.start_workers(workers)
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


def parent_of(process: int) -> int:
    """The process that started this one; 0 if it is gone."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def children_of(parent: int) -> list[int]:
    """The processes that this one has started."""
    numbers = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return [process for process in numbers if parent_of(process) == parent]


def command_of(process: int) -> bytes:
    """The words it was started with; nothing if it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended by itself
    process.wait()


def _says(said: Path, words: bytes) -> bool:
    return words in said.read_bytes()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((HOST, port)) == 0
