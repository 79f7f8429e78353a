"""Records of a source become events."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import millstream as ms
from millstream.codec import encode_value
from millstream.engine.intake import Intake, iso_times
from millstream.engine.plan import Plan
from millstream.engine.router import Router
from millstream.errors import InputError
from millstream.model.duration import TIME_LIMIT
from millstream.model.letter_records import Bad
from millstream.model.time_text import time_reader

CLOCK = 1_000


def intake_of(late: int | None = None, **source: Any) -> Intake:
    """An intake whose events go to one update."""
    app = ms.App("intake")
    app.source("s", **source)
    app.update("s", name="u")(lambda event, slate: None)
    workflow = app.workflow()
    router = Router(Plan(workflow, 1, frozenset()), batch=4)
    return Intake(workflow.sources[0], router, CLOCK, late)


def taken(intake: Intake, records: list[Any], raw: list[bytes] | None = None) -> list[Any]:
    """Returns the events of the records: (ts, key, value)."""
    intake.take(records, raw, "in.jsonl", lambda index: index + 10)
    inbox = intake._router.placed.get((0, 0))
    return list(zip(inbox.ts, inbox.keys, inbox.values, strict=True)) if inbox else []


ISO_PARTS = (
    st.sampled_from(["2012-05-27", "0000-01-01", "0001-01-01", "0001-01-02", "9999-12-31"])
    | st.sampled_from(["2012-02-30", "2000-02-29", "1900-02-29", "20120527", "2012-W05-3", "x"]),
    st.sampled_from(["T", " ", "t", "_", ""]),
    st.sampled_from(["00:00", "23:59:59", "24:00:00", "12", "12:30:60", "12:30:15.5", "1230"])
    | st.sampled_from(["12:30:15.123456", "12:30:15.1234567", "12:30:15,1", "1:02:03", "1:2.", ""]),
    st.sampled_from(["Z", "z", "+00:00", "-00:00", "+01", "+0130", "-23:59", "+24:00", "+23:60"])
    | st.sampled_from(["", " Z", "Z ", "+01:30:15", "UTC", "\u0661"]),
)


@given(st.lists(st.tuples(*ISO_PARTS).map("".join), min_size=1, max_size=2))
def test_iso_times_in_one_call_are_those_of_one_after_the_other(texts: list[str]) -> None:
    """What is parsed in one call is what `time_reader` says, and nothing that it refuses."""
    times = iso_times(texts)
    if times is not None:
        read = time_reader(None, None, "here")
        assert times == [read(text, 0) for text in texts]


def test_usual_iso_times_are_parsed_in_one_call() -> None:
    """Times with a zone, whole seconds or with a fraction."""
    texts = ["2012-05-27T00:00:02.864+00:00", "2012-05-27T02:00:02Z", "2012-05-27 00:00:02-02:00"]
    assert iso_times(texts) == [1338076802864000, 1338084002000000, 1338084002000000]
    assert iso_times(["2012-05-27T00:00:02"]) is None, "its zone is the source's"


def test_key_and_time_from_fields() -> None:
    """A text field is the key, a whole number with its unit the time."""
    intake = intake_of(key="user", ts="at", unit="ms")
    assert taken(intake, [{"user": "ann", "at": 5}]) == [(5_000, "ann", b'{"at":5,"user":"ann"}')]
    assert (intake.events, intake.highest) == (1, 5_000)


def test_without_key_and_time() -> None:
    """The key is then empty and the time the batch's clock."""
    assert taken(intake_of(), [{"a": 1}, 5]) == [(CLOCK, "", b'{"a":1}'), (CLOCK, "", b"5")]


def test_the_raw_value_is_kept() -> None:
    """Where the record's bytes are at hand they are the event's value, as they are."""
    assert taken(intake_of(), [{"b": 1, "a": 2}], [b'{"b": 1, "a": 2}'])[0][2] == (
        b'{"b": 1, "a": 2}'
    )


records = st.fixed_dictionaries(
    {},
    optional={
        "k": st.sampled_from(["a", "é", "", 7, None, True, "\ud800"]),
        "t": st.sampled_from([1, -5, 2.5, "1970-01-01T00:00:01Z", "soon", None, TIME_LIMIT]),
        "k.k": st.just("literal"),
        "x": st.sampled_from([float("nan"), 1, 1 << 80]),
    },
)


@given(
    st.lists(records, min_size=1, max_size=6),
    st.sampled_from([None, "k", "k.k"]),
    st.sampled_from([None, "t"]),
)
def test_the_fast_way_and_the_slow_way_agree(
    given: list[dict[str, Any]], key: str | None, ts: str | None
) -> None:
    """A chunk gives what its records give one by one: the same events, the same dead letters."""
    together = intake_of(key=key, ts=ts, unit="us")
    one_by_one = intake_of(key=key, ts=ts, unit="us")
    extract = one_by_one.source.extractor()
    found = taken(together, given)
    expected = []
    for record in given:
        try:
            at, name = extract(record, CLOCK)
            name.encode()
            expected.append((at, name, encode_value(record)))
        except (InputError, ms.CodecError, UnicodeEncodeError):
            pass
    assert found == expected
    assert len(together._router.dead) == len(given) - len(expected)
    assert together.events == len(given)


def test_a_record_that_cannot_become_an_event() -> None:
    """It is a dead letter with its file and line. The others of its chunk are processed."""
    intake = intake_of(key="user", ts="at", unit="s")
    raw = [b'{"user":"ann","at":1}', b'{"at":2}', b'{"user":"bob","at":"soon"}']
    found = taken(intake, [{"user": "ann", "at": 1}, {"at": 2}, {"user": "bob", "at": "soon"}], raw)
    assert [(ts, key) for ts, key, _ in found] == [(1_000_000, "ann")]
    first, second = intake._router.dead
    assert (first.function, first.stream, first.file, first.line, first.batch) == (
        None,
        "s",
        "in.jsonl",
        11,
        4,
    )
    assert first.value == '{"at":2}'
    assert "no field 'user'" in first.error
    assert (second.line, second.ts) == (12, CLOCK)


@pytest.mark.parametrize(
    ("given", "source"),
    [
        ([5, 86_401, 6], {"unit": "s"}),
        ([5, 86_401, 6.5], {"unit": "s"}),
        (["1970-01-01T00:00:05", "2105-01-01", "1970-01-01T00:00:06"], {}),
        (["05 1970", "05 2105", "06 1970"], {"time_format": "%S %Y"}),
    ],
)
def test_a_time_that_is_far_ahead(given: list[Any], source: dict[str, Any]) -> None:
    """The record is a dead letter that names the likely cause. Later records are not late."""
    intake = intake_of(ts="at", **source)
    found = taken(intake, [{"at": at} for at in given])
    (letter,) = intake._router.dead
    assert letter.line == 11
    assert "must be no more than 1d (ahead=) after the clock" in letter.error
    assert len(found) == 2
    assert intake.highest is not None
    assert intake.highest < 86_400_000_000
    assert len(taken(intake_of(ts="at", ahead=None, **source), [{"at": at} for at in given])) == 3


def test_times_in_a_zone() -> None:
    """Text that says no offset is in the zone of the source."""
    intake = intake_of(ts="at", zone="Europe/Berlin", ahead=None)
    (one,) = taken(intake, [{"at": "2026-07-01T12:00:00"}])
    assert one[0] == 1_782_900_000_000_000


def test_a_line_that_is_no_record() -> None:
    """It counts as taken in, and is a dead letter."""
    intake = intake_of()
    intake.refuse(Bad(3, "{", "not JSON"), "in.jsonl")
    (letter,) = intake._router.dead
    assert (letter.value, letter.error, letter.line) == ("{", "not JSON", 3)
    assert intake.events == 1
    assert intake.highest is None


@pytest.mark.parametrize("ts", [TIME_LIMIT, 1 << 80, -(1 << 80)])
def test_a_time_that_cannot_be_stored(ts: int) -> None:
    """A time beyond 64 bits is an error of the record, not of the task."""
    intake = intake_of(ts="at", unit="us")
    assert taken(intake, [{"at": ts}]) == []
    assert "must be within" in intake._router.dead[0].error


def test_late_events() -> None:
    """Events at or below the limit go to the late stream only."""
    intake = intake_of(late=10, ts="at", unit="us")
    found = taken(intake, [{"at": 9}, {"at": 10}, {"at": 11}])
    assert [ts for ts, _, _ in found] == [11]
    assert intake.late == [("s", 9, "", b'{"at":9}'), ("s", 10, "", b'{"at":10}')]
    assert intake.events == 3


def test_late_events_count_for_the_highest_time_of_the_source() -> None:
    """Late events raise the highest time of their source too."""
    intake = intake_of(late=10, ts="at", unit="us")
    assert taken(intake, [{"at": 9}]) == []
    assert intake.highest == 9
    assert intake._router.highest is None


def test_an_empty_chunk() -> None:
    """No records, no events."""
    intake = intake_of()
    assert taken(intake, []) == []
    assert intake.events == 0
