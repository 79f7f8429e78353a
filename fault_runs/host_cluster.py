"""A cluster of hosts: a Spark master, workers with their own disks, an S3 server, and hosts for
drivers and readers.

    with host_cluster() as cluster:
        driver = cluster.start("driver", ["-m", "millstream.cli.main", "run", ...])
        cluster.hosts["w2"].cut_off()

All requests to S3 go through a proxy on the S3 server's own host, which can fail, delay and count
them (`s3_proxy`). The hosts share nothing else, except this machine's file system, in which a
folder with input stands for one that all hosts see.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from fault_runs.cluster import authenticated
from fault_runs.hosts import Host, hosts
from fault_runs.processes import MILLSTREAM, ROOT, Started, wait_until
from fault_runs.s3_proxy import ProxyControl, ProxyFaults
from fault_runs.s3_server import BUCKET, CREDENTIALS, PORT, foreground_command, installed

WORKERS = ("w1", "w2", "w3")
NAMES = ("master", "s3", "driver", "standby", "reader", *WORKERS)
MASTER_PORT, PROXY_PORT = 7077, 7071
PATIENCE = 120.0
REGISTERED = b"Successfully registered"
_DAEMON = {
    "SPARK_DAEMON_MEMORY": "256m",
    "SPARK_DAEMON_JAVA_OPTS": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    "SPARK_NO_DAEMONIZE": "1",
}
ANSWERS = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1).close()"


class HostCluster:
    """The processes on the hosts. Created and ended by `host_cluster`."""

    def __init__(self, folder: Path, network: Mapping[str, Host]) -> None:
        self.hosts = network
        self.url = f"spark://{network['master'].address}:{MASTER_PORT}"
        """The value for the setting `master`."""
        self.proxy = ProxyControl(folder / "proxy.control")
        self.bare_python = os.path.realpath(sys.executable)
        """A Python for executors without the libraries of this one's environment."""
        self.secret_file = folder / "secret"
        """The secret that driver, master and workers share."""
        self._folder = folder
        self._control = folder / "proxy.control"
        self._running: dict[str, Started] = {}
        secret = secrets.token_hex(16)
        self.secret_file.touch(0o600)
        self.secret_file.write_text(secret)
        self._defaults = folder / "spark-defaults.conf"
        self._defaults.touch(0o600)
        settings = authenticated(secret)
        self._defaults.write_text("".join(f"{name} {settings[name]}\n" for name in settings))

    @property
    def s3(self) -> dict[str, str]:
        """The environment variables that a process needs to reach S3."""
        endpoint = f"http://{self.hosts['s3'].address}:{PROXY_PORT}"
        return {**CREDENTIALS, "AWS_ENDPOINT_URL": endpoint}

    def address(self, prefix: str) -> str:
        """A store's address in the bucket."""
        return f"s3://{BUCKET}/{prefix}"

    def environ(self, name: str) -> dict[str, str]:
        """The environment of a host: its address, its disk, S3, and this project's code."""
        host = self.hosts[name]
        path = [str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        own = {
            **self.s3,
            "SPARK_LOCAL_IP": host.address,
            "SPARK_LOCAL_DIRS": str(host.disk / "spark"),
            "PYTHONPATH": os.pathsep.join(filter(None, path)),
        }
        if name in WORKERS:
            # Not for a driver: its value would be a setting of the run, for every host.
            own["MILLSTREAM_CACHE"] = str(host.disk / "cache")
        return own

    def start(
        self, name: str, arguments: Sequence[str], log: Path, environ: Mapping[str, str] = {}
    ) -> Started:
        """Start this Python with the arguments on a host, in the project's top folder."""
        environ = {**self.environ(name), **environ}
        return self.hosts[name].start([sys.executable, *arguments], log, environ, ROOT)

    def runtime(self, app: str) -> Path:
        """The archive that brings an application's code and ours to executors; packed once."""
        path = self._folder / f"{app.replace(':', '-')}.zip"
        if not path.exists():
            words = [*MILLSTREAM, "pack", app, "--runtime", "-o", str(path)]
            packing = self.start("driver", words, self._folder / "pack.said")
            if packing.wait() != 0:
                raise RuntimeError(f"the archive for executors was not made: {packing.said()}")
        return path

    def start_s3(self) -> None:
        """Start the S3 server, and the proxy in front of it."""
        host = self.hosts["s3"]
        command = foreground_command(host.disk / "objects", host.address)
        self._start_daemon("s3", "server", command, lambda: self._listens("s3", PORT))
        words = [f"{host.address}:{PROXY_PORT}", f"{host.address}:{PORT}", str(self._control)]
        command = [sys.executable, "-m", "fault_runs.s3_proxy", *words]
        self._start_daemon("s3", "proxy", command, self.proxy.listens)

    def start_master(self) -> None:
        """Start Spark's master, and wait until it listens."""
        listens = lambda: self._listens("master", MASTER_PORT)  # noqa: E731
        where = ("--port", str(MASTER_PORT))
        command = self._spark("master", "org.apache.spark.deploy.master.Master", *where)
        self._start_daemon("master", "spark", command, listens)

    def start_workers(self, names: Sequence[str] = WORKERS) -> None:
        """Start a worker on each of these hosts, and wait until the master knows them."""
        for name in names:
            disk = self.hosts[name].disk
            size = ("--cores", "2", "--memory", "2g", "--work-dir", str(disk / "work"))
            java_class = "org.apache.spark.deploy.worker.Worker"
            self._start_process(name, "spark", self._spark(name, java_class, *size, self.url))
        for name in names:
            started = self._running[f"{name}-spark"]
            self._wait(started, lambda log=started.log: REGISTERED in log.read_bytes())  # type: ignore[misc]

    def kill_host(self, name: str) -> None:
        """Switch a host off: kills all of its processes at once."""
        self.hosts[name].kill()
        for known in [known for known in self._running if known.startswith(f"{name}-")]:
            self._running.pop(known).process.wait()

    def executors(self, name: str) -> list[int]:
        """The executors that run on a host."""
        return [
            process
            for process in self.hosts[name].processes()
            if b"CoarseGrainedExecutorBackend" in _command_of(process)
        ]

    def mend(self) -> None:
        """Repair the cluster after any fault: every host is connected, S3 answers, all workers run,
        and no earlier application holds any of their cores."""
        self.proxy.order(ProxyFaults())
        for host in self.hosts.values():
            host.reconnect()
            host.thaw()
        for name in ("driver", "standby", "reader"):
            self.hosts[name].kill()
        if any(self.executors(name) for name in WORKERS) or not all(
            self._runs(f"{name}-spark") for name in ("master", *WORKERS)
        ):
            # The master keeps an application whose driver is gone until its executors notice.
            for name in ("master", *WORKERS):
                self.kill_host(name)
            self.start_master()
            self.start_workers()

    def _runs(self, known: str) -> bool:
        return known in self._running and self._running[known].process.poll() is None

    def _spark(self, name: str, java_class: str, *arguments: str) -> list[str | Path]:
        import pyspark

        command = Path(pyspark.__file__).parent / "bin" / "spark-class"
        listen = ("--host", self.hosts[name].address, "--webui-port", "0")
        return [command, java_class, *listen, "--properties-file", self._defaults, *arguments]

    def _start_daemon(
        self, name: str, what: str, command: Sequence[str | Path], ready: Callable[[], bool]
    ) -> None:
        self._wait(self._start_process(name, what, command), ready)

    def _start_process(self, name: str, what: str, command: Sequence[str | Path]) -> Started:
        import pyspark

        log = self._folder / f"{name}-{what}-{time.time_ns()}.said"
        home = {"SPARK_HOME": str(Path(pyspark.__file__).parent)}
        environ = {**self.environ(name), **_DAEMON, **home}
        started = self.hosts[name].start(command, log, environ)
        self._running[f"{name}-{what}"] = started
        return started

    def _wait(self, started: Started, ready: Callable[[], bool]) -> None:
        if not wait_until(ready, started, PATIENCE):
            raise RuntimeError(f"the cluster's {started.log.name} ended: {started.said()}")

    def _listens(self, name: str, port: int) -> bool:
        host = self.hosts[name]
        command = host.command([sys.executable, "-c", ANSWERS, host.address, str(port)])
        return subprocess.run(command, stderr=subprocess.DEVNULL).returncode == 0


@contextmanager
def host_cluster() -> Iterator[HostCluster]:
    """Starts the whole cluster; ends and removes it when the block is left."""
    installed()
    folder = Path(tempfile.mkdtemp(prefix="ms-"))  # short: a socket's path has at most 107 bytes
    try:
        with hosts(folder, NAMES) as network:
            made = HostCluster(folder, network)
            made.start_s3()
            made.start_master()
            made.start_workers()
            yield made
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _command_of(process: int) -> bytes:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""
