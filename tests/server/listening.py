"""A client of server-sent events, as a browser is one."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx


class Heard(NamedTuple):
    """An event."""

    name: str
    id: str
    data: Any


class Listener:
    """A stream that is listened to."""

    def __init__(self, response: httpx.Response) -> None:
        self.response = response
        self.retry: int | None = None
        self.comments: list[str] = []
        self._lines = response.iter_lines()

    def __iter__(self) -> Iterator[Heard]:
        fields: dict[str, str] = {}
        for line in self._lines:
            name, _, value = line.partition(": ")
            if not line and "data" in fields:
                yield Heard(fields["event"], fields["id"], json.loads(fields["data"]))
                fields = {}
            elif name == "retry":
                self.retry = int(value)
            elif line.startswith(":"):
                self.comments.append(line)
            elif line:
                assert name not in fields, "an event has one line of data"
                fields[name] = value

    def next(self) -> Heard:
        """The next event, which must come."""
        return next(iter(self))

    def take(self, count: int) -> list[Heard]:
        return [self.next() for _ in range(count)]


@contextmanager
def listening(
    client: httpx.Client, path: str, last: str | None = None, **params: Any
) -> Iterator[Listener]:
    """Listen to a stream; leaving breaks the connection off."""
    headers = {} if last is None else {"Last-Event-ID": last}
    with client.stream("GET", path, params=params or None, headers=headers) as response:
        assert response.status_code == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Listener(response)


def open_sockets(store: Path) -> int:
    """Returns the number of open sockets of a store's server."""
    pid = json.loads((store / "server.lock").read_bytes())["pid"]
    found = 0
    for handle in Path(f"/proc/{pid}/fd").iterdir():
        try:
            found += str(handle.readlink()).startswith("socket:")
        except FileNotFoundError:
            pass  # closed while we looked
    return found


def received(connection: socket.socket) -> int:
    """Returns the number of bytes until the server closes its end of a connection, which it must
    do."""
    count = 0
    try:
        while data := connection.recv(1 << 20):
            count += len(data)
    except ConnectionResetError:
        pass
    return count
