"""The LMDB environments of a process: opening, growing, forking and their errors.

DESIGN
------
*One environment per folder in a process.* LMDB forbids opening a file twice in a process and using
an environment across a fork. So this module owns the environments: it finds them by path, shares
them among all stores of the process, opens them at first use and forgets them in the child of a
fork, which opens its own. An environment that its users did not close stays open for the next user:
Spark's workers unpickle a store for each task.

*Growing.* When the map is full, the transaction is aborted, the map is doubled, and the transaction
runs again. Other processes notice when they next begin a transaction, and follow. In either case
the views that are open in that process are closed, and then raise StoreError. The first size is
therefore large: it costs address space only.

*Readers* never block commits, and commits never block readers. But LMDB cannot reuse a page freed
after the oldest open view began, so a view that stays open makes the file grow, and the file never
shrinks. Every commit clears the views of dead processes (well under a microsecond each).

*The soft fence* is the fence of the last commit that had nothing to write: 28 bytes in the file
`fence` beside the data, written under LMDB's write lock and never flushed. It outlives the
processes that it must refuse; a flush is not needed, since they do not survive a reboot either.
"""

from __future__ import annotations

import errno
import os
import struct
import threading
from collections.abc import Callable
from typing import NamedTuple, NoReturn, TypeAlias

import lmdb

from millstream.durable import sync
from millstream.errors import StoreError
from millstream.stores.checks import CHECK, Damaged, sealed, unsealed
from millstream.stores.contract import NO_FENCE, Fence
from millstream.stores.layout import named

MAX_READERS = 512
REPAIR = (
    "restore the whole store from a copy, or begin a new one with --store and replay the sources"
)
DAMAGE = (lmdb.CorruptedError, lmdb.PageNotFoundError, lmdb.InvalidError, lmdb.PanicError)
"""The errors that LMDB raises for a damaged page."""
ERRORS = (Damaged, lmdb.Error, OSError)
"""The errors that `explain` turns into a StoreError."""

_FENCE = struct.Struct("<qqq")
FENCE_BYTES = _FENCE.size + CHECK
# A short write to a full disk is reported as EIO: LMDB does not retry it.
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO}

Transaction: TypeAlias = "lmdb.Transaction[bytes]"  # not subscriptable when it runs


def pack_fence(fence: Fence) -> bytes:
    """The content of the file `fence`."""
    return sealed(b"fence", _FENCE.pack(*fence))


def unpack_fence(stored: bytes) -> Fence | None:
    """Parses the file `fence`: NO_FENCE if it is empty, None if it is damaged."""
    if not stored:
        return NO_FENCE
    try:
        return Fence(*_FENCE.unpack(unsealed(b"fence", stored)))
    except (Damaged, struct.error):
        return None


class Environment:
    """The one environment of a folder in this process, shared by all its users."""

    def __init__(self, path: str, map_size: int, sync: bool = True) -> None:
        self.path = path
        self._sync = sync
        self.users = 0
        self._map_size = map_size
        self._lock = threading.RLock()
        self._env: lmdb.Environment | None = None
        self._openings = 0
        """How often it was opened in this process."""
        self._identity = (0, 0)
        self._fence_file = -1

    def forget(self) -> None:
        """In the child of a fork: drop the parent's environment without closing it."""
        self._lock = threading.RLock()
        if self._env is not None:
            self._env = None
            os.close(self._fence_file)

    def close(self) -> None:
        with self._lock:
            if self._env is not None:
                self._env.close()
                os.close(self._fence_file)
                self._env = None

    def begin(self, *, write: bool = False) -> Transaction:
        """Begins a transaction; adopts the map's new size if another process has grown it."""
        env = self._env or self._open()
        while True:
            try:
                return env.begin(write=write)
            except lmdb.MapResizedError:
                with self._lock:  # no write transaction of this process is open
                    env.set_mapsize(0)
            except lmdb.ReadersFullError:
                if not env.reader_check():
                    raise

    def begin_at(self) -> tuple[Transaction, Moment | None]:
        """Begins a transaction that reads, and returns the moment that it shows, for `follows`."""
        if self._env is None:
            self._open()
        openings = self._openings
        txn = self.begin()
        # Another thread may have had it opened afresh.
        return txn, Moment(self, openings, txn.id()) if openings == self._openings else None

    def follows(self, txn: Transaction, moment: object) -> bool:
        """True if nothing was written between a moment and `txn`, a transaction that writes."""
        return moment == Moment(self, self._openings, txn.id() - 1)

    def write(self, body: Callable[[Transaction], bool]) -> None:
        """Run `body` in a write transaction and commit if it returns True.

        If the map is full, it grows, and `body` runs again.
        """
        with self._lock:
            (self._env or self._open()).reader_check()
            try:
                while not self._try_write(body):
                    self._grow()
            except lmdb.Error:
                self.close()  # after a failed flush LMDB refuses to go on: open afresh next time
                raise

    def _try_write(self, body: Callable[[Transaction], bool]) -> bool:
        txn = self.begin(write=True)
        try:
            if body(txn):
                txn.commit()
            return True
        except lmdb.MapFullError:
            return False
        finally:
            txn.abort()  # does nothing after a commit

    def _grow(self) -> None:
        assert self._env is not None
        size = self._env.info()["map_size"] * 2
        try:
            self._env.set_mapsize(size)
        except (lmdb.Error, OverflowError) as error:
            self.close()
            raise StoreError(
                f"{self.path}: the map is full and cannot grow to {size} bytes ({error}); allow "
                "this process more address space (ulimit -v) or use more shards, "
                "nothing was changed"
            ) from error

    def copy_to(self, folder: str) -> None:
        """Write a consistent copy of the data to another folder; not synced."""
        (self._env or self._open()).copy(folder)

    def clear(self, txn: Transaction) -> None:
        """Remove all data, within a write transaction."""
        assert self._env is not None
        txn.drop(self._env.open_db(), delete=False)

    def soft_fence(self) -> Fence:
        """The fence of the last commit that had nothing to write; StoreError if it is damaged."""
        fence = unpack_fence(os.pread(self._fence_file, FENCE_BYTES + 1, 0))
        if fence is None:
            raise StoreError(
                f"{os.path.join(self.path, 'fence')}: does not fit its checksum: the file is "
                "damaged; start the application again, which rewrites it"
            )
        return fence

    def raise_soft_fence(self, fence: Fence) -> None:
        """Record a fence. Only within a write transaction, which keeps out other writers."""
        if os.fstat(self._fence_file).st_size > FENCE_BYTES:
            os.ftruncate(self._fence_file, 0)
        os.pwrite(self._fence_file, pack_fence(fence), 0)

    def mend_soft_fence(self) -> None:
        """Empty a damaged file: for a new driver, whose epoch is above all before.

        A power cut may leave a torn file, but the tasks that it had to refuse are gone then.
        """
        try:
            self.soft_fence()
        except StoreError:
            os.ftruncate(self._fence_file, 0)

    def replaced(self) -> bool:
        """True if the files were deleted or replaced since they were opened."""
        return self._env is not None and self._identity != _identity(self.path)

    def _open(self) -> lmdb.Environment:
        with self._lock:
            if self._env is not None:
                return self._env
            os.makedirs(self.path, exist_ok=True)
            created = _identity(self.path) == (0, 0)
            try:
                env = lmdb.open(
                    self.path,
                    map_size=self._map_size,
                    max_readers=MAX_READERS,
                    sync=self._sync,
                    # Slates are read at random: read-ahead would fill the memory with other pages.
                    readahead=False,
                )
            except lmdb.Error as error:
                if error.code not in (errno.EROFS, errno.EACCES, errno.EPERM):
                    raise
                return self._open_read_only()
            try:
                env.reader_check()
                flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
                self._fence_file = os.open(os.path.join(self.path, "fence"), flags, 0o644)
                if created:
                    _flush_folders(self.path)
            except BaseException:
                env.close()
                raise
            self._identity = _identity(self.path)
            self._openings += 1
            self._env = env
            return env

    def _open_read_only(self) -> lmdb.Environment:
        """Opens without LMDB's lock, which readers would have to write to.

        Safe only while nobody writes, which `home.Home.store` ensures.
        """
        self._env = lmdb.open(
            self.path, map_size=self._map_size, readonly=True, lock=False, readahead=False
        )
        self._fence_file = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
        self._identity = _identity(self.path)
        self._openings += 1
        return self._env


class Moment(NamedTuple):
    """The state of an environment after a transaction that wrote."""

    environment: Environment
    openings: int
    transaction: int
    """Its number. LMDB numbers the transactions of all processes, but a new file starts afresh."""


_environments: dict[str, Environment] = {}
_environments_lock = threading.Lock()


def acquire(path: str, map_size: int, sync: bool = True) -> Environment:
    """The environment of a folder; with `sync` off, a power cut may leave it damaged."""
    path = os.path.realpath(path)
    with _environments_lock:
        environment = _environments.get(path)
        if environment is None or environment.replaced():
            environment = _environments[path] = Environment(path, map_size, sync)
        environment.users += 1
        return environment


def release(environment: Environment) -> None:
    with _environments_lock:
        environment.users -= 1
        if not environment.users:
            environment.close()
            if _environments.get(environment.path) is environment:
                del _environments[environment.path]


def _after_fork() -> None:
    global _environments_lock
    _environments_lock = threading.Lock()
    for environment in _environments.values():
        environment.forget()


os.register_at_fork(after_in_child=_after_fork)


def holds_data(path: str) -> bool:
    """True if a folder has a data file; OSError if it may not be looked into."""
    return _identity(path) != (0, 0)


def _identity(path: str) -> tuple[int, int]:
    """The device and inode of the data file; (0, 0) if there is none.

    Uses `stat`: if this process opened and closed LMDB's files, it would lose LMDB's locks.
    """
    try:
        status = os.stat(os.path.join(path, "data.mdb"))
    except FileNotFoundError:
        return 0, 0
    return status.st_dev, status.st_ino


def _flush_folders(path: str) -> None:
    """Sync the folders of a new file: only then does it survive a crash of the machine."""
    for folder in (path, os.path.dirname(path), os.path.dirname(os.path.dirname(path))):
        sync(folder)


class explained:  # noqa: N801  # reads as a word of its with statement
    """Turns LMDB's and the system's errors, and damage, into a StoreError that says what to do.

    A class, because that takes a fraction of the time of a generator, and every read uses it.
    """

    __slots__ = ("_outcome", "_where")

    def __init__(self, where: str, outcome: str) -> None:
        self._where, self._outcome = where, outcome

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> None:
        if isinstance(error, ERRORS):
            explain(error, self._where, self._outcome)


def explain(error: Damaged | lmdb.Error | OSError, where: str, outcome: str) -> NoReturn:
    """Raise the StoreError for an error of LMDB, of the system, or for damage."""
    if isinstance(error, Damaged):
        raise StoreError(
            f"{where}: {outcome}, {named(error.key)} does not fit its checksum: the store is "
            f"damaged; {REPAIR}"
        ) from None
    raise StoreError(f"{where}: {outcome}, {error}; {_advice(error)}") from error


def _advice(error: lmdb.Error | OSError) -> str:
    code = error.code if isinstance(error, lmdb.Error) else error.errno
    if code in _NO_ROOM:
        return "the disk or its quota is full, or it fails: make room and start again"
    if isinstance(error, lmdb.ReadersFullError):
        return f"more than {MAX_READERS} views are open: close them sooner"
    if "already open in this process" in str(error):
        return "this process was forked while a view was open: fork before, or spawn"
    if "closed/deleted/dropped" in str(error):
        return "the view was closed, or the store grew while it was open: open it again"
    if isinstance(error, DAMAGE):
        return f"the store is damaged; {REPAIR}"
    return "check that the folder is readable and writable and on a local disk"
