"""The server beside a run: started before Spark, restarted if it ends, stopped with the run.

It is a process of its own, so that reading slates and accepting events do not wait for the driver.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from millstream.errors import MillstreamError
from millstream.notices import say

if TYPE_CHECKING:
    from millstream.server.child import ServerChild
    from millstream.server.lock import Holder
    from millstream.server.options import ServerOptions

ORPHAN_SECONDS = 5.0
PAUSE = 1.0
"""Seconds before a server that has ended is started again."""


class RunServer:
    """The server of a run, for as long as the run lasts. A context manager."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._stop = threading.Event()
        self._child: ServerChild | None = None
        self._watch: threading.Thread | None = None
        self.url = ""

    def __enter__(self) -> RunServer:
        return self

    def start_later(self, started: Callable[[], object]) -> None:
        """Starts it in another thread: it waits for the first commit of a shared store, which only
        comes later. `started` is called once it is up."""

        def start() -> None:
            try:
                self.start()
            except MillstreamError as error:
                if not self._stop.is_set():
                    say(f"the server cannot be started: {error}")
                return
            started()

        threading.Thread(target=start, name="server-start", daemon=True).start()

    def start(self) -> None:
        """Starts it, or finds the one that serves this store already."""
        from millstream.server.child import ServerChild

        deadline = time.monotonic() + ORPHAN_SECONDS
        while (holder := self._served_by()) is not None:
            if not holder.beside:
                self.url = holder.url
                say(f"using the server that is already running: {holder.url}")
                return
            if time.monotonic() > deadline:
                break  # the error of the new server will name the old one
            time.sleep(0.05)  # it belonged to a run that has died, and is about to end
        self._child = child = ServerChild.start(self._options)
        if self._stop.is_set():
            child.stop()
            return
        self.url = child.url
        port = urlsplit(self.url).port or self._options.port
        self._options = replace(self._options, port=port)  # a restart keeps the port
        say(f"live page and HTTP: {self.url}")
        self._watch = threading.Thread(target=self._look_after, name="server", daemon=True)
        self._watch.start()

    def _served_by(self) -> Holder | None:
        """Returns the holder of a server on this host that already serves the store."""
        from millstream.server.lock import served_by
        from millstream.stores.shared.mirror_folder import mirrors_of

        options = self._options
        folders = mirrors_of(options.place, options.cache) if options.place else [options.store]
        return next(filter(None, map(served_by, folders)), None)

    def _look_after(self) -> None:
        from millstream.server.child import ServerChild

        while self._child is not None:
            code = self._child.wait()
            if self._stop.wait(PAUSE):
                return
            say(f"the server has ended (exit code {code}); starting it again")
            try:
                self._child = ServerChild.start(self._options)
            except MillstreamError as error:
                say(f"the server cannot be started again: {error}")
                return

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        if self._child is not None:
            self._child.stop()
