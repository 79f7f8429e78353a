"""A server of the ledger's store, started as `millstream run` starts it, without the application.

So events can be sent before any batch has run, and it is clear which process took them in.
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
from millstream.server.options import Options
from millstream.stores.home import Home


def make_store(app: ms.App, store: Path, shards: int) -> None:
    """A store that can be served: every source of the application is an event log in it."""
    workflow = app.checked()
    home = Home.make(store, app.name, shards, workflow.slate_kinds)
    addresses = {source.name: f"log:{home.log_of(source.name)}" for source in workflow.sources}
    write_description(store, describe(workflow, addresses))


@contextmanager
def served(store: Path) -> Iterator[ServerChild]:
    """A server on a free port, which is ended by force: what was acknowledged must be there."""
    child = ServerChild.start(Options(store, port=0))
    try:
        yield child
    finally:
        kill(child)


def kill(child: ServerChild) -> None:
    """End a server with SIGKILL; again, it does nothing."""
    try:
        os.kill(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass  # it has ended already
    child.stop()
