"""One server over HTTP, with nothing but the standard library: an agent has to be small.

Every request may be made twice: reads change nothing, and what is posted counts once. So a
connection that was kept open, and that the server has closed meanwhile, is made again at once.
Anything else that goes wrong is for the caller, who knows how long it can wait.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from threading import local
from typing import Literal, Protocol
from urllib.parse import quote, urlsplit

import msgspec

from millstream.errors import ClientError

CONNECT_TIMEOUT = 5.0
TIMEOUT = 30.0
LONGEST_ANSWER = 32 << 20
Verdict = Literal["taken", "later", "never"]
SILENT = (OSError, HTTPException)
"""What is raised when there is no answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server said."""

    status: int
    body: bytes
    retry_after: float | None = None

    def verdict(self) -> Verdict:
        """Whether all of what was posted is taken, may be later, or can never be.

        >>> [Answer(status, b"{}").verdict() for status in (200, 503, 404)]
        ['taken', 'later', 'never']
        >>> Answer(200, b'{"refused_count":1}').verdict()
        'never'
        """
        if 200 <= self.status < 300:
            return "never" if self._said().refused_count else "taken"
        lasting = 400 <= self.status < 500 and self.status not in (408, 409, 425, 429)
        return "never" if lasting else "later"

    def sentence(self) -> str:
        """Its own words for what is wrong."""
        said = self._said()
        if said.refused:
            return said.refused[0].error
        return said.error or f"it answers with the status {self.status}"

    def _said(self) -> _Said:
        try:
            return msgspec.json.decode(self.body, type=_Said)
        except msgspec.DecodeError:
            return _Said()


class _Refused(msgspec.Struct):
    error: str = ""


class _Said(msgspec.Struct):
    error: str = ""
    refused_count: int = 0
    refused: list[_Refused] = msgspec.field(default_factory=list)


class Way(Protocol):
    """Where messages are posted: a server, or the merging half of this agent."""

    @property
    def name(self) -> str:
        """What to call it in a sentence."""

    def post(self, path: str, body: bytes, key: str) -> Answer:
        """Post NDJSON under an idempotency key; raises one of SILENT if there is no answer."""

    def alive(self) -> bool:
        """Whether it answers at all, said within a few seconds."""


class Wire:
    """A server's address, and a connection to it for each thread that uses it."""

    def __init__(
        self, url: str, token: str | None = None, *, timeout: float = TIMEOUT, name: str = ""
    ) -> None:
        parts = urlsplit(url)
        try:
            host, port = parts.hostname, parts.port
            (host or "").encode("idna")
        except ValueError as error:
            raise ClientError(f"the server's url is not one: {error}; got {url!r}") from None
        if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
            raise ClientError(
                "the server's url must be http://HOST:PORT or https://HOST:PORT, with a path or "
                f"none; got {url!r}"
            )
        if parts.username is not None or parts.password is not None:
            raise ClientError(
                f"the server's url must have no user or password: {parts.scheme}://{host}; a token "
                "goes in MILLSTREAM_TOKEN"
            )
        if token is not None and not re.fullmatch("[!-~]+", token):
            raise ClientError(
                "the token must be printable ASCII without spaces; it is not shown here"
            )
        self._host, self._port, self._secure = host, port, parts.scheme == "https"
        self._base = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout = timeout
        self._own = local()
        self.url = f"{parts.scheme}://{parts.netloc}{self._base}"
        self.name = name or f"the server at {self.url}"

    def post(self, path: str, body: bytes, key: str) -> Answer:
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        return self._asked("POST", path, body, headers)

    def get(self, path: str) -> Answer:
        return self._asked("GET", path, None, {})

    def alive(self) -> bool:
        quick = Wire(self.url, timeout=CONNECT_TIMEOUT)
        try:
            return quick.get("/healthz").status in (200, 401)
        except SILENT:
            return False
        finally:
            quick.close()

    def close(self) -> None:
        """Close this thread's connection."""
        connection: HTTPConnection | None = getattr(self._own, "connection", None)
        if connection is not None:
            connection.close()
            self._own.connection = None

    def _asked(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        reused = getattr(self._own, "connection", None) is not None
        try:
            return self._once(method, path, body, headers)
        except (ConnectionError, HTTPException):
            self.close()
            if not reused:
                raise
        except OSError:
            self.close()
            raise
        return self._once(method, path, body, headers)

    def _once(self, method: str, path: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        connection = self._connection()
        try:
            connection.request(method, self._base + path, body, {**self._headers, **headers})
            response = connection.getresponse()
            content = response.read(LONGEST_ANSWER)
            whole = response.isclosed()
        except BaseException:
            self.close()
            raise
        if response.will_close or not whole:
            self.close()
        return Answer(response.status, content, retry_after(response.headers.get("Retry-After")))

    def _connection(self) -> HTTPConnection:
        known: HTTPConnection | None = getattr(self._own, "connection", None)
        if known is not None:
            return known
        kind = HTTPSConnection if self._secure else HTTPConnection
        connection = kind(self._host, self._port, timeout=min(CONNECT_TIMEOUT, self._timeout))
        connection.connect()
        connection.sock.settimeout(self._timeout)
        self._own.connection = connection
        return connection


def stream_path(stream: str, *more: str) -> str:
    """The path of a stream at a server."""
    return "".join(f"/{quote(part, safe='')}" for part in ("streams", stream, *more))


def retry_after(header: str | None) -> float | None:
    """The seconds of a Retry-After header; a date, which needs a clock to mean anything, is none.

    >>> retry_after("2"), retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), retry_after(None)
    (2.0, None, None)
    """
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
