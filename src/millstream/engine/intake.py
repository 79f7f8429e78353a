"""Turns records of a source into events: extracts key and time, and sets late ones aside. Notices
of these go to the functions that read them (`late_notice`).

Works on a chunk of records at a time. A chunk whose records all have the plain shape (a text key
and an integer or ISO time in top-level fields) takes a fast path. Other chunks are processed record
by record, and a record that cannot become an event is a dead letter with its file and line.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from millstream.codec import decode_value, encode_value
from millstream.columnar.arrow_arrays import numbers_of, offsets_of, text_array
from millstream.columnar.line_layout import LaidLines
from millstream.columnar.picked_fields import Fields, Picked
from millstream.engine.columns import FEW, Columns
from millstream.engine.laid_values import LaidValues, ValueForm
from millstream.engine.plan import SOURCE
from millstream.engine.router import Router
from millstream.errors import CodecError, InputError, MillstreamError
from millstream.model.duration import TIME_LIMIT, UNITS, instant
from millstream.model.event import Event
from millstream.model.late_notice import late_notice
from millstream.model.letter_records import (
    Bad,
    RecordAttributes,
    RecordForm,
    beginning,
    text_or_bytes,
)
from millstream.model.path import PLAIN_KEY
from millstream.model.place import message_of
from millstream.model.rules import DeadLetter
from millstream.model.source import Source
from millstream.model.time_text import time_reader

_WITH_ZONE = pa.timestamp("us", "UTC")
_YEAR_1 = instant(datetime(1, 1, 2))
LateEvent = tuple[str, int, str, bytes]


class Intake:
    """Takes in the records of one source for one batch."""

    def __init__(
        self,
        source: Source,
        router: Router,
        clock: int,
        late: int | None,
        attributes: RecordAttributes | None = None,
        *,
        many: bool = False,
    ) -> None:
        """`attributes` are those of every record that has none of its own. `many`: the batch has so
        many records that columns of numbers pay for functions that get each event too."""
        self.source = source
        self._many = many
        self._attributes = attributes
        self.events = 0
        self.highest: int | None = None
        self.late: list[LateEvent] = []
        self.bytes = 0
        """The size of its records, for sources whose driver needs it."""
        self.lost = 0
        """The number of records that were removed before they could be read."""
        self._router = router
        self._stream = router.plan.stream_number[source.name]
        self._clock = clock
        self._late_limit = late
        self._extract = source.extractor()
        self._scale = _scale(source)
        self._time_of_text = time_reader(source.time_format, source.zone, "", until=source.until)
        self._ahead = TIME_LIMIT if source.ahead is None else source.ahead
        """A time further after the clock than this is checked record by record."""

    @property
    def fields(self) -> Fields | None:
        """The fields of key and time, if nothing else of a record need be decoded; else None."""
        key, ts = self.source.key, self.source.ts
        plan, stream = self._router.plan, self._stream
        lines, decodes = plan.needs_values(stream), plan.decodes(stream)
        numbers = lines and plan.reads_numbers(stream)
        whole = lines and not numbers and self._many and plan.remakes_values(stream)
        if decodes and not numbers:
            return None
        if not (key is None or _is_field(key)) or not (ts is None or _is_field(ts)):
            return None
        if (key is None and ts is None) or key == ts or (ts is not None and self._scale is None):
            return None
        return Fields(
            str(key) if key is not None else None,
            str(ts) if ts is not None else None,
            lines=lines,
            numbers=numbers,
            whole=whole,
            only_laid=decodes,
        )

    def take_picked(self, picked: Picked, stamps: list[int] | None = None) -> bool:
        """Routes records of which only `fields` were decoded; False if whole records must be.

        `stamps` as in `take`.
        """
        times, count = picked.times, picked.size
        keys = text_array([""] * count) if picked.keys is None else picked.keys
        if not _are_plain(keys):
            return False
        arrived = [self._clock] * count if stamps is None else stamps
        scale = 1 if times is None else self._scale or 1
        ts = np.array(arrived, np.int64) if times is None else times
        least, highest = int(ts.min()) * scale, int(ts.max()) * scale
        if highest >= TIME_LIMIT or least <= -TIME_LIMIT:
            return False
        if times is not None and highest - min(arrived) > self._ahead:
            return False
        if self._late_limit is not None and least <= self._late_limit:
            return False  # a late event is kept whole
        self.events += count
        if self.highest is None or highest > self.highest:
            self.highest = highest
        if scale != 1:
            ts = ts * scale
        laid = None if picked.laid is None else self._laid(picked.laid, scale)
        if picked.lines is None and laid is None:
            self._router.place_keys(self._stream, keys, ts, highest)
        else:
            streams = np.full(count, self._stream, np.int64)
            events = Columns.of_arrays(streams, ts, keys, picked.lines, laid)
            self._router.route(SOURCE, events)
        return True

    def _laid(self, lines: LaidLines, scale: int) -> LaidValues:
        """Returns the columns of records as the values of events."""
        names, source = lines.layout.names, self.source
        key = None if source.key is None else names.index(str(source.key))
        ts = None if source.ts is None else names.index(str(source.ts))
        form = ValueForm(lines.layout, key, ts, scale)
        return LaidValues(form, tuple(lines.columns[at] for at in form.numbers))

    def take(
        self,
        records: list[Any],
        raw: list[bytes] | None,
        file: str,
        line_of: Callable[[int], int],
        stamps: list[int] | None = None,
        keys: list[str] | None = None,
    ) -> None:
        """Routes the records as events; `raw` has their encoded values, if available.

        `stamps` has the arrival time of each record, which is the event time of a record without
        one; by default it is the batch's clock. `keys` has the keys, for records that do not
        contain them.
        """
        if not records:
            return
        self.events += len(records)
        if stamps is None:
            stamps = [self._clock] * len(records)
        known_keys = keys
        plain = self._plain(records, raw, stamps, known_keys)
        decoded: list[Any] | None = None
        if plain is not None:
            times, keys, values = plain
            decoded = records
        else:
            times, keys, values = [], [], []
            for index, record in enumerate(records):
                try:
                    ts, key = self._extract(record, stamps[index])
                    if known_keys is not None:
                        key = known_keys[index]
                    value = raw[index] if raw is not None else encode_value(record)
                    key.encode()
                except Exception as error:
                    kept, form = _letter_value(record, None if raw is None else raw[index])
                    known_key = "" if known_keys is None else known_keys[index]
                    stamp = stamps[index] if self.source.ts is None else None
                    described = _described(error)
                    bad = Bad(line_of(index), kept, described, form, known_key, stamp)
                    self._refuse(bad, file)
                    continue
                times.append(ts)
                keys.append(key)
                values.append(value)
        if len(times) < len(records):
            self._router.owe(self._stream, len(records) - len(times), late=False)
        if times:
            self._route(Columns([self._stream] * len(times), times, keys, values), decoded)

    def refuse(self, bad: Bad, file: str) -> None:
        """Makes a dead letter of what is not even a record."""
        self.events += 1
        self._router.owe(self._stream, 1, late=False)
        self._refuse(bad, file)

    def _refuse(self, bad: Bad, file: str) -> None:
        attributes = bad.attributes or self._attributes
        self._router.dead.append(
            DeadLetter(
                None,
                self.source.name,
                self._clock if bad.stamp is None else bad.stamp,
                bad.key,
                bad.value,
                bad.error,
                batch=self._router.batch,
                file=file,
                line=bad.line,
                form=bad.form,
                attributes=None if attributes is None else _encoded(attributes),
            )
        )

    def _plain(
        self,
        records: list[Any],
        raw: list[bytes] | None,
        stamps: list[int],
        known_keys: list[str] | None,
    ) -> tuple[list[int], list[str], list[bytes]] | None:
        """Returns times, keys and values of a chunk of plain records; None if any is not plain."""
        key, ts, count = self.source.key, self.source.ts, len(records)
        if not (_is_field(key) and _is_field(ts)):
            return None
        try:
            if known_keys is not None:
                keys = known_keys
            else:
                keys = [""] * count if key is None else [record[key] for record in records]
            times: list[Any] = stamps if ts is None else [record[ts] for record in records]
            values = raw if raw is not None else [encode_value(record) for record in records]
        except (KeyError, TypeError, IndexError, CodecError):
            return None
        if (known_keys is None and key is not None) and (
            set(map(type, keys)) != {str}
            or not "".join(keys).isascii()
            or max(map(len, keys)) > PLAIN_KEY
        ):
            return None
        if ts is None:
            return times, keys, values
        kinds = set(map(type, times))
        if kinds == {str} and self.source.unit is None:
            parsed = self._times_of(times)
            if parsed is None:
                return None
            return (parsed, keys, values) if max(parsed) - min(stamps) <= self._ahead else None
        if self._scale is None or kinds != {int} or self.source.time_format is not None:
            return None
        scale, highest = self._scale, max(times) * self._scale
        if highest >= TIME_LIMIT or min(times) * scale <= -TIME_LIMIT:
            return None
        if highest - min(stamps) > self._ahead:
            return None
        return (times if scale == 1 else [time * scale for time in times]), keys, values

    def _times_of(self, texts: list[str]) -> list[int] | None:
        """Parses times that are text; None if one of them is wrong."""
        if len(texts) > FEW and self.source.time_format is None:
            times = iso_times(texts)
            if times is not None:
                return times
        read, clock = self._time_of_text, self._clock
        try:
            return [read(text, clock) for text in texts]
        except InputError:
            return None

    def _route(self, events: Columns, decoded: list[Any] | None = None) -> None:
        """Routes the events, except late ones. `decoded`: their decoded values."""
        highest = max(events.ts)
        if self.highest is None or highest > self.highest:
            self.highest = highest
        limit = self._late_limit
        if limit is not None and min(events.ts) <= limit:
            late, timely = events.split([int(ts > limit) for ts in events.ts], 2)
            if late is not None:
                name = self.source.name
                rows = zip(late.ts, late.keys, late.values, strict=True)
                self.late.extend((name, ts, key, value) for ts, key, value in rows)
                self._router.owe(self._stream, len(late), late=True)
                self._notify(late, limit)
            if timely is None:
                return
            events, decoded = timely, None
        self._router.route(SOURCE, events, decoded=decoded)

    def _notify(self, late: Columns, missed: int) -> None:
        """Routes the notices of late events, for the functions that read them."""
        plan, name = self._router.plan, self.source.name
        for stream, streams in plan.late_notices[name].items():
            notices = [
                late_notice(stream, streams, Event(name, ts, key, decode_value(value)), missed)
                for ts, key, value in zip(late.ts, late.keys, late.values, strict=True)
            ]
            columns = Columns(
                [plan.stream_number[stream]] * len(notices),
                [notice.ts for notice in notices],
                [notice.key for notice in notices],
                [encode_value(notice.value) for notice in notices],
            )
            self._router.route(SOURCE, columns)


def _letter_value(record: Any, raw: bytes | None) -> tuple[str | bytes, RecordForm]:
    """Returns a record for its letter: its JSON text if that is possible, else its repr."""
    if isinstance(record, bytes):
        return record, "bytes"
    try:
        return text_or_bytes(encode_value(record) if raw is None else raw), "json"
    except CodecError:
        return beginning(repr(record)), "part"


def _encoded(attributes: RecordAttributes) -> str:
    return msgspec.json.encode(attributes).decode()


def iso_times(texts: list[str]) -> list[int] | None:
    """Parses ISO times that all name their zone as `time_reader` does, but in one call; None if
    that cannot be done."""
    try:
        times = text_array(texts).cast(_WITH_ZONE).view(pa.int64())
    except (pa.ArrowInvalid, UnicodeEncodeError):
        return None
    parsed: list[int] = numbers_of(times).tolist()
    return parsed if min(parsed) >= _YEAR_1 else None  # Arrow has a year 0, and Python has none


def _is_field(path: object) -> bool:
    """True if a source's key or ts is left out, or is a top-level field of the record."""
    return path is None or (isinstance(path, str) and "." not in path)


def _are_plain(keys: pa.Array) -> bool:
    """True if all keys are short and of ASCII."""
    offsets = offsets_of(keys)
    data = memoryview(keys.buffers()[2] or b"")
    return int(np.diff(offsets).max()) <= PLAIN_KEY and data[: offsets[-1]].tobytes().isascii()


def _scale(source: Source) -> int | None:
    return UNITS[source.unit] if source.unit in ("s", "ms", "us") else None


def _described(error: Exception) -> str:
    return str(error) if isinstance(error, MillstreamError) else message_of(error)
