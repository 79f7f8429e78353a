"""HTTP to a server, or to several of one application: makes requests, retries, words errors.

Of several servers, one is used for as long as it answers; then the next. A round is one try at each
server, and there is a pause only after a failed round. A server that does not have the requested
shard (421) is skipped.

`ask` reads a whole answer; `open` streams one. Both raise ClientError with the server's message if
it refuses. Every request can be repeated: reads change nothing, and each batch of events has an
idempotency key, which the server counts once. So a request is retried after a broken connection,
and after an answer that means "not now". The number of tries in a row is bounded; an answer ends
the row. If no server was ever reached, the client does not wait for it: a wrong address is more
likely than a server that is down.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import httpx
import msgspec

from millstream.errors import ClientError
from millstream.messages.errors import ErrorAnswer
from millstream.messages.streams import PostAnswer, PostRefused
from millstream.retry_pause import pause, retry_after

T = TypeVar("T")
P = TypeVar("P", bound=PostAnswer)
_DOTS = {".": "%2E", "..": "%2E%2E"}
NOT_NOW = frozenset({408, 429, 502, 503, 504})
"""Temporary statuses; 502 and 504 come from a proxy."""
ELSEWHERE = 421
"""The status of a server that has only some shards, and not the requested one."""
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Wire:
    """The addresses of servers and the connections to them. Threads may share one."""

    def __init__(
        self, url: str | Sequence[str], token: str | None, timeout: float, retries: int | None
    ) -> None:
        self._servers = [_connections(address, token, timeout) for address in addresses_in(url)]
        self._at = 0
        """The index of the current server."""
        self._asked = threading.local()
        """The server that this thread used last."""
        self._timeout = timeout
        self._retries = retries
        self.reached = False
        """True if a connection was ever made. If not, nothing that was sent can have arrived."""

    @property
    def url(self) -> str:
        """The address of the current server."""
        return _address(self._servers[self._at])

    @property
    def _urls(self) -> str:
        return ", ".join(map(_address, self._servers))

    def close(self) -> None:
        for server in self._servers:
            server.close()

    def _server(self) -> httpx.Client:
        self._asked.at = self._at
        return self._servers[self._at]

    def _go_on(self) -> None:
        """Switches to the next server, unless another thread has done so already."""
        used = getattr(self._asked, "at", self._at)
        if self._at == used:
            self._at = (used + 1) % len(self._servers)

    def ask(
        self,
        path: str,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        missing: bool = False,
    ) -> httpx.Response:
        """Makes a GET request. With `missing`, a 404 is returned and not raised."""
        response = self._tried("GET", target(path, query), headers=headers)
        return response if missing and response.status_code == 404 else self._checked(response)

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
        """Makes a POST request, with an idempotency key so that it can be retried. Returns any
        answer."""
        assert "Idempotency-Key" in headers, "without one it may count twice"
        return self._tried("POST", path, body, headers)

    def change(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Makes a request that changes no more if it is made twice, with retries. Returns any
        answer."""
        return self._tried(method, path, body, headers)

    @contextmanager
    def open(
        self,
        path: str,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        silence: float | None = None,
    ) -> Iterator[httpx.Response]:
        """Makes one GET request and streams the answer. `silence` is the longest time without a
        byte.

        Connection errors are httpx's, here and during reading: pass them to `wait`.
        """
        timeout = httpx.Timeout(self._timeout, read=silence or self._timeout)
        server = self._server()
        request = server.build_request(
            "GET", target(path, query), headers=dict(headers or {}), timeout=timeout
        )
        response = server.send(request, stream=True)
        try:
            self.reached = True
            if response.status_code != 200:
                response.read()
            yield self._checked(response)
        finally:
            response.close()

    def wait(self, tries: int, error: Exception, asked: float | None = None) -> None:
        """Waits before the next try, after `tries` in a row that ended in `error`.

        Raises ClientError instead if there were enough tries, or if `error` is no reason to retry.
        """
        unconnected = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        self.reached = self.reached or not unconnected
        rounds, left = divmod(tries, len(self._servers))
        if isinstance(error, ClientError):
            elsewhere = error.status == ELSEWHERE and left
            if (error.status not in NOT_NOW and not elsewhere) or self._enough(rounds, left):
                raise error
        else:
            unreached = not left and not self.reached
            broken = isinstance(error, httpx.TransportError)
            if unreached or not broken or self._enough(rounds, left):
                raise self._silent(error) from error
        self._go_on()
        if not left:
            time.sleep(pause(rounds, asked))

    def decoded(self, content: bytes | str, kind: type[T]) -> T:
        """Decodes JSON from the server."""
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError as error:
            raise self.strange(error) from error

    def posted(self, response: httpx.Response, kind: type[P]) -> P | PostRefused:
        """Decodes the answer to records. Raises ClientError if it is not about the records."""
        if response.status_code == 200:
            return self.decoded(response.content, kind)
        if response.status_code == 422:
            with suppress(msgspec.DecodeError):
                return msgspec.json.decode(response.content, type=PostRefused)
        raise self.refusal(response)

    def strange(self, why: object, status: int | None = None) -> ClientError:
        return ClientError(
            f"{self.url} does not answer as a Millstream server does ({why}); is it one?", status
        )

    def _tried(
        self,
        method: str,
        where: str,
        body: bytes | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Returns the answer of the first try that got one. It may be a refusal."""
        tries = 0
        while True:
            tries += 1
            server = self._server()
            try:
                response = server.request(method, where, content=body, headers=dict(headers or {}))
            except httpx.HTTPError as error:
                timed_out = method == "GET" and isinstance(error, httpx.ReadTimeout)
                if timed_out and tries >= len(self._servers):
                    raise self._silent(error) from error  # it has waited for the whole timeout
                self.wait(tries, error)
                continue
            self.reached = True
            if response.status_code == ELSEWHERE and tries < len(self._servers):
                self._go_on()
                continue
            if response.status_code not in NOT_NOW:
                return response
            seconds = retry_after(response.headers.get("Retry-After"))
            self.wait(tries, self.refusal(response), seconds)

    def _enough(self, rounds: int, left: int) -> bool:
        """True if there were enough tries: `rounds` whole rounds and `left` tries of the next."""
        return not left and self._retries is not None and rounds > self._retries

    def _checked(self, response: httpx.Response) -> httpx.Response:
        if response.status_code != 200:
            raise self.refusal(response)
        return response

    def refusal(self, response: httpx.Response) -> ClientError:
        """Returns the server's message as an error."""
        status = response.status_code
        try:
            return ClientError(
                msgspec.json.decode(response.content, type=ErrorAnswer).error, status
            )
        except msgspec.DecodeError:
            return self.strange(f"status {status}", status)

    def _silent(self, error: Exception) -> ClientError:
        if isinstance(error, httpx.ConnectError):
            if "refused" not in str(error).lower():
                return ClientError(f"cannot connect to {self.url}: {error}")
            return ClientError(
                f"no server answers at {self._urls}; start one with millstream run or "
                "millstream serve"
            )
        if isinstance(error, httpx.TimeoutException):
            return ClientError(
                f"the server at {self.url} did not answer within {self._timeout:g} seconds"
            )
        return ClientError(
            f"the connection to {self.url} broke: {str(error) or type(error).__name__}"
        )


def addresses_in(url: str | Sequence[str]) -> list[str]:
    """Parses the addresses of servers: a list, or text separated by commas.

    >>> addresses_in("http://a:8470, http://b:8470")
    ['http://a:8470', 'http://b:8470']
    """
    entries = url.split(",") if isinstance(url, str) else [*url]
    addresses = [address.strip() for address in entries]
    if not addresses or not all(addresses):
        raise ClientError(f"the server's url must not be empty; got {url!r}")
    return addresses


def _address(server: httpx.Client) -> str:
    return str(server.base_url.copy_with(userinfo=b"")).rstrip("/")


def path_of(*parts: str) -> str:
    """Builds a path. Slashes within a part are quoted, and a part of dots does not lead upwards."""
    quoted = (quote(part, safe="") for part in parts)
    return "".join(f"/{_DOTS.get(part, part)}" for part in quoted)


def target(path: str, query: Mapping[str, Any] | None) -> str:
    """Adds a query to a path, without parameters that are None. A blank is written as %20, which is
    unambiguous."""
    parameters = {name: value for name, value in (query or {}).items() if value is not None}
    try:
        encoded = urlencode(parameters, quote_via=quote, safe="")
    except UnicodeEncodeError as error:
        raise ClientError(f"a key must be text that UTF-8 can carry: {error}") from None
    return f"{path}?{encoded}" if encoded else path


def _connections(url: str, token: str | None, timeout: float) -> httpx.Client:
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ClientError(f"the server's url is not valid: {error}; got {url!r}") from None
    if base.scheme not in ("http", "https") or not base.host:
        raise ClientError(f"the server's url must begin with http:// or https://; got {url!r}")
    if token is not None and not re.fullmatch("[!-~]+", token):
        raise ClientError("the token must be printable ASCII without spaces; it is not shown here")
    local = base.scheme == "http" and base.host in ("127.0.0.1", "localhost", "::1")
    return httpx.Client(
        base_url=base,
        headers={"Authorization": f"Bearer {token}"} if token else {},
        timeout=timeout,
        limits=httpx.Limits(max_connections=None),  # each watch and tail holds one
        verify=not local,  # no certificates are needed, and they take a while to load
        mounts={f"all://{host}": None for host in LOOPBACK},  # no proxy for these
    )
