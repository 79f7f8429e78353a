"""Durations and instants as whole microseconds: the only unit of time inside Millstream."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from millstream.errors import DefinitionError

MICROSECOND = 1
MILLISECOND = 1_000
SECOND = 1_000_000
UNITS = {
    "us": MICROSECOND,
    "ms": MILLISECOND,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3_600 * SECOND,
    "d": 86_400 * SECOND,
    "w": 604_800 * SECOND,
}
TIME_LIMIT = 9_200_000_000_000_000_000
"""Times lie strictly between minus this and this: 64 bits, with room for what is added to them."""
_PART = re.compile(r"(\d+(?:\.\d+)?)(us|ms|s|m|h|d|w)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Duration = str | timedelta
"""A duration as users write it: '90d', '1h30m', '250ms' or a timedelta."""


def microseconds(duration: Duration, where: str) -> int:
    """Returns a duration in microseconds; DefinitionError if it is invalid or negative.

    >>> microseconds("1h30m", "here")
    5400000000
    >>> microseconds("0.5s", "here")
    500000
    """
    if isinstance(duration, str) and (known := _parsed(duration)) is not None:
        return known  # a function may set a timer for each of its events
    if isinstance(duration, timedelta):
        total = duration // timedelta(microseconds=1)
    elif isinstance(duration, str) and duration[:1] == "-" and _PART.sub("", duration) == "-":
        total = -1
    else:
        raise DefinitionError(
            f"{where} must be a duration such as '90d', '1h30m' or '250ms' "
            f"(units {', '.join(UNITS)}) or a timedelta; got {duration!r}"
        )
    if total < 0:
        raise DefinitionError(f"{where} must not be negative; got {duration!r}")
    return total


@lru_cache(maxsize=1024)
def _parsed(duration: str) -> int | None:
    if not duration or _PART.sub("", duration) != "":
        return None
    return round(sum(float(n) * UNITS[unit] for n, unit in _PART.findall(duration)))


def shown_duration(total: int) -> str:
    """Formats microseconds as a user would write the duration.

    >>> shown_duration(5_400_000_000), shown_duration(250_000), shown_duration(0)
    ('1h30m', '250ms', '0s')
    """
    words = ""
    for unit in ("d", "h", "m", "s", "ms", "us"):
        count, total = divmod(total, UNITS[unit])
        words += f"{count}{unit}" if count else ""
    return words or "0s"


def instant(at: int | datetime) -> int:
    """Returns microseconds since the epoch; a datetime without a zone is taken as UTC."""
    if isinstance(at, datetime):
        aware = at if at.tzinfo else at.replace(tzinfo=UTC)
        return (aware - _EPOCH) // timedelta(microseconds=1)
    return at
