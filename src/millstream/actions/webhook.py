"""Carries out events by HTTP: a POST of JSON, with an idempotency key that makes a repeat harmless.

The status decides. Once a 2xx has arrived, the record is carried out, even if the connection breaks
before the rest of the answer. Redirections are not followed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import httpx

from millstream.actions.action_events import ActionEvent
from millstream.actions.attempt import AttemptOutcome, answer_means
from millstream.errors import DefinitionError

LOOPBACK = ("127.0.0.1", "localhost", "[::1]")
SAID, READ = 200, 64 * 1024
"""The number of characters of an answer that an error shows, and of bytes that are read."""


class Webhook:
    """The receiver at a URL. Belongs to one thread."""

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
            verify=url.startswith("https:"),  # certificates load slowly, and only https needs them
            mounts={f"all://{host}": None for host in LOOPBACK},  # no proxy for these
        )

    def carry(self, asked: Sequence[ActionEvent]) -> AttemptOutcome:
        (event,) = asked
        headers = {"Content-Type": "application/json", "Idempotency-Key": event.id}
        try:
            with self._client.stream(
                "POST", self._url, content=event.json(), headers=headers
            ) as answer:
                message = self._said(answer)
                header = answer.headers.get("Retry-After")
                return answer_means(answer.status_code, message, header, self._clock())
        except httpx.HTTPError as error:
            return AttemptOutcome("again", f"{type(error).__name__}: {error}".rstrip(": "))

    def _said(self, answer: httpx.Response) -> str:
        """Returns the beginning of the answer's text, without waiting for the rest."""
        body, deadline = b"", time.monotonic() + self._timeout
        try:
            for piece in answer.iter_raw():
                body += piece
                if len(body) > READ or time.monotonic() > deadline:
                    break
        except httpx.HTTPError:
            pass  # the status has been received
        text = body[: 4 * SAID].decode(errors="replace")
        message = " ".join(text.split()) or answer.reason_phrase
        return message if len(message) <= SAID else f"{message[: SAID - 3]}..."

    def close(self) -> None:
        self._client.close()
