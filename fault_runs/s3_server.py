"""Runs a real S3 server for tests and benchmarks, by `scripts/s3-server`.

    with s3_server(folder) as server:
        os.environ.update(server.environ)
        place_at(server.address("application"))

Its objects are files of the folder, so that it can be stopped and started again over them.
"""

from __future__ import annotations

import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "s3-server"
BUCKET = "millstream"
PORT = 7070
"""The port on which it listens on its own host."""
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "millstream",
    "AWS_SECRET_ACCESS_KEY": "millstream-secret",
    "AWS_REGION": "us-east-1",
    # Never ask the network for this machine's role.
    "AWS_METADATA_ENDPOINT": "http://127.0.0.1:1",
}


@dataclass(frozen=True, slots=True)
class S3Server:
    """A server that runs."""

    endpoint: str
    """Its address, such as `http://127.0.0.1:40123`."""
    process: int

    @property
    def environ(self) -> dict[str, str]:
        """The environment variables that a process needs to use it."""
        return {**CREDENTIALS, "AWS_ENDPOINT_URL": self.endpoint}

    @staticmethod
    def address(prefix: str) -> str:
        """The address of a store in its bucket."""
        return f"s3://{BUCKET}/{prefix}"


def installed() -> None:
    """Build the server if it is not installed yet; takes minutes the first time."""
    _script("install")


@contextmanager
def s3_server(folder: Path, address: str = "127.0.0.1") -> Iterator[S3Server]:
    """Starts a server at a free port of this machine's address; stops it when the block is left."""
    lines = _script("start", str(folder), address).splitlines()
    told = dict(line.removeprefix("export ").split("=", 1) for line in lines)
    server = S3Server(told["AWS_ENDPOINT_URL"], int(told["S3_SERVER_PROCESS"]))
    try:
        yield server
    finally:
        _script("stop", str(server.process))


def foreground_command(folder: Path, address: str, port: int = PORT) -> list[str]:
    """The command that runs the server, for starting it on another host."""
    return [str(SCRIPT), "run", str(folder), address, str(port)]


def _script(*arguments: str) -> str:
    environ = {**os.environ, "PYTHON": os.environ.get("PYTHON", "python3")}
    done = subprocess.run([str(SCRIPT), *arguments], capture_output=True, env=environ)
    if done.returncode:
        raise RuntimeError(
            f"{shlex.join(['scripts/s3-server', *arguments])} failed: "
            f"{done.stderr.decode(errors='replace')[-2_000:]}"
        )
    return done.stdout.decode()
