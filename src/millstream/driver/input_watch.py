"""Tells the driver that a source may have more, as soon as something changes where it lies.

On Linux the kernel tells (inotify): a new file or record is seen at once. File systems that tell
nothing (network file systems) are looked at all the same, every `RELOOK_SECONDS`, and every
`POLL_SECONDS` where there is no inotify. The watch is only a hint: what there is, a look finds out.
"""

from __future__ import annotations

import ctypes
import os
import select
import threading
from collections.abc import Callable, Iterable

POLL_SECONDS = 0.02
"""How often an idle driver sees whether a timer is due and, without inotify, looks for input."""
RELOOK_SECONDS = 0.1
"""How often it looks where the kernel should have told."""
_CREATE, _MODIFY, _MOVED_TO, _CLOSE_WRITE = 0x100, 0x2, 0x80, 0x8
_EVENTS = _CREATE | _MODIFY | _MOVED_TO | _CLOSE_WRITE
_NONBLOCK, _CLOEXEC = os.O_NONBLOCK, os.O_CLOEXEC


class InputWatch:
    """Calls `changed` from a thread of its own whenever a watched folder has changed."""

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
        """Whether the kernel tells of changes here."""
        return self._inotify >= 0

    def follow(self, folders: Iterable[str]) -> None:
        """Watch these folders too; one that is not there is asked for again the next time."""
        if not self.tells or self._libc is None:
            return
        for folder in folders:
            if folder not in self._watched:
                watch = self._libc.inotify_add_watch(self._inotify, os.fsencode(folder), _EVENTS)
                if watch >= 0:
                    self._watched.add(folder)
                    self._changed()  # what came before the watch is found by a look

    def close(self) -> None:
        """Stop listening."""
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
    """The C library, if it has inotify."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        return libc if hasattr(libc, "inotify_init1") else None
    except OSError:
        return None
