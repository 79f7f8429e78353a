"""Starts, kills and waits for the processes of a scenario."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MILLSTREAM = ("-m", "millstream.cli.main")
PATIENCE = 200.0
"""Seconds after which a process that should have ended, or committed, never will."""


@dataclass(frozen=True, slots=True)
class Started:
    """A Python process that leads a process group, which includes its server. Its JVM is in another
    group, and ends when the process does."""

    process: subprocess.Popen[bytes]
    at: float
    """The time of its start, in seconds since the epoch."""
    log: Path
    """The file with its output."""

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-4_000:]

    def kill(self) -> None:
        """Kill the whole group at once, with no time to end normally."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def wait(self, patience: float = PATIENCE) -> int:
        """Waits for its end; returns its exit code, or the negative number of a signal."""
        return self.process.wait(patience)


def start(arguments: Sequence[str], log: Path, environ: Mapping[str, str] | None = None) -> Started:
    """Start this Python with the arguments; it can import from the project's top folder."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    at = time.time()
    with log.open("ab") as said:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=said,
            start_new_session=True,
            env={**os.environ, **(environ or {}), "PYTHONPATH": path},
        )
    return Started(process, at, log)


def wait_until(
    what: Callable[[], bool], meanwhile: Started | None = None, patience: float = PATIENCE
) -> bool:
    """True if `what` came true before the process ended; TimeoutError if neither happens."""
    deadline = time.monotonic() + patience
    while not what():
        if meanwhile is not None and meanwhile.process.poll() is not None:
            return what()
        if time.monotonic() > deadline:
            said = meanwhile.said() if meanwhile else ""
            raise TimeoutError(f"nothing happened for {patience:.0f} s {said}")
        time.sleep(0.01)
    return True


def committed_at(store: Path) -> float:
    """The time of the store's last commit; 0 if there is none."""
    try:
        return (store / "progress").stat().st_mtime
    except FileNotFoundError:
        return 0.0


def seconds_to_commit(store: Path, started: Started) -> float | None:
    """The seconds from a process's start to its first commit; None if it ended before.

    Call it right after the start: it looks for the first change of the store's progress.
    """
    before = committed_at(store)
    if wait_until(lambda: committed_at(store) != before, started):
        return committed_at(store) - started.at
    return None
