"""Sources: how a record becomes a key and a time."""

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.errors import InputError
from millstream.model.source import Source, declared

CLOCK = 99


def extract(record: Any, **said: Any) -> tuple[int, str]:
    return Source("checkins", **said).extractor()(record, CLOCK)


def refused(record: Any, **said: Any) -> str:
    with pytest.raises(InputError) as raised:
        extract(record, **said)
    return str(raised.value)


def test_without_key_and_ts() -> None:
    """A source that declares nothing gives the empty key and the time of the clock."""
    assert extract({"a": 1}) == (CLOCK, "")
    assert extract("a line") == (CLOCK, "")


def test_key_is_a_field_a_path_or_a_function() -> None:
    """The key is picked by a field, by a dotted path, or by a function of the record."""
    record = {"user": {"name": "ann"}, "place": "Berlin"}
    assert extract(record, key="place") == (CLOCK, "Berlin")
    assert extract(record, key="user.name") == (CLOCK, "ann")
    assert extract(record, key=lambda r: r["place"].lower()) == (CLOCK, "berlin")


def test_a_whole_number_is_a_key() -> None:
    """Keys are text; a whole number is taken as its digits."""
    assert extract({"id": 12}, key="id") == (CLOCK, "12")
    assert extract({"id": -3}, key=lambda r: r["id"]) == (CLOCK, "-3")


@pytest.mark.parametrize(
    ("value", "shown"),
    [(1.5, "float 1.5"), (None, "NoneType None"), (True, "bool True"), (["a"], "list ['a']")],
)
def test_a_key_of_another_type_is_refused(value: object, shown: str) -> None:
    """A key must be text or a whole number."""
    assert refused({"id": value}, key="id") == (
        f"source 'checkins': key must be text or a whole number; got {shown}"
    )


def test_a_long_value_is_cut_in_the_message() -> None:
    """An error shows a huge value only in part."""
    assert len(refused({"id": ["x" * 500]}, key="id")) < 200


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ({}, ""),
        ({"age": 5}, ""),
        ({"usr": {"name": "ann"}}, "; did you mean 'usr'?"),
        ({"user": {"Name": "ann"}}, "; did you mean 'user.Name'?"),
        ({"user": None}, ": 'user' is null, not an object"),
        ({"user": "ann"}, ": 'user' is text, not an object"),
        ({"user": [1]}, ": 'user' is a list, not an object"),
        ("text", ": it is text, not an object"),
        (5, ": it is a number, not an object"),
    ],
)
def test_a_missing_field_is_refused(record: object, why: str) -> None:
    """The error has the whole path, and the field that may be meant or the value that is in the
    place of an object."""
    assert refused(record, key="user.name") == (
        f"source 'checkins': key: the record has no field 'user.name'{why}"
    )


@pytest.mark.parametrize(
    ("unit", "number", "ts"),
    [
        ("s", 3, 3_000_000),
        ("s", 1.5, 1_500_000),
        ("ms", 3, 3_000),
        ("ms", 0.25, 250),
        ("us", 3, 3),
        ("ns", 3_999, 3),
        ("ns", -1, -1),
        ("s", -2, -2_000_000),
    ],
)
def test_a_number_with_its_unit(unit: str, number: float, ts: int) -> None:
    """A numeric time counts units since the epoch; nanoseconds are rounded down."""
    assert extract({"t": number}, ts="t", unit=unit) == (ts, "")


def test_large_whole_numbers_are_exact() -> None:
    """A whole number is never taken through a float."""
    assert extract({"t": 1_338_076_800_123_457}, ts="t", unit="us")[0] == 1_338_076_800_123_457
    assert extract({"t": 9_007_199_254_740_993}, ts="t", unit="ms")[0] == 9_007_199_254_740_993_000


def test_a_number_without_a_unit_is_refused() -> None:
    """The unit of a number is never guessed; the error says how to tell it."""
    assert refused({"t": 17}, ts="t") == (
        "source 'checkins': ts is the number 17; say its unit with unit= (one of s, ms, us, ns)"
    )


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf"), 1e305])
@pytest.mark.parametrize("unit", ["s", "us", "ns"])
def test_a_number_that_is_no_time_is_refused(number: float, unit: str) -> None:
    """A time that is not finite is an input error like any other, not a crash."""
    if number == 1e305 and unit != "s":
        return
    assert "ts must be a finite number; got" in refused({"t": number}, ts="t", unit=unit)


@pytest.mark.parametrize(
    ("text", "ts"),
    [
        ("1970-01-01T00:00:01Z", 1_000_000),
        ("1970-01-01T00:00:01+00:00", 1_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:00.000007", 7),
        ("1970-01-01 00:00:01", 1_000_000),
        ("19700101T000001Z", 1_000_000),
        ("1970-01-02", 86_400_000_000),
        ("1969-12-31T23:59:59.5Z", -500_000),
    ],
)
def test_forms_of_iso_8601(text: str, ts: int) -> None:
    """ISO-8601 text in its usual forms; without a zone it is UTC."""
    assert extract({"t": text}, ts="t") == (ts, "")


@given(st.datetimes(min_value=datetime(1900, 1, 1), max_value=datetime(2200, 1, 1)))
def test_iso_text_is_exact_to_the_microsecond(moment: datetime) -> None:
    """A time that is written and read again is the same to the microsecond."""
    ts = extract({"t": moment.isoformat()}, ts="t")[0]
    seconds, rest = divmod(ts, 1_000_000)
    assert datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest, tzinfo=None) == moment


def test_a_function_may_give_a_datetime() -> None:
    """A function of the record may give text, a number or a datetime."""
    moment = datetime(1970, 1, 1, 0, 1, tzinfo=UTC)
    assert extract({}, ts=lambda r: moment) == (60_000_000, "")
    assert extract({}, ts=lambda r: moment.isoformat()) == (60_000_000, "")
    assert extract({}, ts=lambda r: 60, unit="s") == (60_000_000, "")


@pytest.mark.parametrize("text", ["yesterday", "", "2012-13-01", "17"])
def test_text_that_is_no_time_is_refused(text: str) -> None:
    """The error shows the text."""
    assert refused({"t": text}, ts="t") == (
        f"source 'checkins': ts must be ISO-8601 text; got {text!r}"
    )


@pytest.mark.parametrize("text", ["yesterday", "17:00"])
def test_text_that_is_neither_time_nor_number_is_refused(text: str) -> None:
    """With a unit, a number in text would do too, and the error says so."""
    assert refused({"t": text}, ts="t", unit="s") == (
        f"source 'checkins': ts must be ISO-8601 text or a number; got {text!r}"
    )


@pytest.mark.parametrize(("value", "shown"), [(None, "NoneType None"), (True, "bool True")])
def test_a_time_of_another_type_is_refused(value: object, shown: str) -> None:
    """A time must be text or a number."""
    assert refused({"t": value}, ts="t", unit="s") == (
        f"source 'checkins': ts must be ISO-8601 text or a number; got {shown}"
    )


def test_a_function_that_raises_is_an_input_error() -> None:
    """A user's function that fails on a record is told as such, with its own error as the cause."""
    with pytest.raises(InputError) as raised:
        extract({}, key=lambda r: r["user"])
    assert str(raised.value) == "source 'checkins': key: its function raised KeyError: 'user'"
    assert isinstance(raised.value.__cause__, KeyError)


class Mute(Exception):
    """An error whose message cannot be had."""

    def __str__(self) -> str:
        raise AttributeError("response")


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (SystemExit(3), "SystemExit: 3"),
        (ValueError("half a pair: \ud800"), r"ValueError: half a pair: \ud800"),
        (Mute(), "Mute, whose message cannot be shown"),
    ],
)
def test_any_failure_of_a_function_is_an_input_error(error: BaseException, shown: str) -> None:
    """Also one that would end the process, and one that cannot be written as it is."""

    def key(record: Any) -> str:
        raise error

    assert refused({}, key=key) == f"source 'checkins': key: its function raised {shown}"


def test_numeric_text_is_a_number_where_a_unit_is_given() -> None:
    """A CSV file has only text: with a unit, '1' and '1.5' are numbers; ISO text still works."""
    extract = Source("clicks", ts="at", unit="s").extractor()
    assert extract({"at": "1"}, 0)[0] == 1_000_000
    assert extract({"at": "1.5"}, 0)[0] == 1_500_000
    assert extract({"at": "1970-01-01T00:00:02Z"}, 0)[0] == 2_000_000


def test_a_time_format_beside_a_unit_is_for_text_only() -> None:
    """A number keeps its fraction, and what is neither text nor number is refused as ever."""
    both = {"ts": "at", "unit": "s", "time_format": "%d.%m.%Y"}
    assert extract({"at": "05.01.2026"}, **both)[0] == 1_767_571_200_000_000
    assert extract({"at": 1.9}, **both)[0] == extract({"at": "1.9"}, **both)[0] == 1_900_000
    assert extract({"at": datetime(1970, 1, 1, 0, 0, 3, tzinfo=UTC)}, **both)[0] == 3_000_000
    for value in (True, None, [5]):
        assert "ts must be text of its time_format or a number; got" in refused(
            {"at": value}, **both
        )


@pytest.mark.parametrize(
    ("unit", "number", "hint"),
    [
        ("s", 1_700_000_000_123, "it is likely to be in milliseconds: unit='ms'"),
        ("s", 1_700_000_000_123_456, "it is likely to be in microseconds: unit='us'"),
        ("ms", 1_700_000_000_123_456, "it is likely to be in microseconds: unit='us'"),
        ("us", 1_700_000_000_123_456_789, "it is likely to be in nanoseconds: unit='ns'"),
        ("s", 4_258_000_000, "is it a mistake, or of another unit or zone?"),
    ],
)
def test_a_number_in_another_unit_is_refused_with_that(unit: str, number: int, hint: str) -> None:
    """A time thousands of years ahead is refused, and the error names the likely unit."""
    taken = declared("s", ts="t", unit=unit).extractor()
    for value in (number, str(number)):
        with pytest.raises(InputError, match=re.escape(hint)):
            taken({"t": value}, 1_750_000_000_000_000)
