"""A store's server.lock: who serves the store, and where.

The file says the server's process and address. It counts only for as long as somebody holds the
lock on it, which the system frees when the process dies. Whoever only looks takes the lock for a
moment, so whoever wants to keep it tries a few times. On a file system that is read-only there is
no lock, and any number of servers.
"""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path

import msgspec

from millstream.errors import StoreError, StoreLocked

FILE = "server.lock"
TRIES, TRY_SECONDS = 10, 0.02


class Holder(msgspec.Struct, frozen=True):
    """Who serves a store."""

    pid: int
    url: str
    beside: bool = False
    """Whether it was started beside a run, and ends with it."""


class ServerLock:
    """The lock as the server has it."""

    def __init__(self, store: Path, *, beside: bool = False) -> None:
        """Take it; StoreLocked with the address of the server that has it."""
        self._beside = beside
        self._file = store / FILE
        self._made = store / "store.json"
        self._url = ""
        self._handle = self._taken()

    def announce(self, url: str) -> None:
        """Say where the store is served."""
        self._url = url
        if self._handle is None:
            return
        holder = Holder(os.getpid(), url, self._beside)
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, msgspec.json.encode(holder), 0)

    def follow(self) -> None:
        """Take the lock of the store that is there now, if it was deleted and made again."""
        if self._handle is None:
            return
        held = os.fstat(self._handle)
        try:
            now = os.stat(self._file)
        except FileNotFoundError:
            now = None
        if (now is None or now.st_ino != held.st_ino) and self._made.exists():
            try:
                fresh = self._taken()
            except StoreError:
                return  # another serves that one
            os.close(self._handle)
            self._handle = fresh
            self.announce(self._url)

    def close(self) -> None:
        if self._handle is not None:
            os.ftruncate(self._handle, 0)
            os.close(self._handle)

    def _taken(self) -> int | None:
        try:
            handle = os.open(self._file, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
        except OSError as error:
            if error.errno == errno.EROFS:
                return None
            raise StoreError(
                f"{self._file}: cannot be made: {error.strerror or error}; a server needs the "
                "right to write to its store"
            ) from error
        for _ in range(TRIES):
            if _free(handle, fcntl.LOCK_EX):
                return handle
            time.sleep(TRY_SECONDS)
        holder = _holder(handle)
        os.close(handle)
        who = f"process {holder.pid}, {holder.url}" if holder else "it is just starting"
        raise StoreLocked(
            f"{self._file.parent}: another server ({who}) serves this store already; use that one, "
            "or stop it first"
        )


def served_by(store: Path) -> Holder | None:
    """Who serves a store; None if nobody does."""
    try:
        handle = os.open(store / FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _free(handle, fcntl.LOCK_SH) else _holder(handle)
    finally:
        os.close(handle)


def served_at(store: Path) -> str | None:
    """The address of the server that serves a store; None if none does."""
    holder = served_by(store)
    return None if holder is None else holder.url


def _free(handle: int, kind: int) -> bool:
    """Take a lock if nobody has it."""
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _holder(handle: int) -> Holder | None:
    try:
        return msgspec.json.decode(os.pread(handle, 4_096, 0), type=Holder)
    except msgspec.DecodeError:
        return None
