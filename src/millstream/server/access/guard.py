"""The guard: checks every request before anything else does.

It checks, in this order: the request rate of the address, the host name, the page that made the
request, the token, the declared size of the body. The first check that fails is the answer.

*Host*, *Origin* and *Sec-Fetch-Site* keep out web pages of other sites. A page whose host name was
made to point at this machine (DNS rebinding) sends its own name as Host. Any other page's request
has its site in Origin or Sec-Fetch-Site. From other sites, only a link that a user follows may lead
here.
*The token*, where there is one, guards every route (`token_check`); the dispatcher checks what it
allows. Wrong tokens are counted for each client address and limited in rate. A right token is
never counted as wrong, and has a rate of its own, so nobody can lock out its holder. *Bodies* are
counted and timed as they arrive.
"""

from __future__ import annotations

import asyncio
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from millstream.server.access.access_log import AccessLog
from millstream.server.access.client_address import TrustedProxies, networks_in
from millstream.server.access.grants import EVERYONE, Grant
from millstream.server.access.limits import TokenBuckets
from millstream.server.access.token_check import TokenCheck
from millstream.server.http.answers import Refusal
from millstream.server.http.connection import PROVEN
from millstream.server.http.connection_room import address_group
from millstream.server.options import ServerOptions
from millstream.server.service import Service

MOST_HEADERS = 100
LONGEST_URL = 16 << 10
WRONG_TOKENS = 20.0
"""Wrong tokens that an address may send at once; afterwards, half as many per second."""
BODIES = 2
"""Bodies of the largest size that are held at once, over all requests. Parsing a body takes up to
three times its size, so this bounds the server's memory."""

SECURITY_HEADERS = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("x-frame-options", "DENY"),
    ("cache-control", "no-store"),
    (
        "content-security-policy",
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
]
"""Headers of every answer. uvicorn adds them, so answers that come from no route have them too."""

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:/?#@\s]+)(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"https?://(.+)")
GRANT = "millstream.grant"
"""The key in a request's scope of the rights that its token grants."""
_LOGIN = {"WWW-Authenticate": 'Basic realm="millstream", charset="UTF-8"'}


@dataclass(slots=True)
class RequestTrace:
    """Facts about a request for the access log, filled in by the guard."""

    address: str
    grant: Grant | None = None


class Guard:
    """An ASGI application in front of another."""

    def __init__(
        self, app: ASGIApp, service: Service, clock: Callable[[], float] = time.monotonic
    ) -> None:
        options = service.options
        self._app = app
        self._counters = service.counters
        self._clock = clock
        self._max_body = options.max_body
        self._body_timeout = options.body_timeout
        self._tokens = TokenCheck(options, service.say, clock)
        self._proxies = TrustedProxies(networks_in(options.trusted_proxies))
        self._log = service.access_log
        self._names = Names(options)
        self._rate = TokenBuckets(options.rate, 2 * options.rate)
        self._wrong = TokenBuckets(WRONG_TOKENS / 2, WRONG_TOKENS)
        self._held = Held(BODIES * options.max_body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._counters.requests += 1
        peer = scope["client"][0] if scope["client"] else ""
        trace = RequestTrace(
            self._proxies.client(peer, scope["headers"]) if self._proxies else peer
        )
        if self._log is not None:
            send = _logged(self._log, scope, send, trace, self._clock)
        try:
            bodied = self._check(scope, trace)
        except Refusal as refusal:
            self._counters.answered(refusal.status)
            await refusal.answer()(scope, receive, send)
            return
        if not bodied:
            await self._app(scope, receive, send)
            return
        body = Body(receive, self._max_body, self._body_timeout, self._clock, self._held)
        try:
            await self._app(scope, body.receive, send)
        finally:
            body.let_go()

    def _check(self, scope: Scope, trace: RequestTrace) -> bool:
        """Raises Refusal if anything is wrong; returns True if the request has a body."""
        host = origin = authorization = site = None
        mode = dest = b""
        bodied, upgrade, length, hosts = False, False, 0, 0
        headers = scope["headers"]
        for name, value in headers:
            if name == b"host":
                host = value
                hosts += 1
            elif name == b"content-length":
                bodied, length = True, int(value)
            elif name == b"authorization":
                authorization = value
            elif name == b"origin":
                origin = value
            elif name == b"sec-fetch-site":
                site = value
            elif name == b"sec-fetch-mode":
                mode = value
            elif name == b"sec-fetch-dest":
                dest = value
            elif name == b"transfer-encoding":
                bodied = True
            elif name == b"upgrade":
                upgrade = True
        trace.grant = grant = self._tokens.grant(authorization)
        now = self._clock()
        group = address_group(trace.address)
        wait = self._rate.take(f"{group} {grant.name}" if grant and grant.name else group, now)
        if wait:
            raise _too_fast("requests", wait)
        if len(headers) > MOST_HEADERS:
            raise Refusal(431, f"a request must have at most {MOST_HEADERS} headers")
        if len(scope["raw_path"]) + len(scope["query_string"]) > LONGEST_URL:
            raise Refusal(414, f"a path and its query must have at most {LONGEST_URL} bytes")
        if hosts > 1:
            raise Refusal(400, "a request must have one Host header")
        self._names.check(host or b"", origin)
        if site in (b"cross-site", b"same-site"):
            _check_link(scope["method"], mode, dest)
        if grant is None:
            self._refuse_token(authorization, group, now)
        elif grant is not EVERYONE and PROVEN in scope:
            scope[PROVEN]()
        scope[GRANT] = grant
        if upgrade and bodied:
            # The parser stops after the head of such a request, and parses its body as a request.
            raise Refusal(
                400,
                "a request with a body must not ask for an Upgrade; this server speaks HTTP/1.1, "
                "so tell the client to use that",
                headers={"Connection": "close"},
            )
        if length > self._max_body:
            raise too_large(self._max_body)
        return bodied

    def _refuse_token(self, given: bytes | None, group: str, now: float) -> None:
        if given is None:
            raise Refusal(
                401,
                "this server needs a token: Authorization: Bearer TOKEN, or as the "
                "password of any user",
                headers=_LOGIN,
            )
        wait = self._wrong.take(group, now)
        if wait:
            raise _too_fast("wrong tokens", wait)
        raise Refusal(401, "the server does not know this token, or it expired", headers=_LOGIN)


def _check_link(method: str, mode: bytes, dest: bytes) -> None:
    """Raises Refusal for a request of another site's page, unless a user has followed a link."""
    if method not in ("GET", "HEAD") or mode != b"navigate" or dest != b"document":
        raise Refusal(
            403,
            "a page of another site (the Sec-Fetch-Site header) may not use this server; only its "
            "own page may",
        )


def _logged(
    log: AccessLog, scope: Scope, send: Send, seen: RequestTrace, clock: Callable[[], float]
) -> Send:
    """Wraps `send` so that the answer is written to the access log."""
    started = clock()

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            query = scope["query_string"]
            log.add(
                seen.address,
                message["status"],
                token=seen.grant.name or None if seen.grant else None,
                method=scope["method"],
                path=scope["raw_path"] + (b"?" + query if query else b""),
                seconds=clock() - started,
            )
        await send(message)

    return sending


class Names:
    """The host names that requests may use."""

    def __init__(self, options: ServerOptions) -> None:
        bound = f"[{options.host}]" if ":" in options.host else options.host.lower()
        self._any_port = {"localhost", "127.0.0.1", "[::1]"}
        self._exact = {f"{bound}:{options.port}"}
        if options.port in (80, 443):
            self._exact.add(bound)
        for host in options.hosts:
            match = _HOST.fullmatch(host.lower())
            (self._exact if match and match[2] else self._any_port).add(host.lower())
        self._passed: set[tuple[bytes, bytes | None]] = set()

    def check(self, host: bytes, origin: bytes | None) -> None:
        """Raises Refusal if the request used another name, or came from a page of another site."""
        if (host, origin) in self._passed:
            return
        name = host.decode("latin-1").lower()
        match = _HOST.fullmatch(name)
        if match is None or (name not in self._exact and match[1] not in self._any_port):
            raise Refusal(
                421,
                f"this server does not answer to {name[:100]!r} (the Host header); use the address "
                "that it printed, or start it with this name among its hosts",
            )
        if origin is not None:
            page = _ORIGIN.fullmatch(origin.decode("latin-1").lower())
            if page is None or page[1] != name:
                raise Refusal(
                    403,
                    f"a page of {origin.decode('latin-1')[:100]!r} (the Origin header) may not use "
                    "this server; only its own page may",
                )
        if len(self._passed) < 256:
            self._passed.add((host, origin))


@dataclass(slots=True)
class Held:
    """Counts the bytes of all bodies in memory."""

    most: int
    bytes: int = 0


class Body:
    """Receives a request's body; limits its size, each pause between pieces, and its total time."""

    def __init__(
        self, receive: Receive, most: int, timeout: float, clock: Callable[[], float], held: Held
    ) -> None:
        self._receive = receive
        self._most = most
        self._timeout = timeout
        self._clock = clock
        self._held = held
        self._came = 0
        self._end = clock() + 4 * timeout
        self._whole = False

    async def receive(self) -> Message:
        if self._whole:  # the only message after the body is that the client has disconnected
            return await self._receive()
        try:
            async with asyncio.timeout(min(self._timeout, self._end - self._clock())):
                message = await self._receive()
        except TimeoutError:
            raise Refusal(
                408,
                f"a body must come within {4 * self._timeout:g} seconds, with no pause of over "
                f"{self._timeout:g}; send less at once",
                headers={"Connection": "close"},
            ) from None
        self._whole = not message.get("more_body", False)
        size = len(message.get("body", b""))
        self._came += size
        self._held.bytes += size
        if self._came > self._most:
            raise too_large(self._most)
        if self._held.bytes > self._held.most:
            raise Refusal(
                503, "too many large bodies at once; try again", headers={"Retry-After": "1"}
            )
        return message

    def let_go(self) -> None:
        """Releases the body's bytes after the request was answered."""
        self._held.bytes -= self._came


def too_large(most: int) -> Refusal:
    """Returns the refusal of a body over the limit."""
    return Refusal(413, f"a body must have at most {most} bytes; send it in parts")


def _too_fast(noun: str, wait: float) -> Refusal:
    seconds = str(math.ceil(wait))
    return Refusal(
        429, f"too many {noun} from this address; try again later", headers={"Retry-After": seconds}
    )
