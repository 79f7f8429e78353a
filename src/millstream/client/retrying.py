"""When to try again, and how long to wait before: decisions only.

Every request of the client may be made twice: reads change nothing, and each batch of events has an
idempotency key, which the server counts once. So a broken connection is tried again, and so is an
answer that says "not now". The waits double from a tenth of a second up to five seconds; a server
that says how long to wait is heeded. The tries in a row are bounded, and an answer ends the row.
"""

from __future__ import annotations

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
LONGEST_HEEDED = 60.0
"""The longest that a server may tell us to wait."""
NOT_NOW = frozenset({408, 429, 502, 503, 504})
"""Statuses that may be another a moment later; 502 and 504 are a proxy's."""


def pause(tries: int, asked: float | None = None) -> float:
    """Seconds to wait after so many tries in a row, when the server asked for `asked`.

    >>> [pause(tries) for tries in (1, 2, 3, 10)]
    [0.1, 0.2, 0.4, 5.0]
    >>> pause(1, 3.0), pause(10, 0.0), pause(1, 9999.0)
    (3.0, 5.0, 60.0)
    """
    own = min(FIRST_PAUSE * 2.0 ** min(tries - 1, 16), LONGEST_PAUSE)
    return own if asked is None else max(own, min(asked, LONGEST_HEEDED))


def retry_after(header: str | None) -> float | None:
    """The seconds of a Retry-After header; a date, which needs a clock to mean anything, is none.

    >>> retry_after("2"), retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), retry_after(None)
    (2.0, None, None)
    """
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
