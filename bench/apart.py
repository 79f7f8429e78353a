"""Runs a measured function in a process of its own, and samples its memory.

So each measurement has a fresh JVM, its own session and settings, and nothing of the one before.
The function is given by module and name; its arguments and its result are JSON.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.machine import ROOT
from bench.processes import Sampler, Usage


class RunFailedError(Exception):
    """The process ended without a result."""


class Apart:
    """A function that runs in its own process. `wait` returns its result."""

    def __init__(self, process: subprocess.Popen[bytes], result: Path, log: Path) -> None:
        self._process = process
        self._result = result
        self._log = log
        self.usage = Usage()
        self.pid = process.pid

    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> Any:
        if self._process.wait() != 0:
            told = self._log.read_text(errors="replace").splitlines()
            status = self._process.returncode
            raise RunFailedError("\n".join([f"it ended with status {status}:", *told[-20:]]))
        return json.loads(self._result.read_text())


@contextmanager
def begun(function: Callable[..., Any], **arguments: Any) -> Iterator[Apart]:
    """Start `function(**arguments)` in its own process; ends it, if needed, on leaving."""
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
        given, result, log = (Path(folder) / name for name in ("given.json", "result.json", "log"))
        given.write_text(json.dumps(arguments))
        names = function.__module__, function.__name__
        command = [sys.executable, "-m", "bench.apart", *names, str(given), str(result)]
        with open(log, "wb") as said:  # shown only after a failure: Spark's workers log a lot
            process = subprocess.Popen(command, cwd=ROOT, stdout=said, stderr=said)
        try:
            yield Apart(process, result, log)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait()


@contextmanager
def started(function: Callable[..., Any], **arguments: Any) -> Iterator[Apart]:
    """Like `begun`, and samples what the process uses."""
    with begun(function, **arguments) as apart, Sampler(apart.pid, apart.usage):
        yield apart


def run_apart(function: Callable[..., Any], **arguments: Any) -> tuple[Any, dict[str, float]]:
    """Run `function(**arguments)` in its own process; returns its result, and what it used."""
    with started(function, **arguments) as apart:
        result = apart.wait()
    return result, asdict(apart.usage)


def _main(module: str, name: str, given: str, result: str) -> None:
    function = getattr(importlib.import_module(module), name)
    found = function(**json.loads(Path(given).read_text()))
    Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    _main(*sys.argv[1:])
