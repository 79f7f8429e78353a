"""Starts a server as users do: `millstream run` or `millstream serve`, as a separate process."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench.apart import RunFailedError
from bench.lean import get_json
from bench.machine import ROOT

PATIENCE = 120.0


@dataclass(frozen=True, slots=True)
class Served:
    """A running server."""

    url: str
    parts: dict[str, int]
    """The process ids of `server`, and of `driver` if there is one."""


@contextmanager
def served(
    command: str, *words: str, store: Path, log: Path, environ: Mapping[str, str] | None = None
) -> Iterator[Served]:
    """Runs `millstream COMMAND WORDS` over a store, at any port, until the block is left."""
    line = [sys.executable, "-m", "millstream.cli.main", command, *words]
    line += ["--store", str(store), "--port", "0"]
    plain = {name: text for name, text in os.environ.items() if not name.startswith("MILLSTREAM_")}
    with open(log, "wb") as said:
        process = subprocess.Popen(
            line, cwd=ROOT, env={**plain, **(environ or {})}, stdout=said, stderr=said
        )
    try:
        yield _up(process, store, log, driven=command == "run")
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _up(process: subprocess.Popen[bytes], store: Path, log: Path, driven: bool) -> Served:
    """Wait until the server answers and, if there is a driver, has its first batch."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline and process.poll() is None:
        try:
            holder = json.loads((store / "server.lock").read_bytes())
            get_json(holder["url"], "/healthz")
        except (OSError, ValueError, RunFailedError):
            time.sleep(0.05)  # the server is not up yet, or its file is being written
            continue
        parts = {"server": holder["pid"], **({"driver": process.pid} if driven else {})}
        return Served(holder["url"], parts)
    told = log.read_text(errors="replace").splitlines()
    raise RunFailedError("\n".join(["the server did not come up:", *told[-20:]]))
