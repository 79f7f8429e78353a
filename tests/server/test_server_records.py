"""Bodies become records: accepted and refused bodies, with the reasons."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.description import SourceDescription
from millstream.log.writer import Entry
from millstream.server.streams.records import (
    LINE_BYTES,
    PIECE_BYTES,
    SHOWN_REFUSED,
    CheckedBody,
    RecordCheck,
    pieces,
)


def check_of(
    key: str | None = "user",
    ts: str | None = "time",
    unit: str | None = "s",
    whole: bool = True,
) -> RecordCheck:
    return RecordCheck(SourceDescription("checkins", key, ts, unit, whole, "log:/logs/checkins"))


ANYTHING = check_of(None, None, None)


def many(check: RecordCheck, body: bytes) -> CheckedBody:
    """All of a body of lines."""
    return list(check.many(body))[-1]


def lines_of(checked: CheckedBody) -> list[bytes]:
    """The accepted lines."""
    return Entry(checked.payload, checked.count).lines


def test_lines_are_kept_as_they_came() -> None:
    """Accepted lines are the bytes that were sent, in their order."""
    body = b'{"user": "a", "time": 1}\n{"time":2,"user":"b"}'
    checked = many(check_of(), body)
    assert lines_of(checked) == body.split(b"\n")
    assert checked.refused == []
    assert checked.refused_count == 0


@pytest.mark.parametrize("body", [b"1\n2\n3", b"1\n2\n3\n", b"\n1\n\n2\n \t\n3\n\n"])
def test_blank_lines_are_nothing(body: bytes) -> None:
    """Blank lines, at the end too, are neither accepted nor refused."""
    checked = many(ANYTHING, body)
    assert lines_of(checked) == [b"1", b"2", b"3"]
    assert checked.refused_count == 0


@pytest.mark.parametrize("body", [b"", b"\n", b" \r\n\t\n"])
def test_a_body_of_nothing(body: bytes) -> None:
    """A body of blank lines has no record."""
    checked = many(ANYTHING, body)
    assert (lines_of(checked), checked.refused_count) == ([], 0)


def test_other_line_ends() -> None:
    """Lines may end as on Windows; a stored line holds no carriage return, wherever it was."""
    checked = many(ANYTHING, b'{"a":1}\r\n\r\n{"a":\r2}\r\n3\r')
    assert lines_of(checked) == [b'{"a":1}', b'{"a": 2}', b"3"]
    assert checked.refused_count == 0
    assert many(ANYTHING, b'"a\rb"\n').refused_count == 1


def test_a_byte_order_mark_is_skipped() -> None:
    """Some editors begin a file with it; it is not part of the first record."""
    assert lines_of(many(ANYTHING, b"\xef\xbb\xbf1\n2")) == [b"1", b"2"]
    assert lines_of(ANYTHING.one(b"\xef\xbb\xbf[1, 2]")) == [b"[1,2]"]


def test_a_wrong_line_among_good_ones() -> None:
    """The good lines around it are accepted, and it is named by its number in the body."""
    checked = many(ANYTHING, b'1\n\n{"a":\n2\n\xff\n"\xff"\n')
    assert lines_of(checked) == [b"1", b"2"]
    assert [one.line for one in checked.refused] == [3, 5, 6]
    early, broken, text = checked.refused
    assert "ends too early" in early.error
    assert "one whole JSON value" in broken.error
    assert "not UTF-8" in text.error
    assert text.text == '"\ufffd"'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{'user': 'a'}", "malformed"),
        (b'{"user":"a","time":1} 2', "trailing characters"),
        (b"NaN", "malformed"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"time":1}', "no field 'user'"),
        (b"[1]", "no field 'user'"),
        (b'{"user":1.5,"time":1}', "key must be text or a whole number; got float 1.5"),
        (b'{"user":true,"time":1}', "got bool True"),
        (b'{"user":"a"}', "no field 'time'"),
        (b'{"user":"a","time":"yesterday"}', "ts must be ISO-8601 text"),
        (b'{"user":"a","time":null}', "ts must be ISO-8601 text or a number"),
        (b'{"user":"a","time":1e18}', "is its unit 's' right?"),
        (b'{"user":' + b"1" * 5000 + b',"time":1}', "Integer value out of range"),
        (b'"' + b"x" * LINE_BYTES + b'"', f"longer than {LINE_BYTES} bytes"),
    ],
)
def test_why_a_line_is_refused(line: bytes, reason: str) -> None:
    """A refused line comes with its number, how it begins, and what is wrong with it."""
    good = b'{"user":"a","time":1}'
    checked = many(check_of(), good + b"\n" + line + b"\n" + good + b"\n")
    assert lines_of(checked) == [good, good]
    assert checked.refused_count == 1
    refused = checked.refused[0]
    assert refused.line == 2
    assert reason in refused.error
    assert refused.text == line[:200].decode()


def test_a_source_with_functions_takes_any_json() -> None:
    """When its key is a Python function, a source's records are checked by the application."""
    checked = many(check_of(None, "time", None, whole=False), b'{"time":"x"}\n5\n')
    assert lines_of(checked) == [b'{"time":"x"}', b"5"]


def test_a_single_value_is_stored_in_one_line() -> None:
    """A value in any layout becomes one line. Its numbers and texts are unchanged."""
    body = b'{\r\n  "user": "a b",\n  "time": 1.50,\n  "n": 123456789012345678901234567890\n}\n'
    checked = check_of().one(body)
    line = b'{"user":"a b","time":1.50,"n":123456789012345678901234567890}'
    assert lines_of(checked) == [line]


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b'{"user":"a","time":1}\n{"user":"b","time":2}', "one whole JSON value"),
        (b'{"user":"a"', "ends too early"),
        (b"   ", "ends too early"),
        (b'{"user":"\xff","time":1}', "not UTF-8"),
        (b'{"user":"a"}', "no field 'time'"),
    ],
)
def test_a_single_value_that_is_refused(body: bytes, reason: str) -> None:
    """A body that is not one acceptable value is refused as line 1."""
    checked = check_of().one(body)
    assert lines_of(checked) == []
    assert checked.refused_count == 1
    assert checked.refused[0].line == 1
    assert reason in checked.refused[0].error


def test_a_long_pretty_value() -> None:
    """The limit applies to the stored line, not to the blanks around it."""
    value = {"user": "a", "time": 1, "x": [1] * 1000}
    body = json.dumps(value, indent=4400).encode()
    assert len(body) > LINE_BYTES
    assert json.loads(lines_of(check_of().one(body))[0]) == value


def test_only_the_first_refused_lines_are_listed() -> None:
    """Beyond a hundred, refused lines are only counted."""
    checked = many(ANYTHING, b"x\n" * 250)
    assert checked.refused_count == 250
    assert [one.line for one in checked.refused] == list(range(1, SHOWN_REFUSED + 1))


def test_a_large_body_comes_in_pieces() -> None:
    """Pieces are cut at line ends; line numbers count through them."""
    line = b'{"n":"' + b"x" * 90 + b'"}'
    count = 2 * PIECE_BYTES // len(line)
    body = b"\n".join([line] * count + [b"?"])
    steps = [len(lines_of(checked)) for checked in ANYTHING.many(body)]
    assert len(steps) == 3
    checked = many(ANYTHING, body)
    assert lines_of(checked) == [line] * count
    assert [one.line for one in checked.refused] == [count + 1]


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=8).map(lambda data: data.replace(b"\n", b"")),
            st.integers(1, 3).map(lambda n: b"x" * n * PIECE_BYTES),
        ),
        max_size=12,
    )
)
def test_pieces_have_the_lines_of_the_body(lines: list[bytes]) -> None:
    """Cutting a body loses no line, not a blank one either."""
    body = b"\n".join(lines)
    cut = [line for piece in pieces(body) for line in piece.split(b"\n")]
    assert cut == body.split(b"\n")


VALUES = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.integers(-(10**19), 10**19),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(max_size=5),
        st.datetimes().map(lambda time: time.isoformat()),
    ),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=4,
)
RECORDS = st.one_of(
    VALUES,
    st.fixed_dictionaries({}, optional={"user": VALUES, "time": VALUES, "x": VALUES}),
    st.fixed_dictionaries({"user": st.text(max_size=3), "time": VALUES}),
    st.fixed_dictionaries(
        {"user": st.text(max_size=3), "time": st.datetimes().map(lambda time: time.isoformat())}
    ),
    st.fixed_dictionaries({"user": st.text(max_size=3), "time": st.integers(0, 10**17)}),
)


@given(
    st.lists(RECORDS, max_size=4),
    st.sampled_from([None, "user", "x.y"]),
    st.sampled_from([None, "time"]),
    st.sampled_from([None, "s", "ms", "us", "ns"]),
)
def test_what_is_accepted_is_what_the_source_takes(
    records: list[Any], key: str | None, ts: str | None, unit: str | None
) -> None:
    """Together or alone, exactly those records are accepted from which key and time are taken."""
    source = SourceDescription("s", key, ts, unit, True, "log:/s")
    lines = [json.dumps(record).encode() for record in records]
    taken = []
    for line, record in zip(lines, records, strict=True):
        try:
            source.source().extractor()(record, 0)
        except Exception:
            continue
        taken.append(line)
    check = RecordCheck(source)
    together = many(check, b"\n".join(lines))
    assert lines_of(together) == taken
    assert together.refused_count == len(lines) - len(taken)
    assert [line for line in lines if check.one(line).count] == taken


@pytest.mark.parametrize("depth", [501, 960, 100_000])
def test_a_value_that_is_nested_too_deeply(depth: int) -> None:
    """The value is refused even if this process could read it, since all readers must be able to.

    Brackets within texts, and beside one another, do not count.
    """
    deep = b"[" * depth + b"]" * depth
    wide = b"[" + b",".join([b"[]"] * 2_000) + b"]"
    text = b'"' + b'[{\\\\\\"' * 1_000 + b'"'
    most = b'{"a":' * 500 + b"1" + b"}" * 500
    checked = many(ANYTHING, b"\n".join([wide, deep, text, most]))
    assert lines_of(checked) == [wide, text, most]
    assert [refused.line for refused in checked.refused] == [2]
    assert "nested too deeply" in checked.refused[0].error
    assert ANYTHING.one(deep).refused_count == 1
    assert lines_of(ANYTHING.one(most)) == [most]


def test_times_that_are_far_ahead_are_refused() -> None:
    """At a glance and one by one: one such time would make all events after it late."""
    for unit, good, bad in (("s", 5, 10**12), (None, "1970-01-01T00:00:05Z", "2999-01-01")):
        source = SourceDescription("s", None, "t", unit, True, "log:/s", ahead=86_400_000_000)
        body = b"\n".join(json.dumps({"t": at}).encode() for at in (good, bad, good))
        *_, checked = RecordCheck(source).many(body)
        assert len(lines_of(checked)) == 2
        (refused,) = checked.refused
        assert refused.line == 2
        assert "must be no more than 1d (ahead=) after the clock" in refused.error


def test_times_of_a_form() -> None:
    """Text of the source's time_format is a time, and nothing else."""
    source = SourceDescription("s", None, "t", None, True, "log:/s", time_format="%d.%m.%Y")
    *_, checked = RecordCheck(source).many(b'{"t":"24.12.2026"}\n{"t":"2026-12-24"}')
    assert lines_of(checked) == [b'{"t":"24.12.2026"}']
    assert "of the form '%d.%m.%Y'" in checked.refused[0].error
