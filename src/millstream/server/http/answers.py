"""The answers of routes: JSON, or a refusal that becomes JSON.

A route returns an answer, or `Refusal` is raised anywhere below it: the application turns that into
an `ErrorAnswer`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from millstream.messages.errors import ErrorAnswer

JSON = b"application/json"
NDJSON = "application/x-ndjson"

_encode = msgspec.json.Encoder().encode
_TYPE = (b"content-type", JSON)


class Refusal(Exception):
    """Refuses a request, with a status code and a sentence that says what to do.

    `message` is the answer's body, if it says more than an `ErrorAnswer`; `headers` are further
    headers.
    """

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        headers: Mapping[str, str] | None = None,
        message: msgspec.Struct | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers or {}
        self.message = message or ErrorAnswer(sentence, status)

    def answer(self) -> Response:
        return json_answer(self.message, self.status, self.headers)


class Written(Response):
    """An answer whose JSON is already encoded: half the cost of any other."""

    def __init__(
        self, body: bytes, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        self.status_code = status
        self.body = body
        self.raw_headers = [_TYPE, (b"content-length", b"%d" % len(body))]
        self.background = None
        for name, text in headers.items() if headers else ():
            self.raw_headers.append((name.lower().encode("latin-1"), text.encode("latin-1")))


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Written:
    """Returns an answer with any value that JSON can carry."""
    return Written(_encode(value), status, headers)
