"""The store that the routes use: kept open, and followed as it changes.

Small files that are read again and again (the progress, the description) are cached until their
signature changes. They are replaced by renaming, so the inode, time and size of a file are enough
for a signature. When the store itself is replaced (deleted and created again, or with new updates),
it is opened again; the old one is closed when its last reader is done.

Only the event loop's thread may call `reader`, `home` and `lease`; a leased reader may be used by
any one thread. `progress` may be called by all threads.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from millstream.description import FILE as DESCRIPTION
from millstream.description import Description, read_description
from millstream.errors import StoreError
from millstream.stores.home import Home, is_held
from millstream.stores.progress import Progress
from millstream.stores.reader import SlateReader
from millstream.stores.shared.mirror_record import FILE as MIRROR
from millstream.stores.shared.mirror_record import MirrorRecord, read_mirror
from millstream.stores.soft import SOFT, Soft, read_committed, read_soft

T = TypeVar("T")
LOOK_EVERY = 0.2
"""Seconds between two checks whether the store was replaced; a commit leads to a check too."""


class OpenStore:
    """A store that is served."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._progress = _FollowedFile(path / "progress", _read_progress)
        self._description = _FollowedFile(path / DESCRIPTION, lambda _: read_description(path))
        self._facts = _FollowedFile(path / "store.json", lambda _: Home.open(path))
        self._mirror = _FollowedFile(path / MIRROR, lambda _: read_mirror(path))
        self._soft = _FollowedFile(path / SOFT, lambda _: read_soft(path))
        self._seen: Progress | None = None
        self._look_at = 0.0
        self._of = self._facts.now(), self._soft.now()
        self._opened = self._open(*self._of)

    def progress(self) -> Progress:
        """Returns the progress of the last committed batch; before the first, one of batch -1."""
        return self._progress.now()

    def description(self) -> Description | None:
        """Returns the description of the application; None if no run has written it yet."""
        return self._description.now()

    @property
    def home(self) -> Home:
        return self._current(self.progress()).home

    @property
    def reader(self) -> SlateReader:
        """The reader of slates. Get it again for each request; to keep it longer, use `lease`."""
        return self._current(self.progress()).reader

    def now(self) -> tuple[Progress, SlateReader]:
        """Returns the progress and the reader, at the cost of one check."""
        progress = self.progress()
        return progress, self._current(progress).reader

    @contextmanager
    def lease(self) -> Iterator[SlateReader]:
        """Yields a reader that stays open inside the block, even if the store is replaced."""
        opened = self._current(self.progress())
        opened.users += 1
        try:
            yield opened.reader
        finally:
            opened.users -= 1
            opened.close_if_left()

    def mirror(self) -> MirrorRecord | None:
        """Returns the place and freshness of a mirror; None if this is not a mirror."""
        return self._mirror.now()

    def running(self) -> bool:
        """True if a driver holds the store."""
        if (mirror := self.mirror()) is not None:
            return mirror.running
        return is_held(self.path)

    def close(self) -> None:
        self._opened.left = True
        self._opened.close_if_left()

    def _current(self, progress: Progress) -> _OpenFiles:
        now = self._clock()
        if progress is not self._seen or now >= self._look_at:
            home, soft = self._facts.now(), self._soft.now()
            if home is not self._of[0] or soft != self._of[1]:
                self.close()
                self._of = home, soft
                self._opened = self._open(home, soft)
            self._seen, self._look_at = progress, now + LOOK_EVERY
        return self._opened

    def _open(self, known: Home, soft: Soft | None) -> _OpenFiles:
        home = Home(self.path, known.facts, soft)  # a Home depends on the layer, so make a new one
        return _OpenFiles(
            home, SlateReader(self.path, home, lambda: home.batch_of(self.progress()))
        )


class _OpenFiles:
    """A store's open files, and the number of their leases."""

    def __init__(self, home: Home, reader: SlateReader) -> None:
        self.home = home
        self.reader = reader
        self.users = 0
        self.left = False

    def close_if_left(self) -> None:
        if self.left and not self.users:
            self.reader.close()


class _FollowedFile(Generic[T]):
    """The content of a small file, read again when the file is replaced."""

    def __init__(self, path: Path, read: Callable[[Path], T]) -> None:
        self._path = path
        self._name = str(path)  # os.stat would convert a Path at every call
        self._read = read
        # One attribute, so that a thread never sees the value of one file with another's signature.
        self._known: tuple[tuple[int, int, int] | None, T] | None = None

    def now(self) -> T:
        try:
            status = os.stat(self._name)
            signature = (status.st_ino, status.st_mtime_ns, status.st_size)
        except FileNotFoundError:
            signature = None
        except OSError as error:
            raise self._unreadable(error) from error
        known = self._known
        if known is None or known[0] != signature:
            # The signature is taken before the content: a file replaced in between is read again.
            try:
                known = self._known = signature, self._read(self._path)
            except OSError as error:
                raise self._unreadable(error) from error
            except msgspec.DecodeError as error:
                raise StoreError(
                    f"{self._path}: its content cannot be understood ({error}); was it written by "
                    "another version of Millstream? Run the application with this one"
                ) from error
        return known[1]

    def _unreadable(self, error: OSError) -> StoreError:
        return StoreError(
            f"{self._path}: cannot be read: {error.strerror or error}; give this user the right to "
            "read the store"
        )


def _read_progress(path: Path) -> Progress:
    return read_committed(path.parent)
