"""Decides when to retry, and how long to wait before. Pure functions.

Every request of the client can be repeated: reads change nothing, and each batch of events has an
idempotency key, which the server counts once. So the client retries after a broken connection, and
after an answer that means "not now". The waits double from a tenth of a second up to five seconds.
If the server says how long to wait, the client does. The number of tries in a row is bounded; an
answer ends the row.
"""

from __future__ import annotations

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
LONGEST_HEEDED = 60.0
"""The longest wait that a server may request."""
NOT_NOW = frozenset({408, 429, 502, 503, 504})
"""Temporary statuses; 502 and 504 come from a proxy."""


def pause(tries: int, asked: float | None = None) -> float:
    """Seconds to wait after `tries` failures in a row, when the server requested `asked`.

    >>> [pause(tries) for tries in (1, 2, 3, 10)]
    [0.1, 0.2, 0.4, 5.0]
    >>> pause(1, 3.0), pause(10, 0.0), pause(1, 9999.0)
    (3.0, 5.0, 60.0)
    """
    own_pause = min(FIRST_PAUSE * 2.0 ** min(tries - 1, 16), LONGEST_PAUSE)
    return own_pause if asked is None else max(own_pause, min(asked, LONGEST_HEEDED))


def retry_after(header: str | None) -> float | None:
    """The seconds of a Retry-After header. None for a date, which would need a clock.

    >>> retry_after("2"), retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), retry_after(None)
    (2.0, None, None)
    """
    try:
        seconds = float(header or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
