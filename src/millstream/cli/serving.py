"""The server beside a run: started before Spark, started again if it ends, stopped with the run.

It is a process of its own, so that reading slates and taking events in do not wait for the driver.
"""

from __future__ import annotations

import threading
import time
from contextlib import closing
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from millstream.cli.progress import say
from millstream.errors import MillstreamError
from millstream.model.app import App
from millstream.settings import Settings

if TYPE_CHECKING:
    from millstream.server.child import ServerChild
    from millstream.server.options import Options
    from millstream.stores.home import Home

ORPHAN_SECONDS = 5.0
PAUSE = 1.0
"""Seconds before a server that has ended is started again."""


def describe_app(app: App, settings: Settings) -> None:
    """Leave in the store what a server must know of the application, and with the event logs that
    it reads them: retention must wait for it even before its first run."""
    from millstream.description import describe, write_description
    from millstream.driver.addresses import addresses
    from millstream.driver.compatibility import check_parts
    from millstream.driver.inputs import open_input, position_of, register
    from millstream.sources.address import LOG
    from millstream.stores.home import Home
    from millstream.stores.soft import read_committed, read_durable

    found = addresses(settings.sources, settings.store)
    home = Home.open(settings.store)
    workflow = app.checked()
    check_parts(workflow.parts, home, read_committed(home.path))
    progress = read_durable(home.path)
    texts = {source.name: source.text for source in workflow.sources}
    for name, address in found.items():
        with closing(open_input(home, name, address, texts[name])) as source:
            register(home, name, source, position_of(progress, name))
        if address.format != LOG:
            _tell_left(home, name)
    described = describe(workflow, {name: str(one) for name, one in found.items()})
    if settings.package is not None:
        from millstream.cli.packaged import with_package

        described = with_package(described, settings.package, settings.store)
    write_description(settings.store, described)


def _tell_left(home: Home, source: str) -> None:
    """Say of events that were sent to a source which now reads elsewhere: nobody takes them."""
    from millstream.log.reader import LogReader

    with closing(LogReader(home.log_of(source))) as log:
        sent = log.end[1] - log.start[1]
    if sent:
        say(
            f"source {source!r}: {sent:,} records that were sent to its log are not read by this "
            f"run, which reads elsewhere; to take them in, run with --source {source}=log"
        )


class Serving:
    """A server for as long as a run lasts. A context manager."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._stop = threading.Event()
        self._child: ServerChild | None = None
        self._watch: threading.Thread | None = None
        self.url = ""

    def __enter__(self) -> Serving:
        return self

    def start(self) -> None:
        """Start it, or find the one that serves this store already."""
        from millstream.server.child import ServerChild
        from millstream.server.lock import served_by

        deadline = time.monotonic() + ORPHAN_SECONDS
        while (there := served_by(self._options.store)) is not None:
            if not there.beside:
                self.url = there.url
                say(f"a server is there already, and goes on: {there.url}")
                return
            if time.monotonic() > deadline:
                break  # the new one's error will say who it is
            time.sleep(0.05)  # it belonged to a run that has died, and is about to end
        self._child = ServerChild.start(self._options)
        self.url = self._child.url
        port = urlsplit(self.url).port or self._options.port
        self._options = replace(self._options, port=port)  # started again, it is where it was
        say(f"live page and HTTP: {self.url}")
        self._watch = threading.Thread(target=self._look_after, name="server", daemon=True)
        self._watch.start()

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
