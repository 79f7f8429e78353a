"""A standalone Spark cluster on this machine: a master and workers, each a process of its own.

    with cluster(workers=2) as spark_cluster:
        run(app, settings with master=spark_cluster.url)
        spark_cluster.kill_executor()

All of it listens on loopback, at free ports. A worker leads a process group that includes its
executors; all are ended when the block is left. With `hosts`, each worker has its own address
(127.0.0.2, 127.0.0.3, ...) and a folder for copies, as if it were a machine.
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
"""Seconds that a process of the cluster may take to start."""
REGISTERED = b"Successfully registered"
_DAEMON = {
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "SPARK_LOCAL_IP": HOST,
    "SPARK_NO_DAEMONIZE": "1",
}


class Cluster:
    """A master and its workers. Created and ended by `cluster`."""

    def __init__(
        self,
        folder: Path,
        cores: int,
        memory: str,
        environ: Mapping[str, str],
        defaults: Mapping[str, str],
        hosts: bool,
    ) -> None:
        self._folder, self._cores, self._memory = folder, cores, memory
        self._environ = {**os.environ, **_DAEMON, **environ}
        self._hosts = hosts
        self._defaults = folder / "defaults"
        self._defaults.touch(0o600)
        self._defaults.write_text("".join(f"{name} {defaults[name]}\n" for name in defaults))
        self._master: subprocess.Popen[bytes] | None = None
        self._workers: dict[int, subprocess.Popen[bytes]] = {}
        self._started = 0
        self.url = ""
        """The value for the setting `master`."""

    def start_master(self) -> None:
        """Start the master and wait until it listens."""
        port = _free_port()
        self.url = f"spark://{HOST}:{port}"
        self._master = self._start(
            "master", "org.apache.spark.deploy.master.Master", "--port", str(port)
        )
        self._wait(self._folder / "master.said", self._master, lambda: _listens(port))

    def start_worker(self) -> int:
        """Start one more worker, and wait until the master knows it; returns its number."""
        return self.start_workers(1)[0]

    def start_workers(self, count: int) -> list[int]:
        """Start `count` workers at once, and wait until the master knows all of them."""
        numbers = list(range(self._started, self._started + count))
        self._started += count
        for number in numbers:
            name = f"worker-{number}"
            host, own = HOST, dict[str, str]()
            if self._hosts:
                host = self.host_of(number)
                own = {"SPARK_LOCAL_IP": host, "MILLSTREAM_CACHE": str(self.cache_of(number))}
            self._workers[number] = self._start(
                name,
                "org.apache.spark.deploy.worker.Worker",
                *("--cores", str(self._cores), "--memory", self._memory),
                *("--work-dir", str(self._folder / name), self.url),
                host=host,
                environ=own,
            )
        for number in numbers:
            said = self._folder / f"worker-{number}.said"
            self._wait(said, self._workers[number], partial(_says, said, REGISTERED))
        return numbers

    def host_of(self, number: int) -> str:
        """The address of a worker, in a cluster with `hosts`."""
        return f"127.0.0.{number + 2}"

    def cache_of(self, number: int) -> Path:
        """A worker's folder for copies, in a cluster with `hosts`."""
        return self._folder / f"cache-{number}"

    def said_by(self, number: int) -> str:
        """The logs of a worker's executors, the latest last."""
        logs = sorted((self._folder / f"worker-{number}").glob("*/*/stderr"))
        return "\n".join(log.read_text(errors="replace") for log in logs)

    def kill_worker(self, number: int) -> None:
        """Kill a worker with its executors, like a machine that is switched off."""
        _end(self._workers.pop(number))

    def drain_worker(self, number: int) -> None:
        """Ask a worker to hand over its data and take no more tasks; the cluster's `defaults` must
        have `spark.decommission.enabled`."""
        os.kill(self._workers[number].pid, signal.SIGPWR)

    def executors_of(self, number: int) -> list[int]:
        """The process ids of a worker's running executors."""
        return [
            process
            for process in children_of(self._workers[number].pid)
            if b"CoarseGrainedExecutorBackend" in command_of(process)
        ]

    def kill_executor(self, choice: int = 0) -> int:
        """Kill one executor process with SIGKILL; its worker lives and starts another."""
        found = self.executors()
        if not found:
            raise LookupError("no executor runs: is an application connected?")
        process = found[choice % len(found)]
        os.kill(process, signal.SIGKILL)
        return process

    def executors(self) -> list[int]:
        """The process ids of the running executors, in the order of their workers."""
        return [
            process for number in sorted(self._workers) for process in self.executors_of(number)
        ]

    @property
    def workers(self) -> dict[int, int]:
        """The process id of each running worker, by the worker's number."""
        return {number: process.pid for number, process in list(self._workers.items())}

    def close(self) -> None:
        """End the whole cluster."""
        for number in list(self._workers):
            self.kill_worker(number)
        if self._master is not None:
            _end(self._master)

    def _start(
        self,
        name: str,
        java_class: str,
        *arguments: str,
        host: str = HOST,
        environ: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        import pyspark

        home = Path(pyspark.__file__).parent
        with (self._folder / f"{name}.said").open("wb") as said:
            return subprocess.Popen(
                [
                    *(str(home / "bin" / "spark-class"), java_class, "--host", host),
                    *("--webui-port", "0", "--properties-file", str(self._defaults), *arguments),
                ],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
                env={**self._environ, "SPARK_HOME": str(home), **(environ or {})},
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
    defaults: Mapping[str, str] | None = None,
    hosts: bool = False,
) -> Iterator[Cluster]:
    """A cluster of `workers` workers; cores and memory are for the executors of each.

    `environ` is added to the environment of its processes, including executors and their Python;
    `defaults` are settings of the master and the workers.
    """
    folder = Path(tempfile.mkdtemp(prefix="spark-cluster-"))
    made = Cluster(folder, cores, memory, environ or {}, defaults or {}, hosts)
    try:
        made.start_master()
        made.start_workers(workers)
        yield made
    finally:
        made.close()
        shutil.rmtree(folder, ignore_errors=True)


def authenticated(secret: str) -> dict[str, str]:
    """The settings of a master and workers that require this secret, and encrypt their traffic."""
    return {
        "spark.authenticate": "true",
        "spark.authenticate.secret": secret,
        "spark.network.crypto.enabled": "true",
        "spark.network.crypto.saslFallback": "false",
        "spark.network.crypto.authEngineVersion": "2",
        "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    }


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
    """The command line of a process; empty if it is gone."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def _end(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has already ended
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
