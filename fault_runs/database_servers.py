"""Runs real database servers for tests, fault runs and benchmarks, by their scripts.

    with running(postgres_server(folder)) as server:
        run(sinks={"counts": f"postgres:counts?{server.options}"}, environ=server.environ)
        server.kill()
        server.restart()

A server keeps its port and its data over a restart.
"""

from __future__ import annotations

import os
import shlex
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psycopg

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
HOST = "127.0.0.1"
START_SECONDS = 120.0
SECRET = "MILLSTREAM_TEST_PASSWORD"
"""The variable that has the password."""


@dataclass(slots=True)
class DatabaseServer:
    """A server that runs, or was killed and can be started again."""

    script: str
    folder: Path
    port: int
    user: str
    password: str
    settings: Mapping[str, str]
    """Environment variables of its process."""
    process: subprocess.Popen[bytes] | None = None

    @property
    def endpoint(self) -> str:
        """Its address, such as `127.0.0.1:40123`."""
        return f"{HOST}:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables that a process needs to use it."""
        return {SECRET: self.password}

    @property
    def options(self) -> str:
        """The options for an address that names this server."""
        return f"server={self.endpoint}&user={self.user}&password=env:{SECRET}"

    @property
    def log(self) -> Path:
        return self.folder.with_name(f"{self.folder.name}.said")

    def start(self, *, wait: bool = True) -> None:
        """Start it over its data; with `wait`, returns when it accepts connections."""
        with self.log.open("ab") as said:
            self.process = self._run(said)
        deadline = time.monotonic() + START_SECONDS
        while wait and not self._answers():
            if self.process.poll() is not None:  # children of a killed server may linger
                time.sleep(0.2)
                with self.log.open("ab") as said:
                    self.process = self._run(said)
            if time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"scripts/{self.script} does not answer: {self._tail()}")
            time.sleep(0.02)

    restart = start

    def kill(self) -> None:
        """Kill it as `kill -9` does; returns once it is gone."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it normally, or kill it if that takes long."""
        # PostgreSQL's SIGINT does not wait for clients to leave.
        self._end(signal.SIGINT if self.script == "postgres-server" else signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        process, self.process = self.process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(number)
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _run(self, said: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [str(SCRIPTS / self.script), "run", str(self.folder), HOST, str(self.port)],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
            env={**os.environ, **self.settings},
        )

    def _answers(self) -> bool:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex((HOST, self.port)):
                return False
        return self.script != "postgres-server" or self._takes_clients()

    def _takes_clients(self) -> bool:
        """True if PostgreSQL, whose port is open already, has recovered."""
        try:
            psycopg.connect(
                host=HOST,
                port=self.port,
                user=self.user,
                password=self.password,
                dbname="postgres",
                connect_timeout=5,
            ).close()
        except psycopg.OperationalError:
            return False
        return True

    def _tail(self) -> str:
        return self.log.read_text(errors="replace")[-2_000:]


def installed(script: str) -> None:
    """Fetch the server if it is not installed yet."""
    done = subprocess.run([str(SCRIPTS / script), "install"], capture_output=True)
    if done.returncode:
        raise RuntimeError(
            f"{shlex.join([f'scripts/{script}', 'install'])} failed: "
            f"{done.stderr.decode(errors='replace')[-2_000:]}"
        )


def postgres_server(folder: Path) -> DatabaseServer:
    """A PostgreSQL server over a folder, which may be empty; `running` starts it."""
    return DatabaseServer(
        "postgres-server", folder, _free_port(), "millstream", "millstream-secret", {}
    )


def cassandra_server(folder: Path, **settings: str) -> DatabaseServer:
    """A Cassandra server over a folder; `settings` are variables of its script."""
    return DatabaseServer(
        "cassandra-server", folder, _free_port(), "cassandra", "cassandra", settings
    )


@contextmanager
def running(server: DatabaseServer) -> Iterator[DatabaseServer]:
    """Starts the server; stops it when the block is left."""
    installed(server.script)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port
