"""Where a source's records lie: files in a directory, or an event log.

Either way a position is two numbers, the planner decides how far a batch goes, and the batch's
tasks read what lies between two positions, in splits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

from millstream.errors import StoreError
from millstream.log.reader import LogReader
from millstream.model.text_form import PLAIN_TEXT, TextForm
from millstream.sources.address import LOG, Address
from millstream.sources.files import NOWHERE, FileLog, Position
from millstream.sources.formats import (
    CHUNK_RECORDS,
    Chunk,
    Format,
    Split,
    format_named,
)
from millstream.sources.json_lines import Fields, JsonLines, decode_lines
from millstream.stores.home import Home
from millstream.stores.progress import Progress


class Input(Protocol):
    """The records of a source, as the driver sees them."""

    @property
    def begin(self) -> Position:
        """Where a source that has taken nothing begins."""

    @property
    def end(self) -> Position: ...

    @property
    def folders(self) -> list[str]:
        """Where something changes when there is more; see `input_watch`."""

    def look(self) -> list[str]:
        """See what is new. Gives warnings to show."""

    def take(self, position: Sequence[int], max_bytes: int | None = None) -> Position: ...

    def splits(
        self, start: Sequence[int], end: Sequence[int], target_bytes: int
    ) -> list[Split]: ...

    def bytes_between(self, start: Sequence[int], end: Sequence[int]) -> int: ...

    def records_after(self, position: Sequence[int]) -> int | None:
        """How many records are to come after a position; None if that is not known."""

    def stamp_at(self, position: Sequence[int]) -> int | None:
        """When the record at a position came in; None if that is not known."""

    def commit(self, reader: str, position: Sequence[int]) -> None:
        """The reader is done with what comes before the position."""

    def knows(self, reader: str) -> bool:
        """Whether the reader has committed here before."""

    def close(self) -> None: ...


class FileInput(FileLog):
    """The files of a directory."""

    def __init__(self, log: str, directory: str, format: Format, *, write: bool) -> None:
        super().__init__(log, format, write=write)
        self._directory = directory

    @property
    def begin(self) -> Position:
        return NOWHERE

    @property
    def folders(self) -> list[str]:
        return self.directories or [self._directory]

    def look(self) -> list[str]:
        return self.refresh(self._directory).warnings

    def records_after(self, position: Sequence[int]) -> int | None:
        return None  # nobody has counted the records of a file that was not read

    def stamp_at(self, position: Sequence[int]) -> int | None:
        return None

    def commit(self, reader: str, position: Sequence[int]) -> None:
        pass  # files are the user's to delete

    def knows(self, reader: str) -> bool:
        return True


class LogInput:
    """An event log."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._reader = LogReader(Path(path))

    @property
    def begin(self) -> Position:
        return self._reader.start  # of a log that others have read before, the old may be gone

    @property
    def end(self) -> Position:
        return self._reader.end

    @property
    def folders(self) -> list[str]:
        return [self._path]

    def look(self) -> list[str]:
        self._reader.reload()
        return []

    def take(self, position: Sequence[int], max_bytes: int | None = None) -> Position:
        return self._reader.take(position, max_bytes)

    def splits(self, start: Sequence[int], end: Sequence[int], target_bytes: int) -> list[Split]:
        pieces = self._reader.splits(start, end, target_bytes)
        return [Split(self._path, *piece) for piece in pieces]

    def bytes_between(self, start: Sequence[int], end: Sequence[int]) -> int:
        return self._reader.bytes_between(start, end)

    def records_after(self, position: Sequence[int]) -> int:
        return self.end[1] - position[1]

    def stamp_at(self, position: Sequence[int]) -> int | None:
        return self._reader.stamp_at(position)

    def commit(self, reader: str, position: Sequence[int]) -> None:
        self._reader.commit(reader, position)

    def knows(self, reader: str) -> bool:
        return self._reader.knows(reader)

    def close(self) -> None:
        self._reader.close()


class _LogFormat:
    """Stands in the record of a source's files for one that reads a log and has none."""

    name = LOG


def open_input(
    home: Home, source: str, address: Address, text: TextForm, *, write: bool = False
) -> Input:
    """The records of a source, laid out as `text` says; `write` in one process only, the driver."""
    record = str(home.source_log(source))
    if address.format != LOG:
        return FileInput(record, address.path, format_named(address.format, text), write=write)
    # What the source was until now is remembered there; positions of files mean nothing in a log.
    FileLog(record, _LogFormat(), write=write).close()  # type: ignore[arg-type]  # only its name
    return LogInput(address.path)


def position_of(progress: Progress, source: str) -> Position | None:
    """How far a source was taken in; None if nothing was."""
    known = progress.sources.get(source)
    return known.position or None if known is not None else None


def register(home: Home, name: str, source: Input, position: Position | None) -> None:
    """Commit for the first time in a run.

    StoreError if the source's place is in another log: every log that it was taken from knows it.
    """
    if position is not None and not source.knows(_reader(home, name)):
        raise StoreError(
            f"{home.path}: source {name!r} was taken in up to {position}, and its log does not "
            "know that it was read by this store; was the log replaced? Restore it, or begin with "
            "a fresh store"
        )
    commit(home, name, source, position)


def commit(home: Home, name: str, source: Input, position: Position | None) -> None:
    """Tell a source how far the store's application is with it: retention waits for that."""
    source.commit(_reader(home, name), position or source.begin)


def _reader(home: Home, source: str) -> str:
    """A source's name in its log; two sources may read one log."""
    return f"{home.facts.app}-{home.facts.id[:8]}-{source}"


def read_split(
    format: str, split: Split, fields: Fields | None = None, text: TextForm = PLAIN_TEXT
) -> Iterator[Chunk]:
    """The records of a split; with `fields`, no more of them than these where that will do."""
    if format == JsonLines.name:
        yield from JsonLines().read(split, fields)
        return
    if format != LOG:
        yield from format_named(format, text).read(split)
        return
    reader = LogReader(Path(split.path))
    lines: list[bytes] = []
    stamps: list[int] = []
    first = 0
    try:
        for block in reader.blocks(split.start, split.stop or 0):
            if not lines:
                first = block.first
            lines += block.lines
            stamps += [block.stamp] * len(block.lines)
            if len(lines) >= CHUNK_RECORDS:
                yield _chunk(lines, stamps, first)
                lines, stamps = [], []
        if lines:
            yield _chunk(lines, stamps, first)
    finally:
        reader.close()


def _chunk(lines: list[bytes], stamps: list[int], first: int) -> Chunk:
    """Records that are numbered through the log: a dead letter's line is its record's number."""
    chunk = decode_lines(lines, 0, lambda: first - 1)
    if chunk.lines is not None:
        stamps = [stamps[line] for line in chunk.lines]
    return chunk._replace(stamps=stamps)
