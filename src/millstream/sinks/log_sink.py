"""An event log to which each batch is published whole, exactly once.

Rows are JSON lines, as in the files of a JSON sink. A batch is one block or, if it is large,
several, each tagged with the query, the batch and its part. Batches come in rising order, and a
batch that was begun is published again before the next; so the query's last tag in the log says
what has been published. If others have written to the log since, the log is searched for that tag.

A log in a place may have two writers: a driver, and the one that it took over from. Both publish
the same batches under the same tags, and each reads what the other has appended before it appends.
So each batch is in the log once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from millstream.errors import LogError, LogLocked, SinkError
from millstream.log.blocks import Tag
from millstream.log.entries import Entry
from millstream.log.place_writer import EventLogWriter
from millstream.log.reader import LogReader
from millstream.log.retention import Retention
from millstream.log.stream_logs import FolderLogs, StreamLogs
from millstream.sinks.columns import Columns
from millstream.sinks.row_files import JsonRows, Row

BLOCK_BYTES = 4 * 1024 * 1024
"""The approximate size of a block of a batch."""


class PublishedBatches:
    """The last batch and part of a query in a log; all before it are in the log too."""

    def __init__(self, query: str) -> None:
        self._query = query
        self.last = -1, -1

    @property
    def is_complete(self) -> bool:
        return self.last != (-1, -1)

    def get(self, tag: str) -> Tag | None:
        """Returns a `Tag` if the tag was published; None if it was not."""
        number = self.number(tag)
        return None if number is None or number > self.last else Tag(tag, 0, 0, 0)

    def add(self, tags: Sequence[Tag]) -> None:
        self.last = max(self.last, *(self.number(tag.tag) or (-1, -1) for tag in tags))

    def forget_before(self, record: int) -> None:
        pass

    def number(self, tag: str) -> tuple[int, int] | None:
        """Returns the batch and part of a tag of this query; None if it is another query's."""
        query, _, rest = tag.partition(":")
        if query != self._query:
            return None
        batch, _, part = rest.partition(":")
        return int(batch), int(part)


class LogSink:
    """The log of one stream. It is created and held open from the first row on."""

    def __init__(
        self,
        path: Path,
        query: str,
        columns: Columns,
        retention: Retention | None = None,
        logs: StreamLogs | None = None,
    ) -> None:
        """`logs` has the log under the path's last name. None: it is in the path's folder."""
        self._path = path
        self._query = query
        self._rows = JsonRows(columns)
        self._retention = retention or Retention()
        self._logs: StreamLogs = logs or FolderLogs(path.parent)
        self._writer: EventLogWriter | None = None
        self._done = PublishedBatches(query)

    def publish(self, batch: int, rows: list[Row]) -> None:
        """Adds a batch's rows, unless the log has them; they are on disk when this returns.

        Raises SinkError if the log cannot be written; a retry may succeed.
        """
        if not rows:
            return
        try:
            writer = self._open()
            for part, lines in enumerate(_parts(self._rows.lines(rows))):
                if (batch, part) > self._done.last:
                    tag = f"{self._query}:{batch}:{part}"
                    writer.append([Entry.of(lines, tag)])
                    self._done.add([Tag(tag, 0, 0, 0)])
        except LogLocked:
            raise
        except LogError as error:
            self.close()  # the next attempt opens the log again, and reads what it has
            raise SinkError(
                f"sink {self._path}: batch {batch} cannot be written: {error}"
            ) from error

    def last_batch(self) -> int:
        """Returns the last batch of this query in the log; -1 if there is none. LogError if the log
        is damaged."""
        if not self._logs.has(self._path.name):
            return -1  # opening it would create it
        self._open()
        return self._done.last[0]

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _open(self) -> EventLogWriter:
        if self._writer is None:
            done = PublishedBatches(self._query)
            writer = self._logs.writer(self._path.name, self._retention, done)
            try:
                if not done.is_complete:
                    done.last = done.number(writer.last_tag) or self._look(done)
            except BaseException:
                writer.close()
                raise
            self._writer, self._done = writer, done
        return self._writer

    def _look(self, done: PublishedBatches) -> tuple[int, int]:
        """Searches the log for the last batch and part of this query; others may have written
        after it."""
        if not self._path.exists():
            return done.last
        reader = LogReader(self._path)
        try:
            published = (
                done.number(tag.tag)
                for block in reader.blocks(reader.start[0], reader.end[0])
                for tag in block.tags
            )
            return max(filter(None, published), default=(-1, -1))
        finally:
            reader.close()


def _parts(lines: list[bytes]) -> Iterator[list[bytes]]:
    """Cuts lines into parts of about BLOCK_BYTES, always in the same way."""
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
