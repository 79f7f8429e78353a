"""Tells the driver that a source may have more, as soon as its folder changes.

On Linux the kernel reports changes (inotify), so a new file or record is seen at once. Some file
systems report nothing (network file systems), so the driver also checks every `RELOOK_SECONDS`, and
every `POLL_SECONDS` where there is no inotify. The watch is only a hint: the driver then looks at
the source to find out what there is.
"""

from __future__ import annotations

import ctypes
import os
import select
import threading
from collections.abc import Callable, Iterable

POLL_SECONDS = 0.02
"""Interval at which an idle driver checks for timers that are due and, without inotify, for input.
"""
RELOOK_SECONDS = 0.1
"""Interval at which it checks for input that the kernel should have reported."""
_CREATE, _MODIFY, _MOVED_TO, _CLOSE_WRITE = 0x100, 0x2, 0x80, 0x8
_EVENTS = _CREATE | _MODIFY | _MOVED_TO | _CLOSE_WRITE
_NONBLOCK, _CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC


class InputWatch:
    """Calls `changed`, from a background thread, whenever a watched folder has changed."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._watched: set[str] = set()
        self._libc = _libc()
        self._inotify = -1 if self._libc is None else self._libc.inotify_init1(_NONBLOCK | _CLOEXEC)
        self._end, self._ending = os.pipe2(_CLOEXEC) if self.tells else (-1, -1)
        self._thread: threading.Thread | None = None
        if self.tells:
            self._thread = threading.Thread(target=self._listen, name="inputs", daemon=True)
            self._thread.start()

    @property
    def tells(self) -> bool:
        """True if the kernel reports changes here."""
        return self._inotify >= 0

    def follow(self, folders: Iterable[str]) -> None:
        """Watches these folders too; one that does not exist yet is retried at the next call."""
        if not self.tells or self._libc is None:
            return
        for folder in folders:
            if folder not in self._watched:
                watch = self._libc.inotify_add_watch(self._inotify, os.fsencode(folder), _EVENTS)
                if watch >= 0:
                    self._watched.add(folder)
                    self._changed()  # for changes from before the watch began

    def close(self) -> None:
        """Stops listening."""
        if self._thread is not None:
            os.close(self._ending)
            self._thread.join()
            os.close(self._end)
            os.close(self._inotify)
            self._thread = None
            self._inotify = -1

    def _listen(self) -> None:
        waiting = select.poll()
        waiting.register(self._inotify, select.POLLIN)
        waiting.register(self._end, select.POLLIN)
        while True:
            if any(ready == self._end for ready, _ in waiting.poll()):
                return
            try:
                os.read(self._inotify, 65_536)
            except OSError:
                continue
            self._changed()


def _libc() -> ctypes.CDLL | None:
    """Returns the C library if it has inotify."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return libc if hasattr(libc, "inotify_init1") else None
    except OSError:
        return None
