"""Serves the ledger's store like `millstream run`, but without the application.

So events can be sent before any batch has run, and it is clear which process received them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import millstream as ms
from millstream.description import describe, write_description
from millstream.server.child import ServerChild
from millstream.server.options import ServerOptions
from millstream.stores.home import Home


def make_store(app: ms.App, store: Path, shards: int) -> None:
    """Makes a store that can be served: each source of the application is an event log in it."""
    workflow = app.checked()
    home = Home.make(store, app.name, shards, workflow.slate_kinds)
    addresses = {source.name: f"log:{home.log_of(source.name)}" for source in workflow.sources}
    write_description(store, describe(workflow, addresses))


@contextmanager
def served(store: Path) -> Iterator[ServerChild]:
    """Runs a server on a free port, and kills it at the end: acknowledged events must survive."""
    child = ServerChild.start(ServerOptions(store, port=0))
    try:
        yield child
    finally:
        kill(child)


def kill(child: ServerChild) -> None:
    """Kill a server; a second call does nothing."""
    try:
        os.kill(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # the server has already ended
    child.stop()
