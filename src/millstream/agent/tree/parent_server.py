"""The HTTP server of a parent, for its children only. Its owner makes the answers.

A child must send the token if there is one. A parent that other machines can reach must have one.
GET /healthz needs no token: it says only that the parent is alive.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
import ssl
import sys
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import BoundedSemaphore, Thread
from typing import Any, ClassVar
from urllib.parse import urlsplit

from millstream.agent.delivery.bodies import LONGEST
from millstream.agent.delivery.outbox import GROUP_BYTES
from millstream.agent.delivery.wire import Answer, refusal_of
from millstream.errors import CommandError

LONGEST_BODY = max(GROUP_BYTES, LONGEST) + (1 << 20)
"""The largest body that is accepted; more than any agent sends at once."""
BODIES = 4
"""At most this many large bodies are read at once, since no memory limit counts them."""
SMALL = 64 << 10
"""Bodies up to this size are read without that limit: a question for news, or a hello, may wait for
its answer, and must not hold up others."""
ANYWHERE = ("0.0.0.0", "::")
SHORTEST_TOKEN = 16
SILENCE = 60.0
"""Seconds of silence after which a connection is closed."""
BODY_SILENCE = 10.0
"""Seconds of silence in the middle of a body after which a connection is closed."""


@dataclass(frozen=True, slots=True)
class ChildRequest:
    """A request from a child."""

    method: str
    path: str
    """Without the query, as it came."""
    query: str
    body: bytes
    key: str
    """The idempotency key."""


Answering = Callable[[ChildRequest], Answer]


class ParentServer:
    """Listens once it is created, so that its address is known. Answers once it is started."""

    def __init__(
        self,
        address: str,
        token: str | None,
        answering: Answering,
        certificate: tuple[Path, Path] | None = None,
    ) -> None:
        """`certificate`: a certificate and its key, to serve HTTPS."""
        host, port = _place(address)
        if not _is_loopback(host) and (token is None or len(token) < SHORTEST_TOKEN):
            raise CommandError(
                f"--serve {address}: {host} can be reached from other machines, so a token of at "
                f"least {SHORTEST_TOKEN} characters must guard it: set MILLSTREAM_TOKEN, as for "
                "the root"
            )
        try:
            self._server = _ChildrenServer((host, port), _Handler)
        except OSError as error:
            raise CommandError(
                f"--serve {address}: cannot listen there: {error.strerror or error}"
            ) from None
        self._server.bodies = BoundedSemaphore(BODIES)
        self._server.answering = answering
        self._server.context = None if certificate is None else _serving(*certificate)
        self.secure = certificate is not None
        self._server.token = None if token is None else f"Bearer {token}".encode()
        self._thread = Thread(
            target=self._server.serve_forever, args=(0.1,), name="serving", daemon=True
        )

    @property
    def address(self) -> tuple[str, int]:
        host, port = self._server.server_address[:2]
        return str(host), int(port)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Accept no more connections. Open ones end with the process."""
        if self._thread.is_alive():
            self._server.shutdown()
        self._server.server_close()


class _ChildrenServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 64
    bodies: BoundedSemaphore
    answering: Answering
    token: bytes | None
    context: ssl.SSLContext | None = None

    def __init__(self, place: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self.address_family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        super().__init__(place, handler)

    def get_request(self) -> tuple[socket.socket, Any]:
        connection, place = super().get_request()
        if self.context is not None:
            # The handshake happens in the connection's own thread, with its first read.
            connection = self.context.wrap_socket(
                connection, server_side=True, do_handshake_on_connect=False
            )
        return connection, place

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore children that disconnect in the middle of a request; report all other errors."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = SILENCE
    disable_nagle_algorithm = True
    server: ClassVar[_ChildrenServer]  # type: ignore[misc]  # the base class knows a narrower one

    def do_GET(self) -> None:
        if self.path == "/healthz":
            self._say(200, b'{"ok":true}')
        elif self._trusted():
            answer = self._answer("GET", b"")
            self._say(answer.status, answer.body, answer.retry_after)

    def do_POST(self) -> None:
        length = self.headers.get("Content-Length", "")
        if not self._trusted():
            return
        if not length.isascii() or not length.isdigit():
            self._refuse(411, "a body must come with its Content-Length")
        elif int(length) > LONGEST_BODY:
            self._refuse(413, f"a body must have at most {LONGEST_BODY} bytes")
        else:
            answer = self._posted(int(length))
            self._say(answer.status, answer.body, answer.retry_after)

    def _trusted(self) -> bool:
        """True if the request has the token; otherwise refuses it."""
        token = self.server.token
        sent = self.headers.get("Authorization", "").encode("latin-1", "replace")
        if token is None or hmac.compare_digest(sent, token):
            return True
        self._refuse(401, "this parent needs the token of its root: set MILLSTREAM_TOKEN")
        return False

    def _posted(self, length: int) -> Answer:
        """Read the body and answer. TimeoutError and ConnectionError end the connection."""
        if length > SMALL:
            with self.server.bodies:
                return self._answer("POST", self._body(length))
        return self._answer("POST", self._body(length))

    def _body(self, length: int) -> bytes:
        self.connection.settimeout(BODY_SILENCE)
        body = self.rfile.read(length)
        self.connection.settimeout(SILENCE)
        if len(body) < length:
            raise ConnectionError("the body has ended too early")
        return body

    def _answer(self, method: str, body: bytes) -> Answer:
        path, _, query = self.path.partition("?")
        key = self.headers.get("Idempotency-Key", "")
        return self.server.answering(ChildRequest(method, path, query, body, key))

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: a busy parent would fill its log."""

    def _refuse(self, status: int, error: str) -> None:
        self.close_connection = True  # the body was not read
        self._say(status, refusal_of(status, error).body)

    def _say(self, status: int, body: bytes, retry_after: float | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if retry_after is not None:
            self.send_header("Retry-After", f"{retry_after:g}")
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)


def _serving(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise CommandError(
            f"--tls-cert {certificate} and --tls-key {key} cannot work: {error}; both must be PEM "
            "files, and the key must be the certificate's, without a password"
        ) from None
    return context


def _place(address: str) -> tuple[str, int]:
    """Parses HOST:PORT, or just a port, which is for this machine only.

    >>> _place("8471"), _place("0.0.0.0:8471"), _place("[::1]:0")
    (('127.0.0.1', 8471), ('0.0.0.0', 8471), ('::1', 0))
    """
    host, _, port = address.rpartition(":")
    if not (port.isascii() and port.isdigit()) or int(port) > 65_535:
        raise CommandError(f"--serve must be PORT or HOST:PORT, as in 0.0.0.0:8471; got {address}")
    return host.strip("[]") or "127.0.0.1", int(port)


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def advertised(place: tuple[str, int], secure: bool, root: str) -> str:
    """Returns the URL of a server that listens at `place`.

    If it listens on all addresses, the URL has the address from which this machine reaches the
    root.

    >>> advertised(("127.0.0.1", 8480), False, "http://root:8470")
    'http://127.0.0.1:8480'
    """
    host, port = place
    if host in ANYWHERE:
        host = towards(root)
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if secure else 'http'}://{shown}:{port}"


def towards(root: str) -> str:
    """Returns the address that this machine's packets to the root come from. Sends none."""
    parts = urlsplit(root)
    try:
        family, kind, _, _, target = socket.getaddrinfo(
            parts.hostname, parts.port or 80, type=socket.SOCK_DGRAM
        )[0]
        with socket.socket(family, kind) as probe:
            probe.connect(target)
            return str(probe.getsockname()[0])
    except OSError as error:
        raise CommandError(
            f"--serve: the address of this machine towards {root} cannot be found: "
            f"{error.strerror or error}; say how others reach it with --advertise URL"
        ) from None
