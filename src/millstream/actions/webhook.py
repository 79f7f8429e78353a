"""Carrying out by HTTP: a POST of JSON, with a key that makes a repeat harmless.

The status is the answer: once a 2xx is there, the record is carried out, even if the connection
breaks while the rest of the answer comes. Redirections are not followed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import httpx

from millstream.actions.asked import Asked
from millstream.actions.attempt import Outcome, answer_means
from millstream.errors import DefinitionError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SAID, READ = 200, 64 * 1024
"""Characters of an answer that an error shows; bytes of one that are waited for."""


class Webhook:
    """The receiver at a URL. It belongs to one thread."""

    group = 1

    def __init__(self, url: str, timeout: float, clock: Callable[[], float] = time.time) -> None:
        try:
            self._url = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise DefinitionError(f"webhook:{url} is not an address: {error}") from None
        self._clock = clock
        self._timeout = timeout
        self._client = httpx.Client(
            timeout=timeout,
            headers={"User-Agent": "millstream"},
            verify=url.startswith("https:"),  # else none are needed, and they take time to load
            mounts={f"all://{host}": None for host in LOOPBACK},  # a proxy is not asked for these
        )

    def carry(self, asked: Sequence[Asked]) -> Outcome:
        (one,) = asked
        headers = {"Content-Type": "application/json", "Idempotency-Key": one.id}
        try:
            with self._client.stream(
                "POST", self._url, content=one.json(), headers=headers
            ) as answer:
                said = self._said(answer)
                header = answer.headers.get("Retry-After")
                return answer_means(answer.status_code, said, header, self._clock())
        except httpx.HTTPError as error:
            return Outcome("again", f"{type(error).__name__}: {error}".rstrip(": "))

    def _said(self, answer: httpx.Response) -> str:
        """The beginning of what the answer says; what is left over is not waited for."""
        body, deadline = b"", time.monotonic() + self._timeout
        try:
            for piece in answer.iter_raw():
                body += piece
                if len(body) > READ or time.monotonic() > deadline:
                    break
        except httpx.HTTPError:
            pass  # the status has been received
        text = body[: 4 * SAID].decode(errors="replace")
        said = " ".join(text.split()) or answer.reason_phrase
        return said if len(said) <= SAID else f"{said[: SAID - 3]}..."

    def close(self) -> None:
        self._client.close()
