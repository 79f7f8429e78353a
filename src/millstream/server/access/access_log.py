"""The access log: one line with a JSON object for every request, refused ones too.

    {"time":"2026-11-17T09:00:00.123Z","address":"192.0.2.7","token":"dashboard","method":"GET",
     "path":"/slates/count/Walmart","status":200,"seconds":0.0004}

`token` is the name of the token, never the token itself; null if there was none or it was wrong. A
refusal outside a request (a head that is not HTTP, one connection too many) has no method and no
path. Lines are written a few times a second; a file that was moved away is created again.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import msgspec

LONGEST_PATH = 400
MOST_WAITING = 4 << 20
"""The most bytes of lines that wait for a disk; further lines are dropped, and counted."""
LOOK_SECONDS = 1.0


class Access(msgspec.Struct, frozen=True):
    """One request."""

    time: str
    address: str
    token: str | None
    method: str
    path: str
    status: int
    seconds: float


class AccessLog:
    """Writes the access log to a file; `-` is stderr. Used on the event loop."""

    def __init__(self, file: str, wall: Callable[[], float] = time.time) -> None:
        """Raises OSError if the file cannot be created."""
        self._path = None if file == "-" else Path(file)
        self._wall = wall
        self._lines: list[bytes] = []
        self._waiting = 0
        self._look_at = 0.0
        self.dropped = 0
        self._handle = sys.stderr.fileno() if self._path is None else _opened(self._path)

    def add(
        self,
        address: str,
        status: int,
        *,
        token: str | None = None,
        method: str = "",
        path: bytes = b"",
        seconds: float = 0.0,
    ) -> None:
        at = datetime.fromtimestamp(self._wall(), UTC).isoformat(timespec="milliseconds")
        shown = path[:LONGEST_PATH].decode("latin-1")
        line = msgspec.json.encode(
            Access(
                at.replace("+00:00", "Z"), address, token, method, shown, status, round(seconds, 6)
            )
        )
        if self._waiting > MOST_WAITING:
            self.dropped += 1
            return
        self._lines.append(line)
        self._waiting += len(line)

    def flush(self) -> None:
        """Writes the lines that were added."""
        if not self._lines:
            return
        data = b"\n".join(self._lines) + b"\n"
        try:
            self._follow()
            while data:
                data = data[os.write(self._handle, data) :]
        except OSError:
            self.dropped += len(self._lines)  # e.g. the disk is full; requests must go on
        self._lines.clear()
        self._waiting = 0

    def close(self) -> None:
        self.flush()
        if self._path is not None:
            os.close(self._handle)

    def _follow(self) -> None:
        """Opens the file again if it was moved away or replaced."""
        if self._path is None or time.monotonic() < self._look_at:
            return
        self._look_at = time.monotonic() + LOOK_SECONDS
        held = os.fstat(self._handle)
        try:
            current = os.stat(self._path)
        except FileNotFoundError:
            current = None
        if current is None or (current.st_dev, current.st_ino) != (held.st_dev, held.st_ino):
            fresh = _opened(self._path)
            os.close(self._handle)
            self._handle = fresh


def _opened(path: Path) -> int:
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
