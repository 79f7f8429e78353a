"""A server under attack: the attacks, and the properties that must hold during each.

After every case it must still answer those who may ask, soon, and must never have taken more than
`MOST_MEMORY`.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from checkins import checkins_store
from raw_http import answer, connected, head, rest
from server.forked_server import ForkedServer

from millstream.server.options import ServerOptions

TOKEN = "the-right-token-of-all"
MOST_MEMORY = 300 << 20
SOON = 10.0
"""Seconds within which those who may ask are answered, also on a busy machine."""


@dataclass(frozen=True, slots=True)
class Door:
    """A server, with a token or without."""

    url: str
    pid: int
    guarded: bool
    store: Path

    @property
    def right(self) -> dict[str, str]:
        """The headers of one who may ask."""
        return {"Authorization": f"Bearer {TOKEN}"} if self.guarded else {}

    @property
    def right_lines(self) -> list[str]:
        return [f"{name}: {value}" for name, value in self.right.items()]

    @property
    def refused(self) -> int:
        """Returns the answer to a client without access: any client without a token, if none is
        given."""
        return 401 if self.guarded else 200

    def peak(self) -> int:
        """The most memory that it has had, in bytes."""
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        (line,) = (line for line in lines if line.startswith("VmHWM:"))
        return int(line.split()[1]) << 10

    def work(self) -> int:
        """The processor time of all its threads so far, in nanoseconds."""
        threads = Path(f"/proc/{self.pid}/task").iterdir()
        return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads)

    def head(self, line: str = "GET /healthz HTTP/1.1", *headers: str, right: bool = True) -> bytes:
        return head(self.url, line, *(self.right_lines if right else ()), *headers)

    def post(self, *headers: str, right: bool = True) -> bytes:
        kind = "Content-Type: application/json"
        return self.head("POST /streams/clicks HTTP/1.1", kind, *headers, right=right)

    def answers(self) -> float:
        """Seconds that one who may ask waits for an answer."""
        began = time.monotonic()
        with connected(self.url, 30.0) as connection:
            connection.sendall(self.head())
            found = answer(connection)
        assert found.status == 200, found
        return time.monotonic() - began

    def events(self, stream: str = "clicks") -> int:
        """Returns the number of accepted events."""
        streams = httpx.get(f"{self.url}/streams", headers=self.right).json()["streams"]
        return next(one["records"] for one in streams if one["name"] == stream)

    def said(self, request: bytes) -> bytes:
        """All that is answered to these bytes: once there is an answer, no more are to come."""
        with connected(self.url) as connection:
            try:
                connection.sendall(request)
                first = connection.recv(1 << 16)
                connection.shutdown(socket.SHUT_WR)
            except OSError:
                return b""  # it hung up
            return first + rest(connection)

    def statuses(self, request: bytes) -> list[int]:
        return statuses_in(self.said(request))


def statuses_in(data: bytes) -> list[int]:
    """The statuses of the answers in this."""
    return [int(part[:3]) for part in data.split(b"HTTP/1.1 ")[1:]]


@contextmanager
def opened(
    path: Path, *, guarded: bool, slates: Mapping[str, Any] | None = None, **options: Any
) -> Iterator[Door]:
    """A server of a store of check-ins, with these slates of `count` beside Walmart's."""
    made = checkins_store(path)
    made.commit({"count": {"Walmart": {"count": 1}, **(slates or {})}})
    token = {"token": TOKEN} if guarded else {}
    server = ForkedServer(ServerOptions(path, port=0, **token, **options))
    try:
        yield Door(server.url, server.pid, guarded, path)
    finally:
        server.kill()


@contextmanager
def many(door: Door, count: int) -> Iterator[list[socket.socket]]:
    """Opens a number of connections at once."""
    with ExitStack() as stack:
        yield [stack.enter_context(connected(door.url)) for _ in range(count)]


@contextmanager
def unharmed(door: Door) -> Iterator[None]:
    """Checks after the test body that the server still works."""
    yield
    assert door.answers() < SOON
    assert door.peak() < MOST_MEMORY, f"{door.peak() >> 20} MB"


def doors(path: Path, request: pytest.FixtureRequest, **options: Any) -> Iterator[Door]:
    """The content of a fixture that is once without and once with a token."""
    with opened(path / "store", guarded=request.param == "token", **options) as door:
        yield door
