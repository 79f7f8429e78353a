"""Reads the records of a log by number, some at a time, for all clients over HTTP.

DESIGN
------
A client that follows a log asks again and again for the record after the last one it got. The
position of that record is remembered, so continuing needs no search. Clients that follow the end
all want the same records, so the last spans are cached and read once for all clients. Neither grows
with the number of readers. Only a request for an arbitrary record needs a search. In a log of many
small blocks that takes a while, so `locate` does it in a thread.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from millstream.errors import LogError
from millstream.log.reader import LogReader
from millstream.server.http.answers import Refusal
from millstream.server.service import Service

SPAN_BYTES = 256 * 1024
SPANS = 4
SPANS_BYTES = 4 << 20
"""The most bytes of a log's cached spans, unless a single span has more."""
PLACES = 4096


class BlockSpan(NamedTuple):
    """The lines of consecutive whole blocks, from one position to another."""

    begin: list[int]
    stop: list[int]
    lines: list[bytes]
    size: int
    """Bytes in the log."""


class Backlog(NamedTuple):
    """The part of a log that the application has not processed yet."""

    bytes: int
    events: int
    oldest: int | None
    """When the oldest record of it was posted; None if there is none."""


class Numbered:
    """A log's records by number. Used on the event loop."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._reader = LogReader(path)
        self._finder = LogReader(path)
        self._finding = Lock()
        """The finder is used by threads, one at a time."""
        self._spans: dict[int, BlockSpan] = {}
        self._places: dict[int, list[int]] = {}
        """By record number: the position where a span with this record begins."""
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
        """Updates the start and end of the log."""
        before = self._reader.end
        try:
            self._reader.reload()
        except LogError:
            self._begin_anew()
        end = self._reader.end
        if end != before:
            self._place(end[1], end)

    def bytes_after(self, position: list[int]) -> int:
        """Returns the number of bytes after a position that are still in the log."""
        return max(0, self._reader.end[0] - max(position[0], self._reader.start[0]))

    def backlog(self, position: list[int]) -> Backlog:
        """Returns the part of the log after a position, as far as it is still in the log."""
        try:
            return self._backlog(position)
        except LogError:
            self._begin_anew()
            return self._backlog(position)

    async def locate(self, record: int, service: Service) -> None:
        """Searches for a record, so that `lines` finds it without a search."""
        if self.start < record < self.end and record not in self._places:
            self._place(record, await service.in_thread(self._find, record))

    def lines(self, record: int, most: int, most_bytes: int) -> list[bytes]:
        """Returns some records from this one on, at least one; none if it is not in the log."""
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
        if skipped < 0:  # likewise removed: `find` returned the first record that is left
            return []
        selected: list[bytes] = []
        size = 0
        for line in islice(span.lines, skipped, skipped + most):
            size += len(line)
            if selected and size > most_bytes:
                break
            selected.append(line)
        after = record + len(selected)
        self._place(after, span.stop if after == span.stop[1] else span.begin)
        return selected

    def close(self) -> None:
        self._reader.close()
        with self._finding:
            self._finder.close()

    def _begin_anew(self) -> None:
        """Opens the log again and clears the caches: the log was replaced."""
        self._spans.clear()
        self._places.clear()
        self._reader.close()
        self._reader = LogReader(self._path)

    def _backlog(self, position: list[int]) -> Backlog:
        begin, end = max(position, self._reader.start), self._reader.end
        if begin >= end:
            return Backlog(0, 0, None)
        return Backlog(end[0] - begin[0], end[1] - begin[1], self._reader.stamp_at(begin))

    def _span(self, begin: list[int]) -> BlockSpan:
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
            span = self._spans[begin[0]] = BlockSpan(begin, stop, lines, size)
            while len(self._spans) > SPANS or (
                len(self._spans) > 1
                and sum(cached.size for cached in self._spans.values()) > SPANS_BYTES
            ):
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
    """Returns the record that a request's `from` names: start, end, a number, or -N from the end.

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
