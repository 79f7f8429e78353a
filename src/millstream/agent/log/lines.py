"""Parses a line of a log into a record and its time, fast, as a `Logs` says (iMR, 4.1).

A line is parsed in two steps, since a pane that is skipped needs only the times. Times that are
text repeat, such as all those of one second, so parsed texts are cached. A line that cannot be
parsed raises InputError.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from millstream.errors import InputError
from millstream.model import time_text
from millstream.model.line_records import line_reader, not_in
from millstream.model.path import guarded, picker
from millstream.model.source import Source
from millstream.wall_clock import wall_clock
from millstream.windows.logs import Logs

RecordOf = Callable[[bytes], Any]
TimeOf = Callable[[Any], int]
_decode = msgspec.json.Decoder().decode


def record_reader(logs: Logs) -> RecordOf:
    """Returns a function that parses a line, without its newline, into a record.

    >>> record_reader(Logs(pattern=r"(?P<host>\\S+) (?P<status>\\d+)"))(b"web1 200")
    {'host': 'web1', 'status': '200'}
    """
    encoding = logs.encoding or "utf-8"
    if logs.format == "json":
        return _json if encoding == "utf-8" else _json_in(encoding)
    return line_reader(logs.pattern, encoding=encoding, errors="replace")


def time_reader(logs: Logs, where: str) -> TimeOf | None:
    """Returns a function that gives a record's time in microseconds; None if records have none.
    `where` names the log in errors.

    >>> logs = Logs(ts="at", time_format="%d/%b/%Y:%H:%M:%S %z")
    >>> time_reader(logs, "here")({"at": "02/Jan/1970:00:00:01 +0000"})
    86401000000
    """
    if logs.ts is None:
        return None
    if logs.time_format is not None:
        return _by_format(logs, where)
    # No `ahead`: `line_times` checks how far ahead a time may be.
    source = Source("", ts=logs.ts, unit=logs.unit, zone=logs.zone)
    extract = source.extractor(where)

    def plain(record: Any) -> int:
        return extract(record, 0)[0]

    if callable(logs.ts):
        return plain
    return _kept(logs.ts, plain, where)


def _json(line: bytes) -> Any:
    try:
        return _decode(line)
    except msgspec.DecodeError as error:
        raise InputError(f"a line must be JSON: {error}") from None
    except UnicodeDecodeError:
        raise InputError(not_in("utf-8")) from None


def _json_in(encoding: str) -> RecordOf:
    return lambda line: _json(line.decode(encoding, "replace").encode())


def _kept(path: str, plain: TimeOf, where: str) -> TimeOf:
    """Caches the times of texts; a value that is not text is read anew each time."""
    pick, kept = picker(path, f"{where}: ts", "record"), dict[str, int]()

    def time_of(record: Any) -> int:
        value = pick(record)
        if type(value) is not str:
            return plain(record)
        ts = kept.get(value)
        if ts is None:
            if len(kept) >= time_text.KEPT:
                kept.clear()
            ts = kept[value] = plain(record)
        return ts

    return time_of


def _by_format(logs: Logs, where: str) -> TimeOf:
    if callable(logs.ts):
        pick = guarded(logs.ts, f"{where}: ts")
    else:
        pick = picker(str(logs.ts), f"{where}: ts", "record")
    read = time_text.time_reader(logs.time_format, logs.zone, where, until=logs.until)
    return lambda record: read(pick(record), wall_clock())
