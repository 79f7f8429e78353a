"""Decides how long to wait before a retry: of the client, agents, actions, sinks, lookups, places.

Pure functions. The waits double from a tenth of a second up to five seconds, unless a caller has
other bounds. If a server says how long to wait, its clients do.
"""

from __future__ import annotations

FIRST_PAUSE = 0.1
LONGEST_PAUSE = 5.0
LONGEST_HEEDED = 60.0
"""The longest wait that a server may request."""


def doubled(tries: int, first: float = FIRST_PAUSE, longest: float = LONGEST_PAUSE) -> float:
    """Seconds to wait after `tries` failures in a row.

    >>> [doubled(tries) for tries in (1, 2, 3, 10)]
    [0.1, 0.2, 0.4, 5.0]
    """
    return min(first * 2.0 ** min(tries - 1, 16), longest)


def pause(tries: int, asked: float | None = None) -> float:
    """Seconds to wait after `tries` failures in a row, when the server requested `asked`.

    >>> pause(1), pause(1, 3.0), pause(10, 0.0), pause(1, 9999.0)
    (0.1, 3.0, 5.0, 60.0)
    """
    own_pause = doubled(tries)
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
