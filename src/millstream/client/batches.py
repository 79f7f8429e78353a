"""Cuts events into NDJSON bodies, and remembers which event each line was.

A batch has at most 500 events and 1 MiB. Events are taken one at a time, and a batch is yielded as
soon as it is full, so a generator of any length is never held in memory. A line that is longer
than a body may be is not sent at all.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from millstream.client.values import Refused
from millstream.codec import encode_value
from millstream.errors import CodecError

MAX_EVENTS = 500
MAX_BYTES = 1024 * 1024
"""The maximum size of a body, and of one line; a server accepts larger ones."""
TEXT_WIDTH = 200
_PLAIN = frozenset({str, int, float, bool, type(None)})
_BYTES = (bytes, bytearray, memoryview)


@dataclass(slots=True)
class Batch:
    """Lines to send in one request."""

    lines: list[bytes] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)
    """The number of the event of each line, from 1, among all events of the call."""
    refused: list[Refused] = field(default_factory=list)
    size: int = 0

    @property
    def body(self) -> bytes:
        return b"\n".join(self.lines)

    def add(self, number: int, line: bytes) -> None:
        if len(line) > MAX_BYTES:
            why = f"an event must have at most {MAX_BYTES:,} bytes; this one has more"
            text = line[:TEXT_WIDTH].decode(errors="replace")
            self.refused.append(Refused(number, why, text))
            return
        self.lines.append(line)
        self.numbers.append(number)
        self.size += len(line) + 1

    def has_room_for(self, line: bytes) -> bool:
        return len(line) > MAX_BYTES or self.size + len(line) <= MAX_BYTES

    @property
    def is_full(self) -> bool:
        return len(self.lines) == MAX_EVENTS or len(self.refused) == MAX_EVENTS

    @property
    def is_empty(self) -> bool:
        return not self.lines and not self.refused


def batches(lines: Iterable[bytes | None]) -> Iterator[Batch]:
    """Groups lines into batches. Blank lines are skipped but numbered. None ends a batch."""
    batch, number = Batch(), 0
    for line in lines:
        number += line is not None
        if line is None or not batch.has_room_for(line):
            if not batch.is_empty:
                yield batch
            batch = Batch()
        if line:
            batch.add(number, line)
        if batch.is_full:  # now, not when the next event comes
            yield batch
            batch = Batch()
    if not batch.is_empty:
        yield batch


def encoded(events: Iterable[Any]) -> Iterator[bytes]:
    """Encodes each event as a line of JSON. Raises CodecError if JSON cannot represent it."""
    for number, event in enumerate(events, 1):
        try:
            yield encode_event(event)
        except CodecError as error:
            raise CodecError(f"event {number:,}: {error}") from None


def encode_event(event: Any) -> bytes:
    """Encodes an event as JSON. Bytes are refused at any depth: they would arrive as base64
    text."""
    line = b"" if isinstance(event, bytes) else encode_value(event)
    if _has_bytes(event):
        raise CodecError(
            "an event must be what JSON can carry, and bytes are not; send them as text, "
            "decoded or in base64"
        )
    return line


def _has_bytes(value: Any) -> bool:
    kind = type(value)
    if kind is dict:
        value = value.values()
    elif kind is not list and kind is not tuple:
        if kind in _BYTES:
            return True
        plain = msgspec.to_builtins(value, builtin_types=_BYTES)
        return type(plain) is not kind and _has_bytes(plain)
    return any(type(part) not in _PLAIN and _has_bytes(part) for part in value)


def as_lines(texts: Iterable[bytes | str | None]) -> Iterator[bytes | None]:
    """Strips lines of JSON text. Raises CodecError if one contains a line break."""
    number = 0
    for text in texts:
        if text is None:
            yield None
            continue
        number += 1
        line = (text.encode(errors="surrogatepass") if isinstance(text, str) else text).strip()
        if b"\n" in line:
            raise CodecError(
                f"line {number:,} holds a line break: an event must be one line of JSON; "
                "send it decoded, with send"
            )
        yield line
