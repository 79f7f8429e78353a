"""Lines that an update reads right at its source come to what the reference makes of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from case_counter import count_case
from driver_runs.raw_lines import check_lines
from generated_cases import examples
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import millstream as ms
from millstream.engine.intake import Intake
from millstream.model.duration import TIME_LIMIT

ODD_NAMES = ('a"b', "a\\b", "a\tb", "\x00", "é", "a b", "class", "__class__", "key", "ts", "")


@pytest.mark.parametrize("logs", [False, True])
@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_field_of_any_name(name: str, logs: bool) -> None:
    """The field of the key, or of the time, may have any name that JSON can write."""
    for key, ts in ((name, "at"), ("at", name)):
        app = ms.App("named")
        app.source("s", key=key, ts=ts, unit="us", ahead=None)

        @app.update("s")
        def count(event: ms.Event, slate: dict[str, Any]) -> None:
            slate["n"] = slate.get("n", 0) + 1

        lines = [json.dumps({key: "k", ts: number}).encode() for number in range(3)]
        assert check_lines(app, lines, logs=logs).slates["count", "k"][1] == b'{"n":3}'


KEYS = (
    b'"a"', b'"b"', b'"\\u0061"', b'"\xc3\xa9"', b'"\\ud83d\\ude00"', b'"\\ud800"', b'""',
    b'"\\u0000"', b'"' + b"long" * 70 + b'"', b"5", b"-0", b"1.5", b"true", b"null", b"[]",
    b'{"a":1}', b'"\xff"',
)  # fmt: skip
TIMES = (
    *(str(number).encode() for number in (*range(6), -1, 10**15, 2**53 + 1, TIME_LIMIT)),
    b"1.0", b"2.5", b"1e3", b"1e-3", b"-0", b"1e999", b"9" * 30, b'"3"', b'"2026-01-01T00:00:00Z"',
    b'"soon"', b"true", b"null", b"01",
)  # fmt: skip
VALUES = (
    b"0", b"-0.0", b"0.1", b"1e308", b"1e309", b"9" * 25, b"9" * 400, b"9" * 5_000, b'"x"',
    b'"\xff"', b'"\\ud800"', b'"\xc3\xa9 \\u00e9"', b'"}\\n{"', b'"1e999"', b"[ 1, {} ]",
    b'{"k":"no","t":9}', b"NaN", b"[" * 500 + b"]" * 500, b"[" * 498 + b"]" * 498, b'"\\q"',
    b'"a\tb"', b"[1,]", b"null", b"false",
)  # fmt: skip
ODD_LINES = (
    b"", b" ", b"1", b"null", b'"text"', b"{}", b'{"k":"a"', b'"t":1}',
    b'{"k":"a","t":1} {"k":"b","t":2}',
    b'{"k":"a","t":1}\r', b' {"t":1,"k":"a"}\t', b'{"k":"a"}', b'{"t":1}', b'{"x":[{"b":1}',
    b'{"c":1}],"k":"a","t":1}', b'{"\\u006b":"a","\\u0074":2}', b' \xef\xbb\xbf{"k":"a","t":1}',
    b"\x00",
)  # fmt: skip
_pairs = st.one_of(
    st.tuples(st.just(b"k"), st.sampled_from(KEYS)),
    st.tuples(st.just(b"t"), st.sampled_from(TIMES)),
    st.tuples(st.sampled_from((b"v", b"w", b"", b"\\n", b"\xc3\xa9")), st.sampled_from(VALUES)),
)
_plain = st.builds(
    lambda key, ts, value: b'{"k":"%s","t":%d,"v":%d}' % (key, ts, value),
    st.sampled_from((b"a", b"b")),
    st.integers(0, 9),
    st.integers(0, 2),
)
_any_line = st.one_of(
    st.sampled_from(ODD_LINES),
    st.builds(
        lambda key, ts, more, gap: (b"," + gap).join((key, ts, *more)).join((b"{", b"}")),
        st.sampled_from(KEYS).map(lambda key: b'"k":' + key),
        st.sampled_from(TIMES).map(lambda ts: b'"t": ' + ts),
        st.lists(_pairs.map(lambda pair: b'"%s":%s' % pair), max_size=3),
        st.sampled_from((b"", b" ")),
    ),
)
_mostly_plain = st.one_of(*[_plain] * 5, _any_line)
lines_of_a_source = st.one_of(
    *(st.lists(one, min_size=1, max_size=12) for one in (_plain, _mostly_plain, _any_line))
)
shapes = st.sampled_from((("k", "t"), (None, "t")))


def keeping(key: str | None, ts: str) -> ms.App:
    """An update right at the source, which looks at all that it gets."""
    app = ms.App("kept", order="event-time")
    app.source("s", key=key, ts=ts, unit="us", ahead=None, idle="400d")

    @app.update("s", publishes="out")
    def keep(event: ms.Event, slate: dict[str, Any]) -> Iterator[Any]:
        slate["n"] = slate.get("n", 0) + 1
        slate["last"] = event.value
        if event.value.get("v") == 2:
            raise ValueError("two")
        yield ms.emit(value=[event.ts, sorted(map(repr, event.value.items()))])

    app.output("out")
    return app


def counting(key: str | None, ts: str) -> ms.App:
    """An aggregate that needs key and time only."""
    app = ms.App("counted", order="event-time")
    app.source("s", key=key, ts=ts, unit="us", ahead=None, idle="400d")
    app.aggregate("s", algebra=ms.algebra.count(), name="hits")
    return app


@settings(max_examples=examples(250), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from((keeping, counting)),
    shapes,
    lines_of_a_source,
    st.booleans(),
    st.integers(1, 3),
    st.booleans(),
    st.sampled_from((b"\n", b"\r\n")),
    st.sampled_from(("one-task", "shuffled")),
    st.sampled_from((60, 1 << 20)),
)
@example(keeping, ("k", "t"), [b'{"k":"a","t":1,"k":"b"}'], False, 1, True, b"\r\n", "one-task", 60)
def test_any_lines(
    made: Any,
    shape: tuple[str | None, str],
    lines: list[bytes],
    logs: bool,
    parts: int,
    bom: bool,
    newline: bytes,
    lane: str,
    batch_bytes: int,
) -> None:
    """Lines with odd keys, times and values, with fields twice, and lines that are no records, give
    the reference's slates, outputs and dead letters; however they are cut into files, blocks and
    batches, with a byte-order mark and Windows' newlines."""
    given: dict[str, Any] = {"logs": logs, "parts": parts, "bom": bom, "newline": newline}
    check_lines(made(*shape), lines, lane=lane, batch_bytes=batch_bytes, **given)
    count_case("raw lines against reference")


@pytest.mark.parametrize("logs", [False, True])
def test_plain_lines_take_the_picked_path(logs: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The test above is about it: of plain lines, files and logs decode key and time only."""
    taken: list[bool] = []
    take_picked = Intake.take_picked

    def watched(intake: Intake, *given: Any) -> bool:
        taken.append(take_picked(intake, *given))
        return taken[-1]

    monkeypatch.setattr(Intake, "take_picked", watched)
    check_lines(keeping("k", "t"), [b'{"k":"a","t":1}', b'{"k":"b","t":2,"v":{}}'], logs=logs)
    assert taken == [True]
