"""Starts agents as users do, and a root without Spark.

The cheap root is the application's own server over a store: it accepts the messages of the nodes as
usual, but nothing processes them. `Root.messages` reads them; the application is then run over them
in memory (`judging.in_memory`). So an agent can be disturbed a hundred times in the time that Spark
needs for a few starts.
"""

from __future__ import annotations

import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from fault_runs.agents.app import APPS, NAME
from fault_runs.processes import MILLSTREAM, ROOT, start
from fault_runs.serving import kill, make_store
from millstream.log.reader import LogReader
from millstream.server.child import ServerChild
from millstream.server.options import ServerOptions
from millstream.stores.home import log_of
from millstream.windows.panes.message import Message

APP = ROOT / "fault_runs" / "agents" / "app.py"
SHARDS = 3
PANES = f"{NAME}.panes"


def free_port() -> int:
    """A port of loopback that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Root:
    """A server of the application's store, at the same address in all starts."""

    def __init__(self, app: str, store: Path) -> None:
        self._store = store
        self._port = free_port()
        self._child: ServerChild | None = None
        self.url = f"http://127.0.0.1:{self._port}"
        make_store(APPS[app], store, SHARDS)

    def start(self, **options: Any) -> None:
        self._child = ServerChild.start(ServerOptions(self._store, port=self._port, **options))

    def kill(self) -> None:
        """Kill it; a second call does nothing."""
        if self._child is not None:
            kill(self._child)
            self._child = None

    def messages(self) -> list[Message]:
        """All messages that it has acknowledged, in its order; call it after `kill`."""
        return messages_in(self._store)

    def taken(self) -> int:
        """The bytes in its log."""
        return taken_in(self._store)


def messages_in(store: Path) -> list[Message]:
    """The messages in the log of a store that nobody writes to."""
    reader = LogReader(log_of(store, PANES))
    try:
        blocks = reader.blocks(reader.start[0], reader.end[0])
        return [msgspec.json.decode(line, type=Message) for block in blocks for line in block.lines]
    finally:
        reader.close()


def taken_in(store: Path) -> int:
    """The bytes in the log. (A `LogReader` would check for a writer, and might block it.)"""
    try:
        files = list(log_of(store, PANES).iterdir())
        return sum(file.stat().st_size for file in files if file.is_file())
    except FileNotFoundError:
        return 0


def agent(
    app: str, node: str, logs: str, root: str, state: Path, *more: str, struck: str = ""
) -> list[str]:
    """The command line of an agent; `struck` names a point at which it kills itself."""
    command = [*MILLSTREAM] if not struck else ["-m", "fault_runs.agents.struck", struck]
    words = ["agent", f"{APP}:{app}", "--job", NAME, "--node", node, "--log", logs]
    return [*command, *words, "--root", root, "--state", str(state), "--nice", "0", *more]


def finish(words: Sequence[str], log: Path, patience: float = 60.0) -> None:
    """Run an agent to the end of its log; AssertionError if it does not get there."""
    running = start([*words, "--once"], log)
    try:
        if running.wait(patience) != 0:
            raise AssertionError(f"the agent failed: {running.said()}")
    finally:
        running.kill()
