"""An HTTP client for one server, with the standard library only, since an agent must be small.

Every request may be made twice: reads change nothing, and a repeated post counts once. So if the
server has closed a connection that was kept open, the request is retried at once on a new one. All
other errors are raised: the caller knows how long it can wait.
"""

from __future__ import annotations

import math
import re
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from threading import get_ident
from typing import Literal, Protocol
from urllib.parse import quote, urlencode, urlsplit

import msgspec

from millstream.errors import ClientError
from millstream.messages.errors import ErrorAnswer
from millstream.retry_pause import retry_after
from millstream.trees.messages import Hello, NewsQuestion

CONNECT_TIMEOUT = 5.0
TIMEOUT = 30.0
LONGEST_ANSWER = 32 << 20
LONGEST_QUERY = 4_000
Verdict = Literal["taken", "later", "never"]
SILENT = (OSError, HTTPException)
"""The exceptions that are raised when there is no answer."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a server."""

    status: int
    body: bytes
    retry_after: float | None = None

    def verdict(self) -> Verdict:
        """Returns whether the whole post was taken, may be taken later, or never will be.

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
        """Returns the server's own description of the error."""
        reply = self._said()
        if reply.refused:
            return reply.refused[0].error
        return reply.error or f"it answers with the status {self.status}"

    def _said(self) -> _Said:
        try:
            return msgspec.json.decode(self.body, type=_Said)
        except msgspec.DecodeError:
            return _Said()


def answer_of(status: int, value: object, retry: float | None = None) -> Answer:
    """Returns an answer with a value as JSON, as our own servers send it."""
    return Answer(status, msgspec.json.encode(value), retry)


def refusal_of(status: int, error: str, retry: float | None = None) -> Answer:
    """Returns the answer to a request that is refused, as our own servers send it."""
    return answer_of(status, ErrorAnswer(error, status), retry)


class _RefusedMessage(msgspec.Struct):
    error: str = ""


class _Said(msgspec.Struct):
    """The part of a `PostAnswer`, a `PostRefused` or an `ErrorAnswer` that is read here.

    A proxy may send something else.
    """

    error: str = ""
    refused_count: int = 0
    refused: list[_RefusedMessage] = msgspec.field(default_factory=list)


class Way(Protocol):
    """A receiver of messages: a server, or the merging half of this agent."""

    @property
    def name(self) -> str:
        """Its name in messages."""

    def post(self, path: str, body: bytes, key: str) -> Answer:
        """Post NDJSON under an idempotency key. Raises one of SILENT if there is no answer."""

    def alive(self) -> bool:
        """True if it answers at all; returns within a few seconds."""


class ServerWire:
    """A server's address, and a connection to it for each thread that uses it."""

    def __init__(
        self,
        url: str,
        token: str | None = None,
        *,
        timeout: float = TIMEOUT,
        name: str = "",
        ca: Path | None = None,
    ) -> None:
        """`ca`: a file with the certificates of the authorities to trust, instead of the
        system's."""
        parts = urlsplit(url)
        try:
            host, port = parts.hostname, parts.port
            (host or "").encode("idna")
        except ValueError as error:
            raise ClientError(f"the server's url is not valid: {error}; got {url!r}") from None
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
        self._timeout, self._token, self._ca = timeout, token, ca
        if ca is not None:
            trusting(ca)
        self._connections: dict[int, HTTPConnection] = {}
        """The connection of each thread."""
        self._hung_up: set[int] = set()
        self.url = f"{parts.scheme}://{parts.netloc}{self._base}"
        self.name = name or f"the server at {self.url}"

    @classmethod
    def like(cls, wire: ServerWire, timeout: float) -> ServerWire:
        """Returns another client of the same server, with its own connections and timeout."""
        return cls(wire.url, wire._token, timeout=timeout, name=wire.name, ca=wire._ca)

    def post(self, path: str, body: bytes, key: str) -> Answer:
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": key}
        return self._asked("POST", path, body, headers)

    def get(self, path: str) -> Answer:
        return self._asked("GET", path, None, {})

    def news(self, path: str, question: NewsQuestion) -> Answer:
        """Ask for news; by POST if a URL cannot name all the nodes."""
        fields: list[tuple[str, object]] = [("node", node) for node in question.nodes]
        if question.after is not None:
            fields += [("life", question.life), ("after", question.after)]
        if question.wait:
            fields.append(("wait", math.ceil(question.wait)))
        query = urlencode(fields)
        if len(query) <= LONGEST_QUERY:
            target = f"{path}?{query}" if query else path
            return self._asked("GET", target, None, {}, question.wait)
        headers = {"Content-Type": "application/json"}
        return self._asked("POST", path, msgspec.json.encode(question), headers, question.wait)

    def hello(self, hello: Hello) -> Answer:
        """Say hello for a node."""
        path = f"/agents/{quote(hello.member.node, safe='')}"
        headers = {"Content-Type": "application/json"}
        return self._asked("POST", path, msgspec.json.encode(hello), headers)

    def alive(self) -> bool:
        quick = ServerWire.like(self, CONNECT_TIMEOUT)
        try:
            return quick.get("/healthz").status in (200, 401)
        except SILENT:
            return False
        finally:
            quick.close()

    def close(self) -> None:
        """Close this thread's connection."""
        connection = self._connections.pop(get_ident(), None)
        if connection is not None:
            connection.close()

    def hang_up(self, thread: int | None) -> None:
        """Break the connection of a thread that waits for an answer, so that its wait raises."""
        self._hung_up.add(thread or 0)
        connection = self._connections.get(thread or 0)
        if connection is not None and connection.sock is not None:
            with suppress(OSError):
                connection.sock.shutdown(socket.SHUT_RDWR)

    def _asked(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], wait: float = 0.0
    ) -> Answer:
        reused = get_ident() in self._connections
        try:
            return self._once(method, path, body, headers, wait)
        except (ConnectionError, HTTPException):
            self.close()
            if not reused or get_ident() in self._hung_up:
                raise
        except OSError:
            self.close()
            raise
        return self._once(method, path, body, headers, wait)

    def _once(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str], wait: float
    ) -> Answer:
        connection = self._connection()
        connection.sock.settimeout(self._timeout + wait)
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
        known = self._connections.get(get_ident())
        if known is not None:
            return known
        timeout = min(CONNECT_TIMEOUT, self._timeout)
        connection: HTTPConnection
        if self._secure:
            connection = HTTPSConnection(
                self._host, self._port, timeout=timeout, context=trusting(self._ca)
            )
        else:
            connection = HTTPConnection(self._host, self._port, timeout=timeout)
        try:
            connection.connect()
        except ssl.SSLError as error:
            raise Untrusted(_why_untrusted(error)) from error
        except OSError as error:
            why = error.strerror or str(error) or "it takes too long"
            raise Unreachable(f"no connection to {self.url}: {why}") from error
        self._connections[get_ident()] = connection
        return connection


class Unreachable(ConnectionError):
    """There is no connection to a server."""


class Untrusted(OSError):
    """A server could not prove its identity."""


def trusting(ca: Path | None) -> ssl.SSLContext:
    """Returns the TLS context that checks certificates. ClientError if the file has none."""
    try:
        return ssl.create_default_context(cafile=None if ca is None else str(ca))
    except (OSError, ssl.SSLError) as error:
        why = getattr(error, "strerror", None) or error
        raise ClientError(f"--ca {ca}: must be a PEM file of certificates: {why}") from None


def _why_untrusted(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return (
            f"its certificate is not trusted: {error.verify_message}; name the file with its "
            "authority's certificate with --ca, or use the name that the certificate is for"
        )
    return f"the TLS handshake with it failed: {error.reason or error}; is its address http://?"


def stream_path(stream: str, *more: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in ("streams", stream, *more))


def job_path(job: str, *more: str) -> str:
    return "".join(f"/{quote(part, safe='')}" for part in ("jobs", job, *more))
