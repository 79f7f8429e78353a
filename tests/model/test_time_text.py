"""Times that are text: zones, years that are not said, and what cannot be read."""

from __future__ import annotations

import time
from datetime import UTC, date, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.errors import DefinitionError, InputError
from millstream.model.duration import UNITS, instant
from millstream.model.time_text import AHEAD, check_time_text, time_reader
from millstream.windows import Logs

SYSLOG = "%b %d %H:%M:%S"


def at(*parts: int) -> int:
    return instant(datetime(*parts, tzinfo=UTC))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "clock", "ts"),
    [
        ("Jun 14 15:16:01", at(2026, 11, 17), at(2026, 6, 14, 15, 16, 1)),
        ("Dec 31 23:59:59", at(2027, 1, 1), at(2026, 12, 31, 23, 59, 59)),
        ("Jan  1 00:00:01", at(2026, 12, 31, 23), at(2027, 1, 1, 0, 0, 1)),
        ("Jan  2 12:00:00", at(2026, 12, 31, 23), at(2026, 1, 2, 12)),
        ("Feb 29 12:00:00", at(2024, 2, 29, 13), at(2024, 2, 29, 12)),
        ("Feb 29 12:00:00", at(2024, 11, 17), at(2024, 2, 29, 12)),
        ("Feb 29 12:00:00", at(2025, 2, 27), at(2024, 2, 29, 12)),
    ],
)
def test_the_year_is_the_last_that_fits(text: str, clock: int, ts: int) -> None:
    """Also over New Year, with a clock that is a little behind, and on a leap day."""
    assert time_reader(SYSLOG, None, "log")(text, clock) == ts


@given(
    st.datetimes(datetime(2001, 1, 1), datetime(2090, 1, 1)),
    st.integers(-AHEAD, 363 * UNITS["d"]),
)
def test_a_year_is_inferred_for_all_of_the_last_year(then: datetime, ago: int) -> None:
    """A time within the last year, or less than a day ahead, gets its own year."""
    then = then.replace(microsecond=0)
    assert time_reader(SYSLOG, None, "log")(then.strftime(SYSLOG), instant(then) + ago) == instant(
        then
    )


@pytest.mark.parametrize("clock", [at(2026, 11, 17), at(2024, 2, 27), at(2103, 6, 1)])
def test_a_leap_day_of_an_older_log_is_refused(clock: int) -> None:
    """The days around it would be of another year: the log is older than a year, and the error
    says what to do."""
    read = time_reader(SYSLOG, None, "log")
    with pytest.raises(InputError, match=r"within the year before .*; got 'Feb 29 .*until='2024-0"):
        read("Feb 29 12:00:00", clock)
    with pytest.raises(InputError, match="must be text of the form"):
        read("Feb 30 12:00:00", clock)


@pytest.mark.parametrize("clock", [0, at(2026, 11, 17), at(2028, 3, 1)])
def test_the_last_day_of_an_old_log_gives_the_years(clock: int) -> None:
    """With `until` all of a log that spans a leap day, and New Year, is in order, whatever the
    clock."""
    read = time_reader(SYSLOG, "Europe/Berlin", "log", until="2024-03-02")
    days = [date(2023, 3, 4) + timedelta(days=number) for number in range(365)]
    stamps = [f"{day:%b %e} 23:59:59" for day in days]
    assert stamps[-3:] == ["Feb 29 23:59:59", "Mar  1 23:59:59", "Mar  2 23:59:59"]
    times = [datetime.combine(day, datetime.min.time()) for day in days]
    zone = ZoneInfo("Europe/Berlin")
    ends = [instant((at + timedelta(seconds=86_399)).replace(tzinfo=zone)) for at in times]
    assert [read(stamp, clock) for stamp in stamps] == ends


@pytest.mark.parametrize(
    ("until", "time_format", "said"),
    [
        ("2024-02-30", SYSLOG, "until must be a day, as in '2024-03-31'; got '2024-02-30'"),
        (7, SYSLOG, "until must be a day"),
        ("2024-03-02", "%Y-%m-%d", "until must be left out unless there is a time_format without"),
        ("2024-03-02", None, "until must be left out unless"),
    ],
)
def test_what_last_days_are_refused(until: Any, time_format: str | None, said: str) -> None:
    """It must be a day, and the times must need it."""
    with pytest.raises(DefinitionError, match=said):
        check_time_text(time_format, None, "log", until)
    with pytest.raises(DefinitionError, match=said):
        Logs(ts="at", time_format=time_format, until=until)
    with pytest.raises(DefinitionError, match=said):
        ms.App("log").source("lines", ts="at", time_format=time_format, until=until)


def test_an_inferred_year_is_not_kept_for_long() -> None:
    """The same text, read a year later, is a year later."""
    read = time_reader(SYSLOG, None, "log")
    assert read("Jun 14 15:16:01", at(2025, 11, 17)) == at(2025, 6, 14, 15, 16, 1)
    assert read("Jun 14 15:16:01", at(2026, 11, 17)) == at(2026, 6, 14, 15, 16, 1)


def test_zones() -> None:
    """Text without an offset is in the zone, in summer and in winter; the first of an hour that is
    there twice. An offset in the text counts before it."""
    read = time_reader("%Y-%m-%d %H:%M", "Europe/Berlin", "log")
    assert read("2026-07-01 12:00", 0) == at(2026, 7, 1, 10)
    assert read("2026-12-01 12:00", 0) == at(2026, 12, 1, 11)
    assert read("2026-10-25 02:30", 0) == at(2026, 10, 25, 0, 30)
    iso = time_reader(None, "America/New_York", "log")
    assert iso("2026-07-01T12:00:00", 0) == at(2026, 7, 1, 16)
    assert iso("2026-07-01T12:00:00+02:00", 0) == at(2026, 7, 1, 10)


@pytest.mark.parametrize("form", ["%Y", "%Y-%m", "%Y-%m-%d", "%Y %j %H:%M", "%b %d %I %p", "%c"])
def test_forms_that_say_enough(form: str) -> None:
    """A form with a time of day has a day; one without may be as coarse as the log is."""
    check_time_text(form, None, "log")


def test_the_name_of_a_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    """`%Z` accepts UTC and GMT, for any declared zone and any zone of the machine. Other names are
    refused: the offset of CEST would be lost, and the time wrong by two hours."""
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        read = time_reader("%Y-%m-%d %H:%M:%S %Z", "Europe/Berlin", "log")
        for name in ("UTC", "GMT"):
            assert read(f"2026-07-01 12:00:00 {name}", 0) == at(2026, 7, 1, 12)
        for name in ("CEST", "CET", "EST"):
            with pytest.raises(InputError, match=r"%Z takes UTC and GMT only"):
                read(f"2026-07-01 12:00:00 {name}", 0)
        plain = time_reader("%%Z %Y-%m-%d", None, "log")
        assert plain("%Z 2026-07-01", 0) == at(2026, 7, 1)
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("value", ["yesterday", "", None, 5, "Jun 31 00:00:00", "Feb 30 00:00:00"])
def test_what_is_no_time(value: object) -> None:
    """The error says what is expected and what was given."""
    for form in (SYSLOG, None, "%Y-%m-%d %H:%M:%S.%f"):
        with pytest.raises(InputError, match=r"ts must be .*; got"):
            time_reader(form, None, "log")(value, at(2026, 1, 1))


@pytest.mark.parametrize(
    ("form", "zone"),
    [
        ("%Q", None),
        ("%H:%M:%S", None),  # all times would be of the first of January
        ("%d %H:%M:%S", None),
        ("%Y-%m-%d %I:%M:%S", None),  # noon would be midnight
        (None, "Mars/Olympus"),
        (None, ""),
        (None, "../etc/passwd"),
    ],
)
def test_what_no_time_could_be_read_by(form: str | None, zone: str | None) -> None:
    """An impossible format is refused before anything is read."""
    with pytest.raises(DefinitionError, match=r"log: (time_format|zone) must"):
        check_time_text(form, zone, "log")
