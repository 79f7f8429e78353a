"""From a line to a record and its time."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

import millstream as ms
from millstream.agent.log.line_times import LineTimes
from millstream.agent.log.lines import record_reader, time_reader
from millstream.errors import InputError
from millstream.model.time_text import KEPT
from millstream.windows.logs import Logs
from millstream.windows.placed import PlacedJob

SECOND = 1_000_000
NOON = 1_704_110_400 * SECOND  # 2024-01-01T12:00:00Z

APACHE = r'(?P<host>\S+) \S+ \S+ \[(?P<time>[^]]+)\] "(?P<request>[^"]*)" (?P<status>\d+)'


def times(logs: Logs, *records: Any) -> list[int]:
    """The times of records."""
    time_of = time_reader(logs, "log")
    assert time_of is not None
    return [time_of(record) for record in records]


def test_lines_of_json() -> None:
    """A line is a JSON value. Any other line is refused with a reason."""
    read = record_reader(Logs())
    assert read(b'{"a": [1]}\r') == {"a": [1]}
    for line in (b"{", b"nothing", b'"\xff"'):
        with pytest.raises(InputError, match="a line must be"):
            read(line)
    with pytest.raises(InputError, match="say so, as with encoding='latin-1'"):
        read(b'"caf\xe9"')


def test_lines_of_text() -> None:
    """A line with any bytes is text. A carriage return is not part of it."""
    read = record_reader(Logs(format="text"))
    assert read(b"a b\r") == {"line": "a b"}
    assert read(b"caf\xe9") == {"line": "caf\ufffd"}


def test_lines_by_a_pattern() -> None:
    """The record is the pattern's groups; a line that does not match is refused."""
    logs = Logs(pattern=APACHE, ts="time", time_format="%d/%b/%Y:%H:%M:%S %z")
    record = record_reader(logs)(b'h - - [01/Jan/2024:13:00:00 +0100] "GET / HTTP/1.1" 200 12\r')
    assert record == {
        "host": "h",
        "time": "01/Jan/2024:13:00:00 +0100",
        "request": "GET / HTTP/1.1",
        "status": "200",
    }
    assert times(logs, record, record) == [NOON, NOON]
    with pytest.raises(InputError, match="does not match"):
        record_reader(logs)(b"something else")


@pytest.mark.parametrize(
    ("logs", "value", "more"),
    [
        (Logs(ts="at"), "2024-01-01T12:00:00.25Z", SECOND // 4),
        (Logs(ts="at"), "2024-01-01T13:00:00+01:00", 0),
        (Logs(ts="at", unit="s"), NOON // SECOND, 0),
        (Logs(ts="at", unit="s"), NOON / SECOND + 0.5, SECOND // 2),
        (Logs(ts="at", unit="ms"), NOON // 1_000 + 1, 1_000),
        (Logs(ts="at", unit="s"), str(NOON // SECOND), 0),
        (Logs(ts="at", time_format="%Y-%m-%d %H:%M:%S"), "2024-01-01 12:00:00", 0),
        (Logs(ts="at", time_format="%y%m%d %H%M%S"), "240101 120000", 0),
        (Logs(ts="at", zone="Europe/Berlin"), "2024-01-01T13:00:00", 0),
        (Logs(ts="at", zone="Europe/Berlin"), "2024-01-01T12:00:00Z", 0),
        (
            Logs(ts="at", time_format="%Y-%m-%d %H:%M:%S", zone="America/New_York"),
            "2024-01-01 07:00:00",
            0,
        ),
        (Logs(ts="at", time_format="%Y-%m-%d %H:%M:%S,%f"), "2024-01-01 12:00:00,007", 7_000),
        (Logs(ts="at", time_format="%Y-%m-%d %H:%M:%S.%f"), "2024-01-01 12:00:00.000001", 1),
        (Logs(ts="at", time_format="%H:%M:%S.%f %d.%m.%Y"), "12:00:00.5 01.01.2024", SECOND // 2),
        (Logs(ts=lambda record: record["at"], unit="us"), NOON, 0),
        (Logs(ts=lambda record: datetime(2024, 1, 1, 12, tzinfo=UTC)), None, 0),
        (Logs(ts=lambda record: "01.01.24", time_format="%d.%m.%y"), None, -12 * 3_600 * SECOND),
    ],
)
def test_times(logs: Logs, value: Any, more: int) -> None:
    """A time in any format is parsed to the same value each time."""
    assert times(logs, {"at": value}, {"at": value}) == [NOON + more] * 2


@pytest.mark.parametrize(
    ("logs", "record"),
    [
        (Logs(ts="at"), {}),
        (Logs(ts="at"), {"at": "noon"}),
        (Logs(ts="at"), {"at": 5}),
        (Logs(ts="at", unit="s"), {"at": None}),
        (Logs(ts="at", time_format="%Y"), {"at": "noon"}),
        (Logs(ts="at", time_format="%Y"), {"at": None}),
        (Logs(ts="at", time_format="%Y"), {"at": ["2024"]}),
        (Logs(ts="at", time_format="%Y.%f"), {"at": "2024.x"}),
        (Logs(ts="at", time_format="%Y.%f"), {"at": "2024"}),
        (Logs(ts="at", time_format="%Y.%f"), {"at": "2024.1234567"}),
        (Logs(ts=lambda record: record["at"]), {}),
        (Logs(ts=lambda record: record["at"], time_format="%Y"), {}),
    ],
)
def test_times_that_cannot_be_read(logs: Logs, record: Any) -> None:
    """A time that is missing or of another form makes a dead letter of its line, every time."""
    for _ in range(2):
        with pytest.raises(InputError):
            times(logs, record)


def test_records_without_times() -> None:
    """Without ts there is no time to read."""
    assert time_reader(Logs(), "log") is None


def test_what_is_kept_is_bounded() -> None:
    """Many different texts are read right, and do not stay."""
    logs = Logs(ts="at", time_format="%Y-%m-%d %H:%M:%S")
    texts = [str(datetime.fromtimestamp(second, UTC))[:19] for second in range(KEPT + 10)]
    assert times(logs, *({"at": text} for text in texts)) == [
        second * SECOND for second in range(KEPT + 10)
    ]


def fails(record: Any) -> int:
    raise ValueError("no time")


@pytest.mark.parametrize(
    ("logs", "record", "said"),
    [
        (Logs(ts="at", unit="s"), {"at": True}, "ts must be ISO-8601 text or a number; got"),
        (Logs(ts="at"), {"at": "then"}, "ts must be ISO-8601 text; got 'then'"),
        (Logs(ts="at"), {"on": 1}, "ts: the record has no field 'at'"),
        (Logs(ts="at", time_format="%Y-%m-%d"), {"at": "then"}, "ts must be text of the form"),
        (Logs(ts="at", time_format="%Y-%m-%d"), {"on": 1}, "ts: the record has no field 'at'"),
        (Logs(ts=fails), {}, "its function raised ValueError: no time"),
        (Logs(ts=fails, time_format="%Y-%m-%d"), {}, "its function raised ValueError: no time"),
    ],
)
def test_errors_of_times_name_the_log(logs: Logs, record: Any, said: str) -> None:
    """They say that they are of the job's logs: there is no source of that name."""
    job = ms.windows.Job(map=lambda record: [], range="1s")
    time_of = LineTimes(PlacedJob(job, "counts", ("web1",), logs)).time_of
    assert time_of is not None
    with pytest.raises(InputError) as raised:
        time_of(record)
    assert str(raised.value).startswith("logs of job 'counts': ts")
    assert said in str(raised.value)
