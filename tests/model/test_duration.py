"""Durations and instants: their accepted forms, and the errors."""

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import DefinitionError
from millstream.model.duration import UNITS, instant, microseconds


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("1us", 1),
        ("250ms", 250_000),
        ("1s", 1_000_000),
        ("1m", 60_000_000),
        ("1h30m", 5_400_000_000),
        ("90d", 90 * 86_400_000_000),
        ("2w", 14 * 86_400_000_000),
        ("0.5s", 500_000),
        ("0s", 0),
        ("1m1ms", 60_001_000),
        (timedelta(seconds=1, microseconds=5), 1_000_005),
    ],
)
def test_what_a_duration_means(written: str | timedelta, meant: int) -> None:
    """A duration is numbers with units, one after the other, or a timedelta."""
    assert microseconds(written, "here") == meant


@given(st.dictionaries(st.sampled_from(list(UNITS)), st.integers(0, 10_000), min_size=1))
def test_parts_add_up(parts: dict[str, int]) -> None:
    """A duration of several parts is the sum of its parts, in any order of units."""
    written = "".join(f"{number}{unit}" for unit, number in parts.items())
    assert microseconds(written, "here") == sum(n * UNITS[unit] for unit, n in parts.items())


@pytest.mark.parametrize("written", ["", "90", "d", "1x", "1 d", "1h-5m", " 1s", "1.s", "s1"])
def test_a_text_that_is_no_duration_is_refused(written: str) -> None:
    """The error says where, the form of a duration, and what was given."""
    with pytest.raises(DefinitionError) as raised:
        microseconds(written, "update 'count': ttl")
    assert str(raised.value) == (
        "update 'count': ttl must be a duration such as '90d', '1h30m' or '250ms' "
        f"(units us, ms, s, m, h, d, w) or a timedelta; got {written!r}"
    )


@pytest.mark.parametrize("written", [90, 1.5, None, True, b"1s"])
def test_a_bare_number_is_refused(written: object) -> None:
    """A number without a unit is never guessed at."""
    with pytest.raises(DefinitionError, match="must be a duration such as"):
        microseconds(written, "here")  # type: ignore[arg-type]


def test_a_negative_timedelta_is_refused() -> None:
    """A duration is never negative."""
    with pytest.raises(DefinitionError, match=r"^here must not be negative; got .*timedelta"):
        microseconds(timedelta(seconds=-1), "here")


def test_a_negative_text_is_refused() -> None:
    """The error is about the sign, not about the format of durations."""
    with pytest.raises(DefinitionError, match=r"^here must not be negative; got '-1h30m'$"):
        microseconds("-1h30m", "here")


def test_an_instant_is_microseconds_or_a_datetime() -> None:
    """Whole microseconds stay as they are; a datetime counts from the epoch, before it too."""
    assert instant(17) == 17
    assert instant(datetime(1970, 1, 1, 0, 0, 1, 5, UTC)) == 1_000_005
    assert instant(datetime(1969, 12, 31, 23, 59, 59, 999_999, UTC)) == -1


def test_a_datetime_without_a_zone_is_utc() -> None:
    """A datetime without a zone is UTC, and one with a zone is converted."""
    assert instant(datetime(1970, 1, 1, 1)) == 3_600_000_000
    assert instant(datetime(1970, 1, 1, 1, tzinfo=timezone(timedelta(hours=1)))) == 0
