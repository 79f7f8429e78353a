"""Sources: how a record from outside becomes an event's key and time."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from millstream.errors import DefinitionError, InputError
from millstream.model.duration import (
    SECOND,
    TIME_LIMIT,
    UNITS,
    Duration,
    instant,
    microseconds,
    shown_duration,
)
from millstream.model.line_records import check_pattern
from millstream.model.path import (
    LONGEST_KEY,
    PLAIN_KEY,
    guarded,
    is_long_key,
    key_text,
    picker,
    shortened,
)
from millstream.model.text_form import PLAIN_TEXT, TextForm
from millstream.model.time_text import check_time_text, time_reader

KeyOf = str | Callable[[Any], Any] | None
TimeOf = str | Callable[[Any], Any] | None
TIME_UNITS = ("s", "ms", "us", "ns")
_UNIT_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_NEAR = 50 * 365 * UNITS["d"]
"""If another unit brings a number within this distance of the clock, that unit is likely right."""


@dataclass(frozen=True, slots=True)
class Source:
    """A stream that comes from outside.

    `key` and `ts` are a field, a dotted path or a function of the record. Without `key` the key is
    the empty text; without `ts` the time is the batch's clock. A time that is text is ISO 8601 or
    has the `time_format`; if the text names no zone, it is in `zone`, and if it names no year, not
    after the day `until` (`time_text`). A time more
    than `ahead` after the clock is taken for a mistake, and its record becomes a dead letter: it
    would make all later records late. So does a record in a file whose time is more than `jump`
    after those of the records before and after it (`time_jumps`). `lateness` and `idle` shape the
    horizon when the application runs in event-time order. `text` describes the layout of records
    that are text.
    """

    name: str
    key: KeyOf = None
    ts: TimeOf = None
    unit: str | None = None
    lateness: int = 0
    idle: int = 10 * SECOND
    time_format: str | None = None
    zone: str | None = None
    ahead: int | None = None
    jump: int | None = None
    text: TextForm = PLAIN_TEXT
    until: str | None = None

    def extractor(self, where: str | None = None) -> Callable[[Any, int], tuple[int, str]]:
        """Returns a function of (record, clock) that gives (ts, key), or raises InputError. `where`
        names the source in errors; None: by its name."""
        where = where or f"source {self.name!r}"
        key_of, ts_of = _picker(self.key, f"{where}: key"), _picker(self.ts, f"{where}: ts")
        scale = UNITS.get(self.unit or "")
        nanoseconds = self.unit == "ns"
        numbers = self.unit is not None
        of_text = time_reader(
            self.time_format, self.zone, where, or_number=numbers, until=self.until
        )

        def time_of(value: Any, clock: int) -> int:
            if isinstance(value, str) or (self.time_format is not None and not numbers):
                number = _number(value) if numbers else None
                if number is None:
                    return of_text(value, clock)
                value = number  # a CSV file has only text
            if isinstance(value, datetime):
                return instant(value)
            if isinstance(value, bool) or not isinstance(value, int | float):
                form = "ISO-8601 text" if self.time_format is None else "text of its time_format"
                raise InputError(
                    f"{where}: ts must be {form} or a number; got "
                    f"{type(value).__name__} {shortened(value)}"
                )
            if isinstance(value, float) and not math.isfinite(value * (scale or 1)):
                raise InputError(f"{where}: ts must be a finite number; got {value!r}")
            if nanoseconds:
                return int(value // 1000)
            if scale is None:
                raise InputError(
                    f"{where}: ts is the number {value!r}; say its unit with unit= "
                    f"(one of {', '.join(TIME_UNITS)})"
                )
            return value * scale if isinstance(value, int) else round(value * scale)

        def extract(record: Any, clock: int) -> tuple[int, str]:
            if key_of is None:
                key = ""
            else:
                key = key_of(record)
                if type(key) is not str:
                    key = key_text(key, where)
                if len(key) > PLAIN_KEY and is_long_key(key):
                    raise InputError(
                        f"{where}: key must have at most {LONGEST_KEY} bytes; got one of "
                        f"{len(key)} characters, {key[:40]!r} ...: use a hash of it"
                    )
            if ts_of is None:
                return clock, key
            raw_time = ts_of(record)
            ts = time_of(raw_time, clock)
            if not -TIME_LIMIT < ts < TIME_LIMIT:
                raise InputError(
                    f"{where}: ts {ts} microseconds must be within {TIME_LIMIT} of the epoch; "
                    f"is its unit {self.unit!r} right? {likely_cause(self.unit, ts, clock)}"
                )
            if self.ahead is not None and ts > clock + self.ahead:
                days = (ts - clock) // UNITS["d"]
                raise InputError(
                    f"{where}: ts must be no more than {shown_duration(self.ahead)} (ahead=) after "
                    f"the clock; got {type(raw_time).__name__} {shortened(raw_time)}, {days:,} "
                    f"days after it; {likely_cause(self.unit, ts, clock)}"
                )
            return ts, key

        return extract


def likely_cause(unit: str | None, ts: int, clock: int) -> str:
    """Returns a hint for a time far after the clock: another unit than `unit`, if that brings the
    number near to the clock."""
    other = _likely_unit(unit, ts, clock)
    if other is not None:
        return f"it is likely to be in {_UNIT_NAMES[other]}: unit={other!r}"
    return "is it a mistake, or of another unit or zone?"


def unit_doubt(unit: str | None, ts: int, clock: int) -> str | None:
    """Returns a warning if a time is far before the clock, and another unit than `unit` brings the
    number near to it. Otherwise None.

    >>> now = instant(datetime(2026, 5, 4, 12, tzinfo=UTC))
    >>> unit_doubt("ms", now // 1_000, now)
    "its times are likely to be in seconds (unit='s'): in milliseconds one of them is of 1970-01-21"
    >>> unit_doubt("s", now, now), unit_doubt("ms", 7_000_000, now)
    (None, None)
    """
    if unit is None or ts > clock - _NEAR or (other := _likely_unit(unit, ts, clock)) is None:
        return None
    day = datetime.fromtimestamp(ts / 1e6, UTC).date()
    return (
        f"its times are likely to be in {_UNIT_NAMES[other]} (unit={other!r}): in "
        f"{_UNIT_NAMES[unit]} one of them is of {day}"
    )


def _likely_unit(unit: str | None, ts: int, clock: int) -> str | None:
    """Returns another unit than `unit` that brings a time near to the clock; None if there is
    none."""
    for other in TIME_UNITS if unit is not None else ():
        number = ts * 1000 if unit == "ns" else ts // UNITS[unit or ""]
        then = number * UNITS[other] if other != "ns" else number // 1000
        if other != unit and abs(then - clock) < _NEAR:
            return other
    return None


def declared(
    name: str,
    *,
    key: KeyOf = None,
    ts: TimeOf = None,
    unit: str | None = None,
    lateness: Duration = "0s",
    idle: Duration = "10s",
    time_format: str | None = None,
    zone: str | None = None,
    ahead: Duration | None = "1d",
    jump: Duration | None = None,
    text: TextForm = PLAIN_TEXT,
    until: str | None = None,
) -> Source:
    """Returns the source that a user declares; DefinitionError if it is invalid."""
    where = f"source {name!r}"
    if unit is not None and unit not in TIME_UNITS:
        raise DefinitionError(f"{where}: unit must be one of {', '.join(TIME_UNITS)}; got {unit!r}")
    for option, path in (("key", key), ("ts", ts)):
        if not (path is None or isinstance(path, str) or callable(path)):
            raise DefinitionError(
                f"{where}: {option} must be a field, a dotted path or a function of the record; "
                f"got {type(path).__name__}"
            )
    if ts is None and (time_format or zone or jump or until):
        raise DefinitionError(
            f"{where}: ts must name the field with the time if time_format, zone, until or jump is "
            "given"
        )
    if text.pattern is not None:
        groups = check_pattern(text.pattern, where)
        for option, path in (("key", key), ("ts", ts)):
            if isinstance(path, str) and path not in groups:
                raise DefinitionError(
                    f"{where}: {option} must be one of the pattern's groups, "
                    f"{', '.join(sorted(groups))}; got {path!r}"
                )
    check_time_text(time_format, zone, where, until)
    return Source(
        name,
        key,
        ts,
        unit,
        microseconds(lateness, f"{where}: lateness"),
        microseconds(idle, f"{where}: idle"),
        time_format,
        zone,
        None if ahead is None else microseconds(ahead, f"{where}: ahead"),
        None if jump is None else microseconds(jump, f"{where}: jump"),
        text,
        until,
    )


def _picker(path: str | Callable[[Any], Any] | None, where: str) -> Callable[[Any], Any] | None:
    """Returns a function that picks a field or a dotted path, or calls the user's function."""
    if path is None:
        return None
    if callable(path):
        return guarded(path, where)
    return picker(path, where, "record")


def _number(text: str) -> int | float | None:
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return None
