"""Parses times that are text: ISO 8601 or a `strptime` format; adds a missing zone or year.

*The zone.* Text without an offset is in the declared zone, by default UTC. If a change of clocks
repeats an hour, the first one is meant. `%Z` takes UTC and GMT only, which are then the zone: other
names are no offsets, and `strptime` drops them all.

*The year.* A format without a year, such as syslog's, takes the last year in which the time is at
most `AHEAD` after the clock: so the last of December, read in January, is in the year before. Of a
log that is older than a year the last day must be known (`until`): it takes the place of the clock.
A 29th of February that is in no year before it is refused: its log is older, or ended earlier.

The same texts come again and again (all those of one second, for example), so parsed times are
cached.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from millstream.errors import DefinitionError, InputError
from millstream.model.duration import UNITS, instant

AHEAD = UNITS["d"]
"""The most microseconds that a time may be after the clock: clocks and zones differ by less."""
KEPT = 20_000
"""The most texts in the cache."""
_YEAR = re.compile(r"%[YyGcxs]")
_NAMED_ZONE = re.compile(r"(?<!%)((?:%%)*)%Z")
_NAMES_OF_UTC = ("UTC", "GMT")
_LONGEST_YEAR = 366 * UNITS["d"]
_LEAP_YEAR = 2024

_SAMPLE = datetime(2024, 11, 23, 16, 5, 6, tzinfo=UTC)
"""A time that comes back from its text only if the format says everything."""

TimeOfText = Callable[[Any, int], int]
"""Takes a text and the clock; returns microseconds, or raises InputError."""


def check_time_text(
    time_format: str | None, zone: str | None, where: str, until: str | None = None
) -> None:
    """DefinitionError if the time format, the zone or the last day is invalid."""
    if zone is not None:
        _zone(zone, where)
    if until is not None:
        _end_of_day(until, UTC, where)
        if not isinstance(time_format, str) or _YEAR.search(time_format):
            raise DefinitionError(
                f"{where}: until must be left out unless there is a time_format without a year; "
                f"got {until!r} and {time_format!r}"
            )
    if time_format is None:
        return
    if not isinstance(time_format, str):
        raise DefinitionError(f"{where}: time_format must be text; got {time_format!r}")
    try:
        written = _SAMPLE.strftime(time_format)
        parsed = datetime.strptime(written, time_format)
    except ValueError as error:
        raise DefinitionError(
            f"{where}: time_format must have the directives of strptime, as in "
            f"'%d/%b/%Y:%H:%M:%S %z'; got {time_format!r}: {error}"
        ) from None
    has_day = (parsed.month, parsed.day) == (_SAMPLE.month, _SAMPLE.day)
    if not has_day and (parsed.hour or parsed.day == _SAMPLE.day):
        raise DefinitionError(
            f"{where}: time_format must have the month and the day, as in "
            f"'%d/%b/%Y:%H:%M:%S %z': else the times of different days are equal; "
            f"got {time_format!r}"
        )
    if parsed.hour not in (0, _SAMPLE.hour):
        raise DefinitionError(
            f"{where}: time_format must have %p beside %I, the hour of half a day; "
            f"got {time_format!r}"
        )


def time_reader(
    time_format: str | None,
    zone: str | None,
    where: str,
    *,
    or_number: bool = False,
    until: str | None = None,
) -> TimeOfText:
    """Returns a function that parses times written as text. `or_number`: the caller takes numbers
    too, which the errors say. `until`: the last day of times without a year; None: the clock's.

    >>> read = time_reader("%b %d %H:%M", "Europe/Berlin", "here")
    >>> clock = instant(datetime(2024, 1, 2))
    >>> read("Dec 31 23:00", clock) - instant(datetime(2023, 12, 31, 22))
    0
    """
    within = UTC if zone is None else _zone(zone, where)
    if time_format is None:
        expected = "ISO-8601 text or a number" if or_number else "ISO-8601 text"
        return lambda text, clock: _iso(text, within, f"{where}: ts must be {expected}")
    whole, point = _without_fraction(time_format)
    forms, hint = [(whole, within)], ""
    if _NAMED_ZONE.search(time_format):
        forms = [(_NAMED_ZONE.sub(rf"\g<1>{name}", whole), UTC) for name in _NAMES_OF_UTC]
        hint = ", where %Z takes UTC and GMT only"

    yearless = _YEAR.search(time_format) is None
    last = None if until is None else _end_of_day(until, within, where)

    def parse(text: Any, value: Any, clock: int) -> int:
        latest = clock + AHEAD if last is None else last
        for form, zone_of_form in forms:
            try:
                return _by_format(text, form, zone_of_form, latest)
            except (TypeError, ValueError):
                continue
        if yearless and any(_is_leap_day(text, form) for form, _ in forms):
            day = datetime.fromtimestamp(latest / 1e6, UTC).date()
            raise InputError(
                f"{where}: ts must be within the year before {day}, since its format has no year; "
                f"got {value!r}; if the log ended earlier, say its last day, as in "
                "until='2024-03-31'"
            )
        raise InputError(
            f"{where}: ts must be text of the form {time_format!r}{hint}; got {value!r}"
        )

    return _TimeCache(parse, point, changing=yearless and last is None).read


_WHOLE = ""
"""The text is parsed whole: no fraction is split off."""


class _TimeCache:
    """Caches the times of texts, without the fraction of a second after `point`."""

    def __init__(
        self, parse: Callable[[Any, Any, int], int], point: str, *, changing: bool
    ) -> None:
        """`parse` takes the text without its fraction, the whole value and the clock. `changing`:
        the meaning of a text depends on the clock, so it is cached for a day."""
        self._parse, self._point, self._changing = parse, point, changing
        self._known: dict[str, int] = {}
        self._since = 0

    def read(self, value: Any, clock: int) -> int:
        if type(value) is not str:
            return self._parse(None, value, clock)
        if self._changing and not 0 <= clock - self._since < AHEAD:
            self._known.clear()
            self._since = clock
        text, fraction = value, ""
        if self._point:
            text, _, fraction = value.rpartition(self._point)
            if not (fraction.isdecimal() and len(fraction) <= 6):
                return self._parse(None, value, clock)
        ts = self._known.get(text)
        if ts is None:
            ts = self._parse(text, value, clock)
            if len(self._known) >= KEPT:
                self._known.clear()
            self._known[text] = ts
        return ts + int(fraction.ljust(6, "0")) if fraction else ts


def _without_fraction(time_format: str) -> tuple[str, str]:
    """Splits a trailing fraction of a second off a format; returns the rest and its separator."""
    if time_format.endswith("%f") and time_format[-3:-2] in tuple(".,:"):
        return time_format[:-3], time_format[-3]
    return time_format, _WHOLE


def _by_format(text: str, form: str, zone: tzinfo, latest: int) -> int:
    if _YEAR.search(form):
        return _in_zone(datetime.strptime(text, form), zone)
    year = datetime.fromtimestamp(latest / 1e6, UTC).year
    error = ValueError("no such day")
    for candidate in (year + 1, year, year - 1):  # in the zone it may be next year
        try:
            ts = _in_zone(_in_year(text, form, candidate), zone)
        except ValueError as no_such_day:
            error = no_such_day
            continue
        if latest - _LONGEST_YEAR < ts <= latest:
            return ts
    raise error


def _in_year(text: str, form: str, year: int) -> datetime:
    return datetime.strptime(f"{year} {text}", f"%Y {form}")


def _is_leap_day(text: Any, form: str) -> bool:
    """True if the text is of a 29th of February."""
    try:
        day = _in_year(text, form, _LEAP_YEAR)
    except (TypeError, ValueError):
        return False
    return (day.month, day.day) == (2, 29)


def _end_of_day(day: object, zone: tzinfo, where: str) -> int:
    """Returns the last microsecond of a day."""
    try:
        following = date.fromisoformat(str(day)) + timedelta(days=1)
    except (ValueError, OverflowError):
        raise DefinitionError(
            f"{where}: until must be a day, as in '2024-03-31'; got {day!r}"
        ) from None
    return _in_zone(datetime.combine(following, datetime.min.time()), zone) - 1


def _iso(text: Any, zone: tzinfo, error: str) -> int:
    try:
        return _in_zone(datetime.fromisoformat(text), zone)
    except (TypeError, ValueError):
        raise InputError(f"{error}; got {text!r}") from None


def _in_zone(at: datetime, zone: tzinfo) -> int:
    return instant(at if at.tzinfo is not None else at.replace(tzinfo=zone))


def _zone(name: object, where: str) -> tzinfo:
    try:
        return ZoneInfo(str(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise DefinitionError(
            f"{where}: zone must be a time zone of this machine, such as 'Europe/Berlin' or 'UTC'; "
            f"got {name!r}"
        ) from None
