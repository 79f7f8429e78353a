"""The answer to a request that was refused."""

from __future__ import annotations

import msgspec


class ErrorAnswer(msgspec.Struct, frozen=True):
    """A request was refused: `error` says what is wrong and what to do."""

    error: str
    status: int
    """The HTTP status code."""
