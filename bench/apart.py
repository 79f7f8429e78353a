"""Runs a measured function in a process of its own, with its memory sampled.

So each measurement has a fresh JVM, its own session and settings, and nothing of the one before.
The function is named by module and name, its arguments and its result are JSON.
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
    """The process ended without a result; it has said why on standard error."""


class Apart:
    """A function that runs in its own process. `wait` gives its result."""

    def __init__(self, process: subprocess.Popen[bytes], result: Path, usage: Usage) -> None:
        self._process = process
        self._result = result
        self.usage = usage
        self.pid = process.pid

    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self) -> Any:
        if self._process.wait() != 0:
            raise RunFailedError(f"process {self.pid} ended with status {self._process.returncode}")
        return json.loads(self._result.read_text())


@contextmanager
def started(function: Callable[..., Any], **arguments: Any) -> Iterator[Apart]:
    """Start `function(**arguments)` in its own process; it is ended, if need be, on leaving."""
    with tempfile.TemporaryDirectory(prefix="millstream-bench-") as folder:
        given, result = Path(folder) / "given.json", Path(folder) / "result.json"
        given.write_text(json.dumps(arguments))
        names = function.__module__, function.__name__
        command = [sys.executable, "-m", "bench.apart", *names, str(given), str(result)]
        process = subprocess.Popen(command, cwd=ROOT)
        sampler = Sampler(process.pid)
        with sampler as usage:
            try:
                yield Apart(process, result, usage)
            finally:
                if process.poll() is None:
                    process.terminate()
                    process.wait()


def run_apart(function: Callable[..., Any], **arguments: Any) -> tuple[Any, dict[str, float]]:
    """Run `function(**arguments)` in its own process: its result, and what it used."""
    with started(function, **arguments) as apart:
        result = apart.wait()
    return result, asdict(apart.usage)


def _main(module: str, name: str, given: str, result: str) -> None:
    function = getattr(importlib.import_module(module), name)
    found = function(**json.loads(Path(given).read_text()))
    Path(result).write_text(json.dumps(found))


if __name__ == "__main__":
    _main(*sys.argv[1:])
