"""HTTP byte by byte, for requests that no client would send."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPResponse
from typing import NamedTuple
from urllib.parse import urlsplit


class Answered(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


@contextmanager
def connected(url: str, seconds: float = 10.0) -> Iterator[socket.socket]:
    """A connection to the server at this address."""
    place = urlsplit(url)
    assert place.hostname is not None
    with socket.create_connection((place.hostname, place.port or 80), seconds) as connection:
        yield connection


def answer(connection: socket.socket, method: str = "GET") -> Answered:
    """The next answer on a connection."""
    response = HTTPResponse(connection, method=method)
    response.begin()
    headers = {name.lower(): value for name, value in response.getheaders()}
    body = response.read()
    response.close()
    return Answered(response.status, headers, body)


def exchange(url: str, request: bytes, method: str = "GET") -> Answered:
    """The answer to these bytes; the server may close while they are sent."""
    with connected(url) as connection:
        try:
            connection.sendall(request)
        except OSError:
            pass
        return answer(connection, method)


def head(url: str, line: str = "GET /healthz HTTP/1.1", *headers: str, host: str = "") -> bytes:
    """A request's head; its Host is the server's unless another is given."""
    lines = [line, f"Host: {host or urlsplit(url).netloc}", *headers, "", ""]
    return "\r\n".join(lines).encode("latin-1")


def rest(connection: socket.socket) -> bytes:
    """All that comes until the server ends the connection, which must be within its timeout."""
    data = b""
    try:
        while piece := connection.recv(1 << 16):
            data += piece
    except ConnectionResetError:
        pass
    return data


def ended(connection: socket.socket) -> bool:
    """Waits until the server has ended the connection; fails at the socket's timeout."""
    rest(connection)
    return True
