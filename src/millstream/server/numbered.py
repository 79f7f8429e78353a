"""The records of a log by their numbers, some at a time, for all who read it over HTTP.

DESIGN
------
Who follows a log asks for the record after the last one it got, again and again. The place of that
one is remembered, so going on needs no search; and since those who follow the end all want the same
records, the spans that were read last are kept, and are read once for all of them. Neither grows
with the number of readers. Only a record that is asked for out of the blue has to be searched for;
in a log of many small blocks that takes a while, so `locate` does it beside the event loop.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from millstream.errors import LogError
from millstream.log.reader import LogReader
from millstream.server.answers import Refusal
from millstream.server.service import Service

SPAN_BYTES = 256 * 1024
SPANS = 4
PLACES = 4096


class Span(NamedTuple):
    """Whole blocks one after the other, from one position to another."""

    begin: list[int]
    stop: list[int]
    lines: list[bytes]


class Backlog(NamedTuple):
    """What of a log is still to be taken in."""

    bytes: int
    events: int
    oldest: int | None
    """When the oldest of it was posted; None if there is nothing."""


class Numbered:
    """A log's records by number. Used on the event loop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader = LogReader(path)
        self._finder = LogReader(path)
        self._finding = Lock()
        """The finder is used by threads, one at a time."""
        self._spans: dict[int, Span] = {}
        self._places: dict[int, list[int]] = {}
        """Where a span begins that has the record."""
        self._place(self.end, self._reader.end)

    @property
    def start(self) -> int:
        """The number of the first record that is still there."""
        return self._reader.start[1]

    @property
    def end(self) -> int:
        """The number that the next record will have."""
        return self._reader.end[1]

    def reload(self) -> None:
        """Look how far the log goes now."""
        before = self._reader.end
        try:
            self._reader.reload()
        except LogError:
            self._begin_anew()
        end = self._reader.end
        if end != before:
            self._place(end[1], end)

    def bytes_after(self, position: list[int]) -> int:
        """How many bytes follow a position, of those that are there."""
        return max(0, self._reader.end[0] - max(position[0], self._reader.start[0]))

    def backlog(self, position: list[int]) -> Backlog:
        """What follows a position, of what is there."""
        try:
            return self._backlog(position)
        except LogError:
            self._begin_anew()
            return self._backlog(position)

    async def locate(self, record: int, service: Service) -> None:
        """Search for a record, so that `lines` finds it at once."""
        if self.start < record < self.end and record not in self._places:
            self._place(record, await service.in_thread(self._find, record))

    def lines(self, record: int, most: int, most_bytes: int) -> list[bytes]:
        """Some records from this one on, at least one; none if it is not there (any more)."""
        if not self.start <= record < self.end:
            return []
        try:
            span = self._span(self._places.get(record) or self._reader.find(record))
        except LogError:
            if record < self.start:  # it was removed just now
                return []
            self._begin_anew()
            raise
        skipped = record - span.begin[1]
        if skipped < 0:  # likewise: what was found is the first that is left
            return []
        found: list[bytes] = []
        size = 0
        for line in islice(span.lines, skipped, skipped + most):
            size += len(line)
            if found and size > most_bytes:
                break
            found.append(line)
        after = record + len(found)
        self._place(after, span.stop if after == span.stop[1] else span.begin)
        return found

    def close(self) -> None:
        self._reader.close()
        with self._finding:
            self._finder.close()

    def _begin_anew(self) -> None:
        """Whatever there is, it is not the log that it was."""
        self._spans.clear()
        self._places.clear()
        self._reader.close()
        self._reader = LogReader(self._path)

    def _backlog(self, position: list[int]) -> Backlog:
        begin, end = max(position, self._reader.start), self._reader.end
        if begin >= end:
            return Backlog(0, 0, None)
        return Backlog(end[0] - begin[0], end[1] - begin[1], self._reader.stamp_at(begin))

    def _span(self, begin: list[int]) -> Span:
        span = self._spans.get(begin[0])
        if span is None:
            lines: list[bytes] = []
            stop, size = begin, 0
            for block in self._reader.blocks(begin[0], self._reader.end[0]):
                lines += block.lines
                stop = [block.next_offset, block.first + block.count]
                size += block.next_offset - block.offset
                if size >= SPAN_BYTES:
                    break
            span = self._spans[begin[0]] = Span(begin, stop, lines)
            while len(self._spans) > SPANS:
                del self._spans[next(iter(self._spans))]
        return span

    def _place(self, record: int, position: list[int]) -> None:
        self._places.pop(record, None)
        self._places[record] = position
        while len(self._places) > PLACES:
            del self._places[next(iter(self._places))]

    def _find(self, record: int) -> list[int]:
        with self._finding:
            try:
                self._finder.reload()
            except LogError:
                self._finder.close()
                self._finder = LogReader(self._path)
            return self._finder.find(record)


def begin_at(text: str, start: int, end: int) -> int:
    """The record that a request's `from` means: start, end, a number, or so many before the end.

    >>> begin_at("start", 5, 90), begin_at("end", 5, 90), begin_at("7", 5, 90)
    (5, 90, 7)
    >>> begin_at("-10", 5, 90), begin_at("-100", 5, 90)
    (80, 5)
    """
    digits = text.removeprefix("-")
    if text == "start":
        return start
    if text == "end":
        return end
    if digits.isascii() and digits.isdigit() and len(digits) < 19:
        return max(start, end - int(digits)) if digits != text else int(text)
    raise Refusal(
        400,
        "parameter 'from' must be start, end, the number of a record, or -N for the last N; "
        f"got {text[:40]!r}",
    )
