"""The event log of a source into which the batches of a query are poured, each exactly once.

DESIGN
------
A batch is known by its query and its number, which rises. It is appended to the log whole, or not
at all:

- one that fits into a block is one append, tagged with query, batch and part 0;
- of a larger one all lines are first on disk, in files of their own, and a record says so
  (`Pending`). Then it is appended part by part. After a crash the next opening appends the parts
  that are missing, from the same files: the query need not give the same rows in the same order
  again.

After each batch, a record in the store says which was the last one of each query, and where the log
ended then. A crash between the append and the record leaves a tag behind that position, which the
next opening finds. So retention may remove old blocks, tags and all.

    poured/SOURCE/last.json     the record
    poured/SOURCE/*.lines       lines of a batch that is being poured
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from millstream.durable import read_record, sync, write_record, write_synced
from millstream.errors import StoreError
from millstream.log.reader import LogReader
from millstream.log.retention import Retention
from millstream.log.writer import Entry, LogWriter

BLOCK_BYTES = 4 * 1024 * 1024
"""About how much of a batch goes into one block: who reads a log must be able to hold it."""
QUERIES = 1_000
"""How many queries are remembered, the last ones: each new checkpoint is a new query."""
TAG = "poured"
GATHERED = "gathered.lines"


class Piece(NamedTuple):
    """Some lines of a batch, each with its newline: at hand, or in a file of the log's folder."""

    lines: bytes
    file: str = ""
    size: int = 0
    """Bytes of the file."""


class Pending(msgspec.Struct, frozen=True):
    """A large batch, all of it in files, of which the log may have some parts."""

    query: str
    batch: int
    files: list[str]


class Poured(msgspec.Struct):
    """What was poured into a source."""

    batches: dict[str, int] = {}
    """The last batch of each query, the query that was poured last at the end."""
    end: list[int] = msgspec.field(default_factory=lambda: [0, 0])
    """Where the log ended when this was written."""
    pending: Pending | None = None


class PouredLog:
    """The log of a source, held from its opening on. Belongs to one thread at a time."""

    def __init__(self, store: Path, source: str, log: Path, retention: Retention) -> None:
        """LogLocked if another process writes to the log."""
        self.folder = folder_of(store, source)
        self._record = self.folder / "last.json"
        self._source = source
        self._make_folder()
        self._writer = LogWriter(log, retention=retention, tags=False)
        try:
            self._poured = self._recovered()
        except BaseException:
            self.close()
            raise

    @property
    def end(self) -> list[int]:
        """The position behind everything that was poured."""
        return self._writer.end

    def has(self, query: str, batch: int) -> bool:
        """Whether the batch was poured already."""
        return batch <= self._poured.batches.get(query, -1)

    def pour(self, query: str, batch: int, pieces: Sequence[Piece]) -> None:
        """Append a batch that the log does not have; it is on disk when this returns.

        After an error the log must be opened anew: only that tells how far it came. The files are
        gone once they are no longer needed.
        """
        size = sum(piece.size or len(piece.lines) for piece in pieces)
        if size > BLOCK_BYTES:
            self._poured.pending = Pending(query, batch, self._gathered(pieces))
            self._remember()
            self._append_pending(0)
            return
        lines = b"".join(
            (self.folder / piece.file).read_bytes() if piece.file else piece.lines
            for piece in pieces
        )
        if lines:
            self._append(query, batch, 0, lines[:-1].split(b"\n"))
            self._finish(query, batch)
        self._clear()

    def close(self) -> None:
        """Let go of the log."""
        self._writer.close()

    def _append(self, query: str, batch: int, part: int, lines: list[bytes]) -> None:
        self._writer.append([Entry(lines, f"{TAG}:{query}:{batch}:{part}")])

    def _append_pending(self, begin: int) -> None:
        """Append the parts of a large batch from the part `begin` on."""
        pending = self._poured.pending
        assert pending is not None
        for part, lines in enumerate(self._parts(pending.files)):
            if part >= begin:
                lines = [line[:-1] for line in lines]
                self._append(pending.query, pending.batch, part, lines)
        self._finish(pending.query, pending.batch)
        self._clear()

    def _finish(self, query: str, batch: int) -> None:
        """Remember that the log has the whole batch."""
        self._poured.batches.pop(query, None)
        self._poured.batches[query] = batch
        while len(self._poured.batches) > QUERIES:
            del self._poured.batches[next(iter(self._poured.batches))]
        self._poured.pending = None
        self._remember()

    def _remember(self) -> None:
        self._poured.end = self.end
        write_record(self._record, msgspec.json.encode(self._poured))

    def _recovered(self) -> Poured:
        """What was poured, of which the record may not know the last yet."""
        data = read_record(self._record)
        self._poured = Poured() if data is None else msgspec.json.decode(data, type=Poured)
        if self._poured.end > self.end:
            raise StoreError(
                f"{self._record}: source {self._source!r} was poured into up to "
                f"{self._poured.end}, and its log {self._writer.path} ends at {self.end}; was the "
                "log replaced? Restore it, or begin with a fresh store"
            )
        # The log was ours alone since that position was written: what follows it of ours is either
        # one batch, or parts of the one that is pending.
        last = max(self._tags_since(self._poured.end), default=None, key=lambda tag: tag[2])
        if self._poured.pending is not None:
            self._append_pending(0 if last is None else last[2] + 1)
        elif last is not None:
            self._finish(last[0], last[1])
        self._clear()
        return self._poured

    def _tags_since(self, position: Sequence[int]) -> Iterator[tuple[str, int, int]]:
        """Query, batch and part of what was poured after a position."""
        with closing(LogReader(self._writer.path)) as reader:
            begin = max(list(position), reader.start)[0]
            for block in reader.blocks(begin, reader.end[0]):
                for tag in block.tags:
                    kind, _, rest = tag.tag.partition(":")
                    if kind == TAG:
                        query, batch, part = rest.rsplit(":", 2)
                        yield query, int(batch), int(part)

    def _gathered(self, pieces: Sequence[Piece]) -> list[str]:
        """Put what is at hand into a file too; the files of the batch, all of them on disk."""
        files = [piece.file for piece in pieces if piece.file]
        at_hand = b"".join(piece.lines for piece in pieces)
        if at_hand:
            write_synced(self.folder / GATHERED, at_hand)
            files.append(GATHERED)
        sync(self.folder)
        return files

    def _parts(self, files: Sequence[str]) -> Iterator[list[bytes]]:
        """The lines of files in parts of about BLOCK_BYTES, the same for the same files."""
        part: list[bytes] = []
        size = 0
        for name in files:
            try:
                file = (self.folder / name).open("rb")
            except FileNotFoundError:
                raise StoreError(
                    f"{self.folder / name}: is missing, and a part of it is in the log of source "
                    f"{self._source!r}; restore the file, or the whole store from a copy"
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

    def _clear(self) -> None:
        """Remove lines that are in the log, or that a batch which failed has left."""
        for path in self.folder.glob("*.lines"):
            path.unlink(missing_ok=True)

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            sync(self.folder.parent)
            sync(self.folder.parent.parent)
        except OSError as error:
            raise StoreError(
                f"{self.folder}: cannot be made: {error.strerror or error}; give the right to "
                "write there"
            ) from None


def folder_of(store: Path, source: str) -> Path:
    """Where a store keeps what belongs to the pouring into a source."""
    return store / "poured" / source
