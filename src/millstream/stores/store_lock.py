"""The lock of a store: one driver at a time holds it. The system frees it when the driver dies."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from millstream.durable import sync
from millstream.errors import StoreError, StoreLocked

TRIES, TRY_SECONDS = 10, 0.02
"""Attempts to take the lock: `is_held` in another process may hold it for a moment."""


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Hold a store's lock; StoreLocked if another driver holds it."""
    make_folders(path)
    try:
        handle = os.open(path / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise StoreError(
            f"{path / 'lock'}: cannot be opened: {error.strerror}; a run needs the right to write "
            "to its store, and room for it: give it, or name another with --store (the slates that "
            "are there can be read meanwhile)"
        ) from None
    try:
        if not _locked(handle):
            holder = os.read(handle, 32).decode(errors="replace").strip()
            raise StoreLocked(
                f"{path}: another driver holds this store (process {holder or 'unknown'}); "
                "stop it first, or name another store with --store"
            )
        os.ftruncate(handle, 0)
        os.pwrite(handle, str(os.getpid()).encode(), 0)
        yield
        os.ftruncate(handle, 0)  # a normal end; a driver that died leaves its id in the file
    finally:
        os.close(handle)


def is_held(path: Path) -> bool:
    """True if a driver holds the store.

    The process id in the file proves nothing: another process may have it by now.
    """
    try:
        handle = os.open(path / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Takes the lock for a moment: a driver that starts right now retries.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _locked(handle: int) -> bool:
    """Take the lock; False if another driver holds it. Retries, for the sake of `is_held`."""
    for _ in range(TRIES):
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            time.sleep(TRY_SECONDS)
        else:
            return True
    return False


def make_folders(*paths: Path) -> None:
    """Create folders that only their owner can read, and sync them to disk."""
    for path in paths:
        try:
            if not path.is_dir():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.mkdir(mode=0o700, exist_ok=True)  # nobody else may read the slates
                sync(path.parent)
        except OSError as error:
            raise StoreError(
                f"{path}: the store cannot be made: {error.strerror or error}; name another with "
                "--store"
            ) from error
