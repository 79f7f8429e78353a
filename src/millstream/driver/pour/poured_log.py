"""Pours the batches of a query into the event log of a source, each exactly once.

DESIGN
------
A batch is identified by its query and its number, which rises. It is appended to the log whole, or
not at all:

- a batch that fits into a block is one append, tagged with query, batch and part 0;
- the lines of a larger batch are first written to files on disk, and a record names these files
  (`PendingPour`). Then the batch is appended part by part. After a crash the next opening appends
  the missing parts from the same files: the query need not return the same rows in the same order
  again.

After each batch, a record in the store is updated with the last batch of each query and the end of
the log. A crash between the append and the record leaves a tag after that position, which the next
opening finds. So retention may remove old blocks together with their tags.

`pour_storage` decides where all this is stored: in a folder or in a place.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

from millstream.driver.pour.pour_storage import SUFFIX, PourStorage
from millstream.errors import StoreError
from millstream.log.entries import Entry
from millstream.log.poured_record import PendingPour, Poured

BLOCK_BYTES = 4 * 1024 * 1024
"""The approximate size of a block: the readers of a log must be able to hold it in memory."""
QUERIES = 1_000
"""The number of latest queries to remember: each new checkpoint is a new query."""
TAG = "poured"
GATHERED = f"gathered{SUFFIX}"


class Piece(NamedTuple):
    """Some lines of a batch, each with its newline: in memory, or in a file of the storage."""

    lines: bytes
    file: str = ""
    size: int = 0
    """The size of the file in bytes."""


class PouredLog:
    """The log of a source, held from its opening on. Used by one thread at a time."""

    def __init__(self, storage: PourStorage, source: str) -> None:
        self.storage = storage
        self._source = source
        try:
            self._poured = self._recovered()
        except BaseException:
            self.close()
            raise

    @property
    def end(self) -> list[int]:
        """The position after everything that was poured."""
        return self.storage.writer.end

    def has(self, query: str, batch: int) -> bool:
        """True if the batch was poured already."""
        return batch <= self._poured.batches.get(query, -1)

    def pour(self, query: str, batch: int, pieces: Sequence[Piece]) -> None:
        """Appends a batch that the log does not have; it is on disk when this returns.

        After an error the log must be reopened, to find out how much was appended. The files are
        deleted once they are no longer needed.
        """
        size = sum(piece.size or len(piece.lines) for piece in pieces)
        if size > BLOCK_BYTES:
            self._poured.pending = PendingPour(query, batch, self._gathered(pieces))
            self._remember()
            self._append_pending(0)
            return
        lines = b"".join(self._read(piece.file) if piece.file else piece.lines for piece in pieces)
        if lines:
            self._append(query, batch, 0, lines[:-1].split(b"\n"))
            self._finish(query, batch)
        self.storage.clear()

    def close(self) -> None:
        self.storage.close()

    def _append(self, query: str, batch: int, part: int, lines: list[bytes]) -> None:
        self.storage.writer.append([Entry.of(lines, f"{TAG}:{query}:{batch}:{part}")])

    def _append_pending(self, begin: int) -> None:
        """Appends the parts of a large batch, from the part `begin` on."""
        pending = self._poured.pending
        assert pending is not None
        for part, lines in enumerate(self._parts(pending.files)):
            if part >= begin:
                lines = [line[:-1] for line in lines]
                self._append(pending.query, pending.batch, part, lines)
        self._finish(pending.query, pending.batch)
        self.storage.clear()

    def _finish(self, query: str, batch: int) -> None:
        """Records that the log has the whole batch."""
        self._poured.batches.pop(query, None)
        self._poured.batches[query] = batch
        while len(self._poured.batches) > QUERIES:
            del self._poured.batches[next(iter(self._poured.batches))]
        self._poured.pending = None
        self._remember()

    def _remember(self) -> None:
        self._poured.end = self.end
        self.storage.write(msgspec.json.encode(self._poured))

    def _recovered(self) -> Poured:
        """Reads the record of what was poured, and adds the last batch if it is missing there."""
        data = self.storage.read()
        self._poured = Poured() if data is None else msgspec.json.decode(data, type=Poured)
        if self._poured.end > self.end:
            raise StoreError(
                f"{self.storage.record}: source {self._source!r} was poured into up to "
                f"{self._poured.end}, and its log {self.storage.log} ends at {self.end}; was the "
                "log replaced? Restore it, or begin with a fresh store"
            )
        # Nobody else has poured into the log since that position was recorded: what was poured
        # after it is either one batch, or parts of the pending batch.
        last = max(self._tags_since(self._poured.end), default=None, key=lambda tag: tag[2])
        if self._poured.pending is not None:
            self._append_pending(0 if last is None else last[2] + 1)
        elif last is not None:
            self._finish(last[0], last[1])
        self.storage.clear()
        return self._poured

    def _tags_since(self, position: Sequence[int]) -> Iterator[tuple[str, int, int]]:
        """Yields query, batch and part of what was poured after a position."""
        for tag in self.storage.tags_since(position):
            kind, _, rest = tag.tag.partition(":")
            if kind == TAG:
                query, batch, part = rest.rsplit(":", 2)
                yield query, int(batch), int(part)

    def _gathered(self, pieces: Sequence[Piece]) -> list[str]:
        """Writes the lines in memory to a file too; returns all files of the batch, durable."""
        files = [piece.file for piece in pieces if piece.file]
        in_memory = b"".join(piece.lines for piece in pieces)
        if in_memory:
            files.append(self.storage.keep(GATHERED, in_memory))
        self.storage.secure()
        return files

    def _read(self, name: str) -> bytes:
        with self.storage.open(name) as file:
            return file.read()

    def _parts(self, files: Sequence[str]) -> Iterator[list[bytes]]:
        """Yields the lines of files in parts of about BLOCK_BYTES; same files, same parts."""
        part: list[bytes] = []
        size = 0
        for name in files:
            try:
                file = self.storage.open(name)
            except FileNotFoundError:
                raise StoreError(
                    f"{name}: is missing, and a part of it is in the log of source "
                    f"{self._source!r}; if no other process pours there by now, restore it, or the "
                    "whole store from a copy"
                ) from None
            with file:
                while lines := file.readlines(BLOCK_BYTES - size):
                    part += lines
                    size += sum(map(len, lines))
                    if size >= BLOCK_BYTES:
                        yield part
                        part, size = [], 0
        if part:
            yield part
