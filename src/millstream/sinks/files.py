"""A directory of files to which each batch is published whole, exactly once.

DESIGN
------
A batch is added to the query's current file by replacing the file: the old content and the new rows
go to a hidden file beside it, which is then renamed over it. So a reader of the directory sees a
batch whole or not at all, and small batches make no small files. Past `FILE_BYTES` a new file
begins, named after its first batch: `part-1a2b3c4d-00000012.jsonl`.

A hidden record, `.millstream-1a2b3c4d.json`, makes a repeat harmless. It describes the last batch
begun: its file, and the file's length *before* and *after* the batch. Both files are written and
synced first, then the record is renamed, then the data, then the directory is synced. Whatever a
crash leaves of the two renames, in whatever order, the next attempt recovers:

- the record is new: the batch is the last one begun, and the file becomes `old[:before] + rows`,
  whether or not it already holds the batch;
- the record is old: the batch is a new one, and follows the content that the record describes:
  `old[:after] + rows`. The record also decides if there is room, so the file is the same one.

Batches come in rising order, and a batch that was begun is published again before the next (the
staged output ensures that). A batch before the last is already published, and is skipped. If a file
has been removed from the directory, a new one begins. A new one also begins if the declared type,
and so the columns, have changed. If the last batch is published again then, the old file is first
cut back to its content before that batch.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, replace

from millstream.column_types import ColumnType
from millstream.durable import sync, write_synced
from millstream.errors import RunError, SinkError, StoreError
from millstream.sinks.columns import Columns
from millstream.sinks.row_files import Row, RowFile, row_file

FILE_BYTES = 4 * 1024 * 1024
"""The size at which a file is complete: the next batch begins another."""


@dataclass(frozen=True, slots=True)
class BegunBatch:
    """The record of the last batch begun."""

    query: str
    name: str
    file: str
    last: int
    base: int
    """The file's length before the batch `last`: bytes of JSON lines, rows of Parquet."""
    length: int
    """The file's length with that batch."""
    size: int
    """The same, always in bytes."""
    form: str = ""
    """The form of the file's columns, if they are made from a declared type."""


def record_path(directory: str, query_id: str) -> str:
    """Returns the path of the record of a query's sink in a directory."""
    return os.path.join(directory, f".millstream-{_shortened(query_id)}.json")


def read_begun(record: str) -> BegunBatch | None:
    """Reads the record of a sink; None if there is none, StoreError if it is damaged."""
    try:
        with open(record, "rb") as file:
            return BegunBatch(**json.load(file))
    except FileNotFoundError:
        return None
    except (ValueError, TypeError) as error:
        raise StoreError(
            f"sink record {record}: must be as Millstream wrote it; got: {error}; "
            "restore it, or name another directory"
        ) from None


def _shortened(query_id: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "", query_id)[:8]


class FileSink:
    """The files of one query in a directory. There is one sink, and one writer, for each."""

    def __init__(
        self,
        directory: str,
        format: str,
        query_id: str,
        columns: Columns,
        *,
        name: str = "",
        file_bytes: int = FILE_BYTES,
        record: ColumnType | None = None,
    ) -> None:
        """`name` is the stream's name, which distinguishes two sinks of a query in one directory.

        `record` is the type of the values, for columns of Parquet.
        """
        self.directory = directory
        self._format: RowFile = row_file(format, columns, record)
        self._query = query_id
        self._name = name
        self._file_bytes = file_bytes
        self._short = _shortened(query_id)
        if not self._short:
            raise RunError(f"sink {directory}: a query id must have letters; got {query_id!r}")
        self._record = record_path(directory, query_id)
        self._ready = False
        """True if the directory existed and could be written at the last check."""
        self._prepare()

    def publish(self, batch: int, rows: list[Row]) -> None:
        """Adds a batch's rows; a repeat replaces them. They are on disk when this returns.

        Raises SinkError if they cannot be written; a retry may succeed.
        """
        if not self._ready:
            self._prepare()
        try:
            begun = self._begun()
            if begun is not None and batch < begun.last:
                return
            repeat = begun is not None and batch == begun.last
            if rows or repeat:
                self._replace(self._next(begun, batch), rows)
        except OSError as error:
            self._ready = False  # the directory may be created again before the next attempt
            raise SinkError(
                f"sink {self.directory}: batch {batch} cannot be written: "
                f"{error.strerror or error}; make room or give the right to write there"
            ) from error

    def close(self) -> None:
        """Does nothing: nothing is held open between two batches."""

    def _prepare(self) -> None:
        """Creates the directory, checks that it can be written, and removes a crash's leftovers."""
        left_behind = (f".part-{self._short}-", f".millstream-{self._short}.")
        probe = os.path.join(self.directory, f".part-{self._short}-probe.tmp")
        try:
            os.makedirs(self.directory, exist_ok=True)
            os.close(os.open(probe, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
            os.unlink(probe)
            for name in os.listdir(self.directory):
                if name.startswith(left_behind) and name.endswith(".tmp"):
                    os.unlink(os.path.join(self.directory, name))
        except OSError as error:
            raise SinkError(
                f"sink {self.directory}: must be a directory that can be written; got: "
                f"{error.strerror or error}; give the right to write there, or name another"
            ) from None
        self._ready = True

    def _begun(self) -> BegunBatch | None:
        begun = read_begun(self._record)
        if begun is None:
            return None
        for part, theirs, ours in (
            ("query", begun.query, self._query),
            ("sink", begun.name, self._name),
        ):
            if theirs != ours:
                raise StoreError(
                    f"sink {self.directory}: {part} {ours!r} cannot write where {part} {theirs!r} "
                    "does; give each sink a directory of its own"
                )
        if not begun.file.endswith(self._format.suffix):
            raise StoreError(
                f"sink {self.directory}: this query has written {begun.file} there, and the "
                f"address now asks for {self._format.suffix[1:]}; give it its old address, or "
                "another directory"
            )
        return begun

    def _next(self, begun: BegunBatch | None, batch: int) -> BegunBatch:
        """Returns the record for a batch; its length is not known yet."""
        if begun is not None:
            repeat = batch == begun.last
            base = begun.base if repeat else begun.length
            path = os.path.join(self.directory, begun.file)
            exists, fits = os.path.exists(path), begun.form == self._format.form
            has_room = repeat or begun.size < self._file_bytes
            if has_room and (base == 0 or (exists and fits)):
                return replace(begun, last=batch, base=base, form=self._format.form)
            if repeat and exists and not fits:
                self._cut(path, base)
        file = f"part-{self._short}-{batch:08}{self._format.suffix}"
        return BegunBatch(self._query, self._name, file, batch, 0, 0, 0, self._format.form)

    def _cut(self, path: str, length: int) -> None:
        """Cuts a file back to its content at that length."""
        content, _ = self._format.extended(path, length, [])
        fresh = os.path.join(self.directory, f".{os.path.basename(path)}.tmp")
        write_synced(fresh, content)
        os.replace(fresh, path)
        sync(self.directory)

    def _replace(self, begun: BegunBatch, rows: list[Row]) -> None:
        path = os.path.join(self.directory, begun.file)
        content, length = self._format.extended(path, begun.base, rows)
        begun = replace(begun, length=length, size=len(content))
        record = json.dumps(asdict(begun)).encode()
        new_path = os.path.join(self.directory, f".{begun.file}.tmp")
        new_record = self._record + ".tmp"
        try:
            write_synced(new_path, content)
            write_synced(new_record, record)
            os.replace(new_record, self._record)
            if length:
                os.replace(new_path, path)
            else:
                os.unlink(new_path)
                with suppress(FileNotFoundError):
                    os.unlink(path)
            sync(self.directory)
        except OSError:
            for left in (new_path, new_record):
                with suppress(OSError):
                    os.unlink(left)
            raise
