"""The guard: looks at every request before anything else does.

In this order: how fast its address asks, what name it came under, which page made it, what token it
brings, how large its body says it is. The first that is wrong is the answer.

*Host* and *Origin* keep out web pages of others: a page whose name was made to point at this
machine comes under its own name, and one that posts here says where it is from. *The token*, where
there is one, guards every route; wrong ones are counted a client address, and one that has had too
many is not listened to for a while, right or wrong. *Bodies* are counted and timed as they come.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hmac
import math
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from millstream.server.answers import Refusal
from millstream.server.limits import Buckets
from millstream.server.options import Options
from millstream.server.service import Service

MOST_HEADERS = 100
LONGEST_URL = 16 << 10
WRONG_TOKENS = 20.0
"""How many an address may bring at once; half of that a second afterwards."""
BODIES = 8
"""How many bodies of the largest size are held at once, all requests together."""

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
"""On every answer, also on those that no route gives: the server itself adds them."""

_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[^\[\]:/?#@\s]+)(?::([0-9]{1,5}))?")
_ORIGIN = re.compile(r"https?://(.+)")
_LOGIN = {"WWW-Authenticate": 'Basic realm="millstream", charset="UTF-8"'}


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
        self._token = None if options.token is None else options.token.encode()
        self._names = Names(options)
        self._rate = Buckets(options.rate, 2 * options.rate)
        self._wrong = Buckets(WRONG_TOKENS / 2, WRONG_TOKENS)
        self._held = Held(BODIES * options.max_body)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._counters.requests += 1
        try:
            bodied = self._check(scope)
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

    def _check(self, scope: Scope) -> bool:
        """Refusal if anything is wrong; whether a body comes."""
        client = scope["client"]
        peer = client[0] if client else ""
        now = self._clock()
        wait = self._rate.take(peer, now)
        if wait:
            raise _too_fast("requests", wait)
        host = origin = authorization = None
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
            elif name == b"transfer-encoding":
                bodied = True
            elif name == b"upgrade":
                upgrade = True
        if len(headers) > MOST_HEADERS:
            raise Refusal(431, f"a request must have at most {MOST_HEADERS} headers")
        if len(scope["raw_path"]) + len(scope["query_string"]) > LONGEST_URL:
            raise Refusal(414, f"a path and its query must have at most {LONGEST_URL} bytes")
        if hosts > 1:
            raise Refusal(400, "a request must have one Host header")
        self._names.check(host or b"", origin)
        if self._token is not None:
            self._check_token(authorization, self._token, peer, now)
        if upgrade and bodied:
            # The parser stops at the head of such a request, and takes its body for the next one.
            raise Refusal(
                400,
                "a request with a body must not ask for an Upgrade; this server speaks HTTP/1.1, "
                "so tell the client to use that",
                headers={"Connection": "close"},
            )
        if length > self._max_body:
            raise too_large(self._max_body)
        return bodied

    def _check_token(self, given: bytes | None, token: bytes, peer: str, now: float) -> None:
        if given is None:
            raise Refusal(
                401,
                "this server needs a token: Authorization: Bearer TOKEN, or as the "
                "password of any user",
                headers=_LOGIN,
            )
        wait = self._wrong.wait(peer, now)
        if wait:
            raise _too_fast("wrong tokens", wait)
        if not hmac.compare_digest(token_in(given), token):
            self._wrong.take(peer, now)
            raise Refusal(401, "this token is not the server's", headers=_LOGIN)


class Names:
    """The names that requests may come under."""

    def __init__(self, options: Options) -> None:
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
        """Refusal if the request came under another name, or from a page of another."""
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


def token_in(authorization: bytes) -> bytes:
    """The token that a header brings; empty if it brings none.

    >>> token_in(b"Bearer abc"), token_in(b"Basic " + base64.b64encode(b"me:a:c")), token_in(b"x")
    (b'abc', b'a:c', b'')
    """
    scheme, _, rest = authorization.partition(b" ")
    if scheme.lower() == b"bearer":
        return rest.strip()
    if scheme.lower() == b"basic":
        try:
            return base64.b64decode(rest.strip(), validate=True).partition(b":")[2]
        except binascii.Error:
            pass
    return b""


@dataclass(slots=True)
class Held:
    """The bytes of all bodies that are in memory."""

    most: int
    bytes: int = 0


class Body:
    """A request's body as it comes: counted, and timed between its pieces and in all."""

    def __init__(
        self,
        receive: Receive,
        most: int,
        timeout: float,
        clock: Callable[[], float],
        held: Held,
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
        if self._whole:  # what comes now is only that the client has left
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
                503, "too many large bodies come at once; try again", headers={"Retry-After": "1"}
            )
        return message

    def let_go(self) -> None:
        """The request was answered."""
        self._held.bytes -= self._came


def too_large(most: int) -> Refusal:
    """For a body over the limit."""
    return Refusal(413, f"a body must have at most {most} bytes; send it in parts")


def _too_fast(what: str, wait: float) -> Refusal:
    seconds = str(math.ceil(wait))
    return Refusal(
        429, f"too many {what} from this address; try again later", headers={"Retry-After": seconds}
    )
