"""A store that seems to run: this process holds it, as a driver does, until it ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

_held: list[int] = []


def hold(store: Path) -> None:
    handle = os.open(store / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.pwrite(handle, str(os.getpid()).encode(), 0)
    _held.append(handle)
