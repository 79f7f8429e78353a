"""What every route answers with: JSON, or a refusal that becomes JSON.

A route returns an answer, or raises `Refusal` from anywhere beneath it: the application turns that
into `{"error": sentence, "status": n}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

JSON = b"application/json"
NDJSON = "application/x-ndjson"

_encode = msgspec.json.Encoder().encode
_TYPE = (b"content-type", JSON)


class Refusal(Exception):
    """A request that is not carried out: its status, and a sentence that says what to do.

    `more` are further fields of the answer, `headers` of its head.
    """

    def __init__(
        self,
        status: int,
        sentence: str,
        *,
        headers: Mapping[str, str] | None = None,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(sentence)
        self.status = status
        self.sentence = sentence
        self.headers = headers or {}
        self.more = more or {}

    def answer(self) -> Response:
        found = {**self.more, "error": self.sentence, "status": self.status}
        return json_answer(found, self.status, self.headers)


class Written(Response):
    """An answer whose JSON is already written: half the cost of any other."""

    def __init__(self, body: bytes, status: int = 200) -> None:
        self.status_code = status
        self.body = body
        self.raw_headers = [_TYPE, (b"content-length", b"%d" % len(body))]
        self.background = None


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Written:
    """Any value that JSON can carry, as an answer."""
    answer = Written(_encode(value), status)
    for name, text in (headers or {}).items():
        answer.raw_headers.append((name.lower().encode("latin-1"), text.encode("latin-1")))
    return answer
