"""A store's server.lock: the process that serves the store, and its address.

The file names the server's process and address. It counts only while a process holds the lock on
it, which the system frees when the process dies. A process that only looks takes the lock for a
moment, so a server tries a few times to get it. A store that cannot be written, because its file
system is read-only or it belongs to another user, has no lock and any number of servers.
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
    """The server of a store."""

    pid: int
    url: str
    beside: bool = False
    """True if it was started by a run, and ends with it."""


class ServerLock:
    """The lock, held by a server."""

    def __init__(self, store: Path, *, beside: bool = False) -> None:
        """Takes the lock; raises StoreLocked, with the address of the server that has it."""
        self._beside = beside
        self._file = store / FILE
        self._made = store / "store.json"
        self._url = ""
        self._handle = self._taken()

    def announce(self, url: str) -> None:
        """Writes the address of the server into the lock."""
        self._url = url
        if self._handle is None:
            return
        holder = Holder(os.getpid(), url, self._beside)
        os.ftruncate(self._handle, 0)
        os.pwrite(self._handle, msgspec.json.encode(holder), 0)

    def follow(self) -> None:
        """Takes the lock of the current store, if the store was deleted and created again."""
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
                return  # another server serves the new store
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
            if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
                return None
            raise StoreError(
                f"{self._file}: cannot be created: {error.strerror or error}; a server needs the "
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
    """Returns the server of a store; None if there is none."""
    try:
        handle = os.open(store / FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        return None if _free(handle, fcntl.LOCK_SH) else _holder(handle)
    finally:
        os.close(handle)


def served_at(store: Path) -> str | None:
    """Returns the address of the server of a store; None if there is none."""
    holder = served_by(store)
    return None if holder is None else holder.url


def _free(handle: int, kind: int) -> bool:
    """Takes a lock if it is free; False if another process has it."""
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
