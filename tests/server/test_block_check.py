"""Lines that are checked together are accepted only where each of them would be."""

from __future__ import annotations

import json
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from millstream.description import SourceDescription
from millstream.server.streams.block_check import BlockCheck
from millstream.server.streams.records import RecordCheck

NOW = time.time()
PLAIN = b'{"key":"a","ts":1,"x":%s}'
ODD = (
    b"", b" ", b"[]", b"1", b"null", b'{"key":"a","ts":1} {"key":"b","ts":2}', b'{"key":"a",',
    b'"ts":1}', b' {"key":"a","ts":1} ', b'{"key":"a"}', b'{"ts":1}', b"{}",
    b'{"key":"a","ts":1,"key":"b"}', b'{"key":5,"ts":1}', b'{"key":"a","ts":1.5}',
    b'{"key":"a","ts":true}', b'{"key":"a","ts":"1"}', b'{"key":null,"ts":1}', b'{"key":"a","ts":1',
    b'{"key":"a","ts":"2026-01-01T00:00:00Z"}', b'{"key":"a","ts":"yesterday"}',
    b'{"key":"a","ts":1e18}', b'{"key":"a","ts":-1e300}', b'{"key":"a","ts":9223372036854775807}',
    b'{"key":"a","ts":%d}' % (9 * 10**30), b'{"key":"%s","ts":1}' % (b"k" * 5_000),
    b'{"key":"a","ts":%d}' % ((NOW + 80_000) * 1e6),
    b'{"key":"a","ts":%d}' % ((NOW + 90_000) * 1e6),
    *(PLAIN % x for x in (
        b'"\xff"', b'"\xc3\xa9"', b"1e999", b"1E+400", b"-1e0400", b"1e308", b"01", b"NaN",
        b'"1e999"', b'"\\ud800"', b'"a\tb"', b"[1,]", b'{"\xff":1}', b'"}\\n{"', b"[{},{}]",
        b"9" * 299, b"9" * 5_000, b"[" * 499 + b"]" * 499, b"[" * 600 + b"]" * 600,
    )),
)  # fmt: skip


def source(key: str | None = "key", ts: str | None = "ts", **more: object) -> SourceDescription:
    given = {"unit": "us", "whole": True, "ahead": 86_400_000_000, **more}
    return SourceDescription("events", key, ts, address="log:/logs/events", **given)


SOURCES = (
    source(), source(unit="s"), source(unit="ns"), source(unit=None), source(ahead=None),
    source(None), source("key", None), source(None, None), source(whole=False), source("key.x"),
    source(unit=None, time_format="%Y"), source(unit="s", time_format="%Y"), source("ts", "ts"),
    source('a"b'),
)  # fmt: skip


@given(
    st.sampled_from(SOURCES),
    st.lists(st.sampled_from([*ODD, PLAIN % b"2", PLAIN % b"{}"]), min_size=1, max_size=4),
)
def test_a_block_is_accepted_only_if_each_line_is(
    described: SourceDescription, lines: list[bytes]
) -> None:
    """The count is that of the lines, and each of them alone is accepted."""
    count = BlockCheck(described).count(b"\n".join(lines))
    if count:
        assert count == len(lines)
        check = RecordCheck(described)
        assert [check.one(line).refused for line in lines] == [[]] * count


@pytest.mark.parametrize(
    ("described", "record"),
    [
        (source(), {"key": "k1", "ts": 1_700_000_000_000_000, "n": 1.5e-7}),
        (source(unit="s"), {"ts": 1_700_000_000.25, "key": "é", "more": {"list": [1, {"a": 2}]}}),
        (source(unit=None), {"key": "1e5f", "ts": "2026-01-01T00:00:00+01:00"}),
        (source(None, None), {"id": 1}),
        (source(whole=False), {"id": 1}),
    ],
)
def test_plain_records_are_accepted_together(described: SourceDescription, record: object) -> None:
    """The common case is fast: flat records and nested ones, with times of the usual kinds."""
    block = b"\n".join([json.dumps(record, ensure_ascii=False).encode()] * 3)
    assert BlockCheck(described).count(block) == 3
