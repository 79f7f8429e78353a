"""A real server of a small application, that can be killed and started again at its address."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from threading import Thread
from typing import Any

import msgspec
from server.served import MadeStore, until

from millstream.description import Description, SourceDescription, write_description
from millstream.log.reader import LogReader
from millstream.log.writer import Entry, LogWriter
from millstream.server.child import ServerChild
from millstream.server.options import ServerOptions

OUTPUTS = ["hot", *(f"hot{n}" for n in range(1, 20))]


def once(found: Callable[[], bool], call: Callable[..., None], *args: Any) -> Thread:
    """Call in a thread of its own, as soon as something is found to be so."""

    def wait_and_call() -> None:
        until(found)
        call(*args)

    thread = Thread(target=wait_and_call)
    thread.start()
    return thread


class LiveServer:
    """Streams: `checkins` takes events, `files` reads elsewhere, `hot` and its like are outputs.
    Slates: of `count` and `top`. It is not started yet; a context manager that stops it."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.made = MadeStore(path, {"count": "dict", "top": "table"})
        self.options = options
        self.port = 0
        self.child: ServerChild | None = None
        sources = [
            SourceDescription("checkins", "venue", None, None, True, f"log:{self.log('checkins')}"),
            SourceDescription("files", None, None, None, True, f"json:{path}/elsewhere"),
        ]
        streams = ["checkins", "files", *OUTPUTS]
        write_description(
            path, Description("retail", "content", sources, [], streams, OUTPUTS, {"nodes": []})
        )

    def __enter__(self) -> LiveServer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> LiveServer:
        """At the same port as before, if it ran before."""
        self.child = ServerChild.start(
            ServerOptions(self.made.path, port=self.port, **self.options)
        )
        self.port = int(self.child.url.rpartition(":")[2])
        return self

    def stop(self) -> None:
        if self.child is not None:
            self.child.stop()
            self.child = None

    def kill(self) -> None:
        """End it as a crash does."""
        assert self.child is not None
        os.kill(self.child.pid, signal.SIGKILL)
        self.stop()

    def log(self, stream: str) -> Path:
        return self.made.path / "logs" / stream

    def records(self, stream: str) -> list[Any]:
        """All that is in a stream's log."""
        reader = LogReader(self.log(stream))
        reader.reload()
        blocks = reader.blocks(reader.start[0], reader.end[0])
        found = [msgspec.json.decode(line) for block in blocks for line in block.lines]
        reader.close()
        return found

    def emit(self, stream: str, *values: Any, **options: Any) -> None:
        """Append to an output's log, as the driver does."""
        writer = LogWriter(self.log(stream), **options)
        for value in values:
            writer.append([Entry.of([msgspec.json.encode(value)])])
        writer.close()

    def until_record(self, stream: str, value: Any) -> None:
        """Wait until this is in a stream's log."""
        until(lambda: value in self.records(stream))
