"""The dead letters of an action, in its own event log NAME.failed, which is kept for ever.

A letter is appended before the position moves past its record. After a crash between the two, the
last letter shows that the record was already given up, and it is not tried again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import msgspec

from millstream.actions.action_events import ActionEvent, ActionRow
from millstream.log.entries import Entry
from millstream.log.place_writer import EventLogWriter
from millstream.log.reader import LogReader
from millstream.log.retention import FOR_EVER
from millstream.log.stream_logs import StreamLogs
from millstream.model.workflow import FAILED
from millstream.stores.home import log_of


class Letter(ActionRow, frozen=True, kw_only=True, omit_defaults=True):
    """An event that could not be carried out, and why."""

    action: str
    id: str
    record: int
    error: str
    tries: int
    since: int
    """The time of the first try, in microseconds."""
    last: int
    retry: int = 0

    def again(self, store: str) -> ActionEvent:
        """Returns the same event with a new id, to be carried out again."""
        row = ActionRow(self.ts, self.key, self.value, self.bytes)
        return ActionEvent.of(store, self.action, self.record, row, self.retry + 1)


_letter = msgspec.json.Decoder(Letter).decode


def failed_log(store: Path, action: str) -> Path:
    """The path of the log of an action's dead letters."""
    return log_of(store, f"{action}{FAILED}")


class Letters:
    """Writes the dead letters of an action. The log is created with the first letter."""

    def __init__(self, logs: StreamLogs, action: str) -> None:
        self._logs = logs
        self._stream = f"{action}{FAILED}"
        self._writer: EventLogWriter | None = None
        self._reader: LogReader | None = None

    @property
    def last(self) -> str:
        """The id of the last letter; empty if there is none."""
        return self._open().last_tag if self._writer or self._logs.has(self._stream) else ""

    def append(self, asked: ActionEvent, error: str, tries: int, since: int, last: int) -> None:
        """Appends a letter. It is on disk when this returns."""
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
        self._open().append([Entry.of([msgspec.json.encode(letter)], asked.id)])

    def read(self, number: int) -> Letter | None:
        """Returns the letter with this number; None if there is none."""
        if self._reader is None:
            self._reader = self._logs.reader(self._stream, record=number)
        self._reader.reload()
        return next(_from(self._reader, number), (0, None))[1]

    def close(self) -> None:
        for file in (self._writer, self._reader):
            if file is not None:
                file.close()
        self._writer = self._reader = None

    def _open(self) -> EventLogWriter:
        if self._writer is None:
            self._writer = self._logs.writer(self._stream, FOR_EVER)
        return self._writer


def letters(store: Path, action: str, start: int = 0) -> Iterator[tuple[int, Letter]]:
    """Yields the dead letters of an action from number `start` on, with their numbers."""
    with closing(LogReader(failed_log(store, action))) as reader:
        yield from _from(reader, start)


def _from(reader: LogReader, start: int) -> Iterator[tuple[int, Letter]]:
    for block in reader.blocks(reader.find(start)[0], reader.end[0]):
        for number, line in enumerate(block.lines, block.first):
            if number >= start:
                yield number, _letter(line)
