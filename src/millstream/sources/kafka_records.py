"""Converts records of a Kafka topic into chunks: decoded values, keys, times and headers.

A source that declares no key uses the record's key, and one that declares no time uses the record's
time. With `key=record` and `time=record` in the address, the record's key and time are used in any
case. A wrong record is a `Bad` with its offset as the line.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np

from millstream.columnar.picked_fields import Fields
from millstream.errors import InputError
from millstream.json_checks.json_depth import DEEPEST, any_too_deep, too_deep
from millstream.kafka.topic import RECORD, SourceTopic
from millstream.model.letter_records import Bad, RecordAttributes, RecordForm, bad_record
from millstream.model.line_records import line_reader
from millstream.model.path import LONGEST_KEY
from millstream.model.source import Source
from millstream.sources.formats import Chunk
from millstream.sources.picked import picker

CHUNK_RECORDS, CHUNK_BYTES = 16_384, 2 * 1024 * 1024
"""Messages of which only fields are needed wait until there are so many, or they have so many
bytes: a chunk takes 0.4 ms, however short it is."""
WAITING_BYTES = 16 * 1024 * 1024
"""The most bytes that wait for chunks in a task, over all partitions."""
_decode = msgspec.json.Decoder().decode
_BYTES_TAG = b"\x00"  # the same as codec.BYTES_TAG
_FORMS: dict[str, RecordForm] = {"json": "json", "text": "line", "bytes": "bytes"}


def taken_source(source: Source, topic: SourceTopic) -> Source:
    """Returns the source without the key or time that the Kafka record itself provides."""
    key = None if topic.key == RECORD else source.key
    ts = None if topic.time == RECORD else source.ts
    return source if (key, ts) == (source.key, source.ts) else replace(source, key=key, ts=ts)


def topic_attributes(topic: SourceTopic, taken: Source) -> RecordAttributes:
    """Returns the attributes of the topic's records; `taken` comes from `taken_source`."""
    own = {"key": taken.key is None, "ts": taken.ts is None}
    replaced = {"key": topic.key == RECORD, "ts": topic.time == RECORD}
    return RecordAttributes(
        tuple(name for name in own if own[name]),
        tuple(name for name in replaced if replaced[name]),
    )


class TopicRecordReader:
    """Makes chunks of the messages of one source."""

    def __init__(
        self,
        topic: SourceTopic,
        source: Source,
        clock: int,
        fields: Fields | None,
        partitions: int = 1,
    ) -> None:
        """`source` comes from `taken_source`. With `fields`, only these are needed. `partitions`
        is the number of partitions that are read at the same time."""
        self._topic = topic
        self._attributes = topic_attributes(topic, source)
        self._keyed = source.key is None
        self._stamped = source.ts is None
        self._clock = clock
        self._latest = None if source.ahead is None else clock + source.ahead
        plain = topic.format == "json" and not topic.headers and not self._keyed
        self._pick = None
        if plain and not self._stamped and fields is not None:
            self._pick = picker(fields)
        self._waiting = _WaitingValues()
        self._chunk_bytes = min(CHUNK_BYTES, WAITING_BYTES // partitions)
        form = source.text
        self._line = line_reader(form.pattern, encoding=form.line_encoding)

    def take(self, messages: list[Any]) -> Iterator[tuple[Chunk, int]]:
        """Takes the next messages of the partition; yields chunks, with the bytes of their records.

        Empties the list as soon as possible: the next messages then use the same memory, while the
        processor's cache still has it. If only fields are picked, messages wait until there are
        enough of them for a chunk; `rest` yields those.
        """
        values = list(map(type(messages[0]).value, messages))
        if None in values:  # a deletion, in a compacted topic
            yield from self.rest()
            size = sum(4 if value is None else len(value) for value in values)  # 4, as of null
            yield self._each(messages, values), size
        elif self._pick is None:
            yield self._decoded(messages, values), sum(map(len, values))
        else:
            block = b"\n".join(values)
            if _count_newlines(block) == len(values) - 1:
                waiting = self._waiting
                waiting.add(block, messages)
                messages.clear()
                if waiting.count >= CHUNK_RECORDS or waiting.size >= self._chunk_bytes:
                    yield from self.rest()
            else:  # some values have several lines
                yield from self.rest()
                yield self._decoded(messages, values), len(block) - len(values) + 1
        messages.clear()

    def rest(self) -> Iterator[tuple[Chunk, int]]:
        """Yields the chunk of the messages that wait."""
        waiting, self._waiting = self._waiting, _WaitingValues()
        if not waiting.count:
            return
        assert self._pick is not None
        block, offsets = waiting.block, waiting.offsets
        picked = self._pick(block)
        later = partial(self._of_lines, block, offsets)
        if picked is None or picked.size != waiting.count:
            yield later(), waiting.size
        else:
            yield Chunk([], None, [], None, picked=picked, whole=later), waiting.size

    def _of_lines(self, block: bytes, offsets: Sequence[int]) -> Chunk:
        return self._decoded([*map(_OffsetOnly, offsets)], block.split(b"\n"))

    def _decoded(self, messages: list[Any], values: list[bytes]) -> Chunk:
        return self._plain(messages, values) or self._each(messages, values)

    def _plain(self, messages: list[Any], values: list[bytes]) -> Chunk | None:
        """Returns the chunk if all values are valid; None if one is not."""
        if self._topic.headers:
            return None
        raw: list[bytes] | None = values
        try:
            if self._topic.format == "json":
                records: list[Any] = list(map(_decode, values))
                if any_too_deep(values):
                    return None
            elif self._topic.format == "bytes":
                records, raw = list(values), [_BYTES_TAG + value for value in values]
            else:
                records, raw = list(map(self._line, values)), None
            keys = self._keys(messages) if self._keyed else None
        except (ValueError, RecursionError, InputError):
            return None
        stamps = self._stamps(messages) if self._stamped else None
        if stamps is not None and self._latest is not None and max(stamps) > self._latest:
            return None
        offsets = _offsets(messages)
        lines = None if isinstance(offsets, range) else offsets
        return Chunk(records, raw, [], lines, offsets[0], _from_zero, stamps, keys=keys)

    def _each(self, messages: list[Any], values: Sequence[bytes | None]) -> Chunk:
        """Returns the chunk, made record by record. Wrong records are in its `bad`."""
        chunk = Chunk([], [], [], [], 0, _from_zero, [], keys=[] if self._keyed else None)
        assert chunk.lines is not None
        assert chunk.raw is not None
        assert chunk.stamps is not None
        for message, value in zip(messages, values, strict=True):
            try:
                record, raw = self._record(message, value)
                key = _key(message.key()) if self._keyed else ""
                stamp = self._stamp(message)
            except (ValueError, RecursionError, InputError) as error:
                chunk.bad.append(self._bad(message, value, error))
                continue
            chunk.records.append(record)
            chunk.raw.append(raw)
            chunk.lines.append(message.offset())
            chunk.stamps.append(stamp)
            if chunk.keys is not None:
                chunk.keys.append(key)
        return chunk if self._stamped else chunk._replace(stamps=None)

    def _bad(self, message: Any, value: bytes | None, error: Exception) -> Bad:
        """Returns the `Bad` of a message, with its key, time and headers."""
        form: RecordForm = "part"
        key, stamp = "", None
        try:
            key = _key(message.key()) if self._keyed else ""
            stamp = self._stamp(message) if self._stamped else None
            form = _FORMS[self._topic.format]
        except InputError:
            pass  # the letter has no key or time then, so it cannot be retried as it was
        reason = _reason(value, error)
        attributes = self._attributes
        if field := self._topic.headers:
            attributes = replace(attributes, headers_field=field, headers=_headers(message))
        bad = bad_record(message.offset(), value or b"", reason, form, key, stamp)
        return bad._replace(attributes=attributes)

    def _record(self, message: Any, value: bytes | None) -> tuple[Any, bytes]:
        """Returns a record and its encoding."""
        headers = self._topic.headers
        record: Any
        if value is None:
            record, raw = None, b"null"
        elif self._topic.format == "json":
            record, raw = _decode(value), value
            if too_deep(value):
                raise ValueError(f"it is nested more than {DEEPEST} deep")
        elif self._topic.format == "bytes":
            record, raw = value, _BYTES_TAG + value
        else:
            record = self._line(value)
            raw = msgspec.json.encode(record)
        if headers:
            if not isinstance(record, dict):
                raise InputError(
                    f"{self._topic.where}: the headers go into the field {headers!r}, so a value "
                    f"must be an object; got {type(record).__name__}"
                )
            record[headers] = _headers(message)
            raw = msgspec.json.encode(record)
        return record, raw

    def _keys(self, messages: list[Any]) -> list[str]:
        return list(map(_key, map(type(messages[0]).key, messages)))

    def _stamps(self, messages: list[Any]) -> list[int]:
        clock = self._clock
        timestamps = map(type(messages[0]).timestamp, messages)
        return [1_000 * ms if kind else clock for kind, ms in timestamps]

    def _stamp(self, message: Any) -> int:
        kind, ms = message.timestamp()
        stamp = 1_000 * ms if kind else self._clock
        if self._stamped and self._latest is not None and stamp > self._latest:
            raise InputError(
                f"{self._topic.where}: the record's time must not be more than a source's ahead= "
                f"after the clock; got {ms} milliseconds since 1970: a producer with a wrong clock?"
            )
        return int(stamp)


class _WaitingValues:
    """Values of one line each, and their offsets, that wait to be read as one block."""

    def __init__(self) -> None:
        self.count = self.size = 0
        self._blocks: list[bytes] = []
        self._offsets: list[range | list[int]] = []

    def add(self, block: bytes, messages: list[Any]) -> None:
        self.count += len(messages)
        self.size += len(block) - len(messages) + 1
        self._blocks.append(block)
        self._offsets.append(_offsets(messages))

    @property
    def block(self) -> bytes:
        return b"\n".join(self._blocks)

    @property
    def offsets(self) -> range | list[int]:
        """All offsets: a range if every offset has a record."""
        first, last = self._offsets[0][0], self._offsets[-1][-1]
        if last - first == self.count - 1:
            return range(first, last + 1)
        return [*chain.from_iterable(self._offsets)]


class _OffsetOnly(NamedTuple):
    """What is left of a message whose key, time and headers are not needed."""

    number: int

    def offset(self) -> int:
        return self.number

    def timestamp(self) -> tuple[int, int]:
        return 0, -1


def _count_newlines(block: bytes) -> int:
    """Returns `block.count(b"\\n")`, in a fifth of the time if lines are short."""
    return int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))


def _offsets(messages: list[Any]) -> range | list[int]:
    """Returns the messages' offsets: a range if every offset has a record."""
    first, last = messages[0].offset(), messages[-1].offset()
    if last - first == len(messages) - 1:
        return range(first, last + 1)
    return [message.offset() for message in messages]


def _headers(message: Any) -> dict[str, str | None]:
    return {
        name: None if header is None else bytes(header).decode(errors="replace")
        for name, header in message.headers() or ()
    }


def _from_zero() -> int:
    return -1  # offsets are counted from 0, lines from 1


def _key(key: bytes | str | None) -> str:
    if key is None:
        return ""
    if len(key) > LONGEST_KEY:
        raise InputError(f"a record's key must have at most {LONGEST_KEY} bytes; got {len(key)}")
    if isinstance(key, str):
        return key
    try:
        return key.decode()
    except UnicodeDecodeError:
        raise InputError(f"a record's key must be text in UTF-8; got {key[:40]!r}") from None


def _reason(value: bytes | None, error: Exception) -> str:
    if isinstance(error, InputError):
        return str(error)
    if isinstance(error, UnicodeDecodeError):
        got = "bytes that are not UTF-8"
    elif not value:
        got = "an empty value"
    else:
        got = f"this: {str(error)[:200]}"
    return f"a record's value must be one whole JSON value; got {got}"
