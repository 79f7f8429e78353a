"""The store as the routes see it: kept open, followed as it changes.

What is read again and again (the progress, the description) is kept until its file's signature
changes: each is replaced by renaming, so a look at the file's inode, time and size is enough. When
the store itself is another one (deleted and made again, or with new updates), it is opened anew;
the old one is closed when nobody reads it any more.

The event loop's thread alone may call `reader`, `home` and `lease`; what `lease` gives may be used
by any one thread. `progress` may be called by all.
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
from millstream.stores.home import Home
from millstream.stores.progress import Progress
from millstream.stores.reader import SlateReader
from millstream.stores.soft import SOFT, Soft, read_committed, read_soft

T = TypeVar("T")
LOOK_EVERY = 0.2
"""Seconds after which the store itself is looked at, if no commit made that necessary before."""


class OpenStore:
    """A store that is served."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._progress = _Followed(path / "progress", _read_progress)
        self._description = _Followed(path / DESCRIPTION, lambda _: read_description(path))
        self._facts = _Followed(path / "store.json", lambda _: Home.open(path))
        self._soft = _Followed(path / SOFT, lambda _: read_soft(path))
        self._seen: Progress | None = None
        self._look_at = 0.0
        self._of = self._facts.now(), self._soft.now()
        self._opened = self._open(*self._of)

    def progress(self) -> Progress:
        """What the last committed batch left; before the first, a progress of batch -1."""
        return self._progress.now()

    def description(self) -> Description | None:
        """The application in words; None if no run has written it yet."""
        return self._description.now()

    @property
    def home(self) -> Home:
        return self._current(self.progress()).home

    @property
    def reader(self) -> SlateReader:
        """Reads the slates. Take it anew for each request; to keep it longer, take a `lease`."""
        return self._current(self.progress()).reader

    def now(self) -> tuple[Progress, SlateReader]:
        """Both at once, at the price of one."""
        progress = self.progress()
        return progress, self._current(progress).reader

    @contextmanager
    def lease(self) -> Iterator[SlateReader]:
        """A reader that stays open for as long as this lasts, whatever becomes of the store."""
        opened = self._current(self.progress())
        opened.users += 1
        try:
            yield opened.reader
        finally:
            opened.users -= 1
            opened.close_if_left()

    def running(self) -> bool:
        """Whether the driver that took the store last is alive."""
        try:
            holder = int((self.path / "lock").read_bytes())
            if holder <= 0:
                return False
            os.kill(holder, 0)
        except PermissionError:
            return True  # alive, and another user's
        except (OSError, ValueError, OverflowError):
            return False
        return True

    def close(self) -> None:
        self._opened.left = True
        self._opened.close_if_left()

    def _current(self, progress: Progress) -> _Opened:
        now = self._clock()
        if progress is not self._seen or now >= self._look_at:
            home, soft = self._facts.now(), self._soft.now()
            if home is not self._of[0] or soft != self._of[1]:
                self.close()
                self._of = home, soft
                self._opened = self._open(home, soft)
            self._seen, self._look_at = progress, now + LOOK_EVERY
        return self._opened

    def _open(self, known: Home, soft: Soft | None) -> _Opened:
        home = Home(self.path, known.facts, soft)  # its own: it is another with another layer
        return _Opened(home, SlateReader(self.path, home, lambda: home.batch_of(self.progress())))


class _Opened:
    """A store's open files, and how many use them beside the event loop."""

    def __init__(self, home: Home, reader: SlateReader) -> None:
        self.home = home
        self.reader = reader
        self.users = 0
        self.left = False

    def close_if_left(self) -> None:
        if self.left and not self.users:
            self.reader.close()


class _Followed(Generic[T]):
    """What a small file says, read again when the file is another."""

    def __init__(self, path: Path, read: Callable[[Path], T]) -> None:
        self._path = path
        self._name = str(path)  # a Path would be made into text at every look
        self._read = read
        # One attribute, so that a thread never sees the value of one file with the mark of another.
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
            # The mark is taken before the content: a file replaced in between is read once more.
            try:
                known = self._known = signature, self._read(self._path)
            except OSError as error:
                raise self._unreadable(error) from error
            except msgspec.DecodeError as error:
                raise StoreError(
                    f"{self._path}: it says something unknown ({error}); was it written by another "
                    "version of Millstream? Run the application with this one"
                ) from error
        return known[1]

    def _unreadable(self, error: OSError) -> StoreError:
        return StoreError(
            f"{self._path}: cannot be read: {error.strerror or error}; give the right to read the "
            "store"
        )


def _read_progress(path: Path) -> Progress:
    return read_committed(path.parent)
