"""An event log to which each batch is published whole, exactly once.

Rows are JSON lines, as in the files of a JSON sink. A batch is one block or, if it is large,
several, each tagged with the query, the batch and its part. Batches come in rising order, and a
batch that was begun is published again before the next; so the query's last tag in the log tells
what is there already. Others may have written to the log since: then it is looked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from millstream.errors import LogError, LogLocked, SinkError
from millstream.log.reader import LogReader
from millstream.log.retention import Retention
from millstream.log.writer import Entry, LogWriter
from millstream.sinks.columns import Columns
from millstream.sinks.row_files import JsonRows, Row, decode_row

BLOCK_BYTES = 4 * 1024 * 1024
"""About how much of a batch goes into one block."""


class LogSink:
    """The log of one stream. It is made, and held, from the first row on."""

    def __init__(
        self, path: Path, query: str, columns: Columns, retention: Retention | None = None
    ) -> None:
        self._path = path
        self._query = query
        self._rows = JsonRows(columns)
        self._retention = retention or Retention()
        self._writer: LogWriter | None = None
        self._done = -1, -1
        """The last batch and part of this query that the log has."""

    def publish(self, batch: int, rows: list[Row]) -> None:
        """Add a batch's rows, unless they are there; they are on disk when this returns.

        SinkError if the log cannot take them: then it may be tried again.
        """
        if not rows:
            return
        try:
            writer = self._open()
            for part, lines in enumerate(_parts(self._rows.lines(rows))):
                if (batch, part) > self._done:
                    writer.append([Entry(lines, f"{self._query}:{batch}:{part}")])
                    self._done = batch, part
        except LogLocked:
            raise
        except LogError as error:
            self.close()  # the next try opens it anew, and looks at what it has
            raise SinkError(
                f"sink {self._path}: batch {batch} cannot be written: {error}"
            ) from error

    def last_batch(self) -> int:
        """The last batch that the log has of this query; -1 if it has none. LogError if it is
        damaged."""
        if not self._path.exists():
            return -1  # opening it would make it
        self._open()
        return self._done[0]

    def close(self) -> None:
        """Let go of the log."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _open(self) -> LogWriter:
        if self._writer is None:
            writer = LogWriter(self._path, retention=self._retention, tags=False)
            try:
                self._done = self._number(writer.last_tag) or self._look()
            except BaseException:
                writer.close()
                raise
            self._writer = writer
        return self._writer

    def _look(self) -> tuple[int, int]:
        """The last batch and part of this query that the log has, whoever wrote after it."""
        reader = LogReader(self._path)
        try:
            found = (
                self._number(tag.tag)
                for block in reader.blocks(reader.start[0], reader.end[0])
                for tag in block.tags
            )
            return max(filter(None, found), default=(-1, -1))
        finally:
            reader.close()

    def _number(self, tag: str) -> tuple[int, int] | None:
        """The batch and part that a tag of this query names; None if it is of another."""
        query, _, rest = tag.partition(":")
        if query != self._query:
            return None
        batch, _, part = rest.partition(":")
        return int(batch), int(part)


def _parts(lines: list[bytes]) -> Iterator[list[bytes]]:
    """Lines in parts of about BLOCK_BYTES, the same for the same lines."""
    part: list[bytes] = []
    size = 0
    for line in lines:
        part.append(line)
        size += len(line)
        if size >= BLOCK_BYTES:
            yield part
            part, size = [], 0
    if part:
        yield part


def read_log_rows(path: Path) -> Iterator[Row]:
    """All rows of a sink's log that are still kept, as they were published."""
    reader = LogReader(path)
    try:
        for block in reader.blocks(reader.start[0], reader.end[0]):
            yield from map(decode_row, block.lines)
    finally:
        reader.close()
