"""One server over HTTP: asks, tries again, and words what goes wrong.

`ask` takes a whole answer and `open` one that is read as it comes. Both raise ClientError with the
server's own sentence if it refuses. A server that was never reached is not waited for: the address
is then more likely wrong than the server away.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import httpx
import msgspec

from millstream.client.retrying import NOT_NOW, pause, retry_after
from millstream.errors import ClientError

T = TypeVar("T")
_DOTS = {".": "%2E", "..": "%2E%2E"}
LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Wire:
    """A server's address and the connections to it. Threads may share one."""

    def __init__(self, url: str, token: str | None, timeout: float, retries: int | None) -> None:
        self._http = _connections(url, token, timeout)
        self.url = str(self._http.base_url.copy_with(userinfo=b"")).rstrip("/")
        self._timeout = timeout
        self._retries = retries
        self.reached = False
        """Whether a connection was made, ever: if not, nothing that was sent can have arrived."""

    def close(self) -> None:
        self._http.close()

    def ask(
        self, path: str, query: Mapping[str, Any] | None = None, *, missing: bool = False
    ) -> httpx.Response:
        """A GET; also a 404 is an answer if what is asked for may be `missing`."""
        response = self._tried(self._http.build_request("GET", target(path, query)))
        return response if missing and response.status_code == 404 else self._checked(response)

    def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> httpx.Response:
        """A POST that may be made twice, whatever it is answered with."""
        request = self._http.build_request("POST", path, content=body, headers=dict(headers))
        return self._tried(request)

    def change(self, method: str, path: str) -> httpx.Response:
        """A PUT or a DELETE without a body, made again if need be, whatever it is answered with."""
        return self._tried(self._http.build_request(method, path))

    @contextmanager
    def open(
        self,
        path: str,
        query: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        silence: float | None = None,
    ) -> Iterator[httpx.Response]:
        """One GET whose answer is read as it comes; `silence` is how long no byte may come.

        Errors of the connection are httpx's, here and while it is read: give them to `wait`.
        """
        timeout = httpx.Timeout(self._timeout, read=silence or self._timeout)
        request = self._http.build_request(
            "GET", target(path, query), headers=dict(headers or {}), timeout=timeout
        )
        response = self._http.send(request, stream=True)
        try:
            self.reached = True
            if response.status_code != 200:
                response.read()
            yield self._checked(response)
        finally:
            response.close()

    def wait(self, tries: int, error: Exception, asked: float | None = None) -> None:
        """Wait before the next try, after so many in a row that ended in `error`.

        Raises ClientError instead once there were enough, or if `error` is no reason to try again.
        """
        unconnected = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout)
        self.reached = self.reached or not unconnected
        if isinstance(error, ClientError):
            if error.status not in NOT_NOW or self._enough(tries):
                raise error
        elif not self.reached or self._enough(tries) or not isinstance(error, httpx.TransportError):
            raise self._silent(error) from error
        time.sleep(pause(tries, asked))

    def decoded(self, content: bytes | str, kind: type[T]) -> T:
        """JSON that the server sent."""
        try:
            return msgspec.json.decode(content, type=kind)
        except msgspec.DecodeError as error:
            raise self.strange(error) from error

    def strange(self, why: object, status: int | None = None) -> ClientError:
        return ClientError(
            f"{self.url} does not answer as a Millstream server does ({why}); is it one?", status
        )

    def _tried(self, request: httpx.Request) -> httpx.Response:
        """The answer, which may be a refusal; a later try's if one before failed."""
        tries = 0
        while True:
            tries += 1
            try:
                response = self._http.send(request)
            except httpx.HTTPError as error:
                if request.method == "GET" and isinstance(error, httpx.ReadTimeout):
                    raise self._silent(error) from error  # it waited as long as it was told to
                self.wait(tries, error)
                continue
            self.reached = True
            if response.status_code not in NOT_NOW:
                return response
            asked = retry_after(response.headers.get("Retry-After"))
            self.wait(tries, self.refusal(response), asked)

    def _enough(self, tries: int) -> bool:
        return self._retries is not None and tries > self._retries

    def _checked(self, response: httpx.Response) -> httpx.Response:
        if response.status_code != 200:
            raise self.refusal(response)
        return response

    def refusal(self, response: httpx.Response) -> ClientError:
        """What the server said, as an error."""
        status = response.status_code
        try:
            return ClientError(msgspec.json.decode(response.content, type=_Error).error, status)
        except msgspec.DecodeError:
            return self.strange(f"status {status}", status)

    def _silent(self, error: Exception) -> ClientError:
        if isinstance(error, httpx.ConnectError):
            if "refused" not in str(error).lower():
                return ClientError(f"cannot connect to {self.url}: {error}")
            return ClientError(
                f"no server answers at {self.url}; start one with millstream run or "
                "millstream serve"
            )
        if isinstance(error, httpx.TimeoutException):
            return ClientError(
                f"the server at {self.url} did not answer within {self._timeout:g} seconds"
            )
        return ClientError(
            f"the connection to {self.url} broke: {str(error) or type(error).__name__}"
        )


def path_of(*parts: str) -> str:
    """A path; a part's own slashes are no slashes of it, nor do its dots lead up."""
    quoted = (quote(part, safe="") for part in parts)
    return "".join(f"/{_DOTS.get(part, part)}" for part in quoted)


def target(path: str, query: Mapping[str, Any] | None) -> str:
    """A path with a query; what is None is left out. A blank is %20, which means one thing only."""
    given = {name: value for name, value in (query or {}).items() if value is not None}
    try:
        words = urlencode(given, quote_via=quote, safe="")
    except UnicodeEncodeError as error:
        raise ClientError(f"a key must be text that UTF-8 can carry: {error}") from None
    return f"{path}?{words}" if words else path


def _connections(url: str, token: str | None, timeout: float) -> httpx.Client:
    try:
        base = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ClientError(f"the server's url is not one: {error}; got {url!r}") from None
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
        verify=not local,  # no certificates are needed then, and they take a while to load
        mounts={f"all://{host}": None for host in LOOPBACK},  # a proxy is not asked for these
    )


class _Error(msgspec.Struct):
    error: str
