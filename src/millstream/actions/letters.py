"""The dead letters of an action: its own event log, NAME.failed, kept for ever.

A letter is appended before the position goes past its record. So after a crash between the two, the
last letter tells that the record was given up already, and it is not tried once more.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from millstream.actions.asked import Asked, Row
from millstream.log.reader import LogReader
from millstream.log.writer import Entry, LogWriter, Retention
from millstream.model.workflow import FAILED
from millstream.stores.home import log_of

FOR_EVER = Retention(None, None)


class Letter(Row, frozen=True, kw_only=True, omit_defaults=True):
    """An event that could not be carried out, and why."""

    action: str
    id: str
    record: int
    error: str
    tries: int
    since: int
    """When it was first tried, in microseconds."""
    last: int
    retry: int = 0

    def again(self, store: str) -> Asked:
        """The same event, to be carried out under a new id."""
        row = Row(self.ts, self.key, self.value, self.bytes)
        return Asked.of(store, self.action, self.record, row, self.retry + 1)


_letter = msgspec.json.Decoder(Letter).decode


def failed_log(store: Path, action: str) -> Path:
    """Where an action's dead letters are."""
    return log_of(store, f"{action}{FAILED}")


class Letters:
    """The writer's side; the log is made with the first letter."""

    def __init__(self, store: Path, action: str) -> None:
        self._path = failed_log(store, action)
        self._writer: LogWriter | None = None
        self._reader: LogReader | None = None

    @property
    def last(self) -> str:
        """The id of the last letter; empty if there is none."""
        return self._open().last_tag if self._writer or self._path.exists() else ""

    def append(self, asked: Asked, error: str, tries: int, since: int, last: int) -> None:
        """Keep a letter; on disk when this returns."""
        row = asked.row
        letter = Letter(
            row.ts,
            row.key,
            row.value,
            row.bytes,
            action=asked.action,
            id=asked.id,
            record=asked.record,
            retry=asked.retry,
            error=error,
            tries=tries,
            since=since,
            last=last,
        )
        self._open().append([Entry([msgspec.json.encode(letter)], asked.id)])

    def read(self, number: int) -> Letter | None:
        """The letter of that number; None if there is none."""
        if self._reader is None:
            self._reader = LogReader(self._path)
        self._reader.reload()
        return next(_from(self._reader, number), (0, None))[1]

    def close(self) -> None:
        for one in (self._writer, self._reader):
            if one is not None:
                one.close()
        self._writer = self._reader = None

    def _open(self) -> LogWriter:
        if self._writer is None:
            self._writer = LogWriter(self._path, retention=FOR_EVER, tags=False)
        return self._writer


def letters(store: Path, action: str, start: int = 0) -> Iterator[tuple[int, Letter]]:
    """The dead letters of an action from a number on, with their numbers."""
    with closing(LogReader(failed_log(store, action))) as reader:
        yield from _from(reader, start)


def _from(reader: LogReader, start: int) -> Iterator[tuple[int, Letter]]:
    for block in reader.blocks(reader.find(start)[0], reader.end[0]):
        for number, line in enumerate(block.lines, block.first):
            if number >= start:
                yield number, _letter(line)
