"""The records of a source: files in a directory, an event log, or a Kafka topic.

In each case a position is a list of numbers whose meaning only the input knows. The planner decides
how far a batch goes, and the batch's tasks read the range between two positions, in splits. A
position may grow longer: a source with several parts has one number for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Protocol

from millstream.columnar.picked_fields import Fields
from millstream.driver.inputs.input_shares import InputShare, cut_shares
from millstream.driver.inputs.kafka_input import KafkaInput
from millstream.errors import StoreError
from millstream.kafka.topic import SourceTopic, source_topic
from millstream.log.placed_blocks import LogObjects
from millstream.log.reader import Block, LogReader
from millstream.log.stream_logs import PlaceLogs
from millstream.model.text_form import PLAIN_TEXT, TextForm
from millstream.places.piece_log import PieceLog
from millstream.sources.address import KAFKA, LOG, Address
from millstream.sources.files import NOWHERE, FileLog, Position
from millstream.sources.formats import CHUNK_RECORDS, Chunk, Format, InputSplit
from millstream.sources.json_lines import JsonLines, decode_lines
from millstream.sources.named_format import format_named
from millstream.sources.picked import picker
from millstream.sources.record_log import RecordLog, list_pieces
from millstream.stores.home import Home
from millstream.stores.progress import Progress


class Input(Protocol):
    """The records of a source, as the driver sees them."""

    stream: str
    """The stream whose log this is, if the log is in the place of the store; else empty."""

    @property
    def begin(self) -> Position:
        """The position at which a source starts that has read nothing yet."""

    @property
    def end(self) -> Position: ...

    @property
    def folders(self) -> list[str]:
        """The folders that change when there are more records; see `input_watch`."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Has `changed` called, in any thread, for new records that change no folder."""

    def look(self) -> list[str]:
        """Checks for new records. Returns warnings to show."""

    def learn(self, record_bytes: float) -> None:
        """Takes the average size of the records read last, for inputs that must estimate sizes."""

    def take(self, position: Sequence[int], max_bytes: int | None = None) -> Position: ...

    def shares(self, start: Sequence[int], end: Sequence[int], parts: int) -> list[InputShare]:
        """Divides what is between two positions for about `parts` tasks, as far as it can be."""

    def bytes_between(self, start: Sequence[int], end: Sequence[int]) -> int: ...

    def records_after(self, position: Sequence[int]) -> int | None:
        """Returns how many records follow a position; None if that is not known."""

    def stamp_at(self, position: Sequence[int]) -> int | None:
        """Returns when the record at a position arrived; None if that is not known."""

    def commit(self, reader: str, position: Sequence[int]) -> None:
        """Records that the reader no longer needs what comes before the position."""

    def knows(self, reader: str) -> bool:
        """True if the reader has committed here before."""

    def located(self, split: InputSplit) -> LogObjects | SourceTopic | None:
        """Returns where other hosts find the records of a split, if its path does not say so."""

    def close(self) -> None: ...


class FileInput(FileLog):
    """The files of a directory."""

    stream = ""

    def __init__(
        self,
        log: str,
        directory: str,
        format: Format,
        *,
        write: bool,
        pieces: PieceLog | None = None,
    ) -> None:
        super().__init__(log, format, write=write, pieces=pieces)
        self._directory = directory

    @property
    def begin(self) -> Position:
        return NOWHERE

    @property
    def folders(self) -> list[str]:
        return self.directories or [self._directory]

    def watch(self, changed: Callable[[], None]) -> None:
        pass  # the folders change

    def look(self) -> list[str]:
        return self.refresh(self._directory).warnings

    def learn(self, record_bytes: float) -> None:
        pass

    def shares(self, start: Sequence[int], end: Sequence[int], parts: int) -> list[InputShare]:
        return cut_shares(self, start, end, parts)

    def records_after(self, position: Sequence[int]) -> int | None:
        return None  # the records of an unread file have not been counted

    def stamp_at(self, position: Sequence[int]) -> int | None:
        return None

    def commit(self, reader: str, position: Sequence[int]) -> None:
        pass  # only the user deletes files

    def knows(self, reader: str) -> bool:
        return True

    def located(self, split: InputSplit) -> LogObjects | None:
        return None


class LogInput(LogReader):
    """An event log."""

    stream = ""

    def __init__(self, path: Path, name: str = "") -> None:
        """`name` is the path by which tasks know the log, if it is another one."""
        super().__init__(path)
        self._name = name or str(path)

    @property
    def begin(self) -> Position:
        return self.start  # retention may have removed the oldest records

    @property
    def folders(self) -> list[str]:
        return [str(self.path)]

    def watch(self, changed: Callable[[], None]) -> None:
        pass  # the folders change

    def look(self) -> list[str]:
        self.reload()
        return []

    def learn(self, record_bytes: float) -> None:
        pass

    def splits(
        self, start: Sequence[int], end: Sequence[int], target_bytes: int
    ) -> list[InputSplit]:
        return [InputSplit(self._name, *piece) for piece in self.ranges(start, end, target_bytes)]

    def shares(self, start: Sequence[int], end: Sequence[int], parts: int) -> list[InputShare]:
        return cut_shares(self, start, end, parts)

    def records_after(self, position: Sequence[int]) -> int:
        return self.end[1] - position[1]

    def located(self, split: InputSplit) -> LogObjects | None:
        return None


class PlacedLogInput(LogInput):
    """An event log in the place of the store, read from its local mirror."""

    def __init__(self, logs: PlaceLogs, stream: str, position: Position | None) -> None:
        self._logs = logs
        self.stream = stream
        self._mirror = logs.mirror(stream, since=position)
        super().__init__(self._mirror.path, self._mirror.log)

    def commit(self, reader: str, position: Sequence[int]) -> None:
        self._logs.commit(self.stream, reader, position)

    def knows(self, reader: str) -> bool:
        return self._logs.knows(self.stream, reader)

    def located(self, split: InputSplit) -> LogObjects:
        mirror = self._mirror
        objects = mirror.objects_between(split.start, split.stop or 0)
        return LogObjects(self.stream, str(mirror.path), mirror.token, tuple(objects))


class _LogFormat:
    """The format in the source's file list when the source reads a log and has no files."""

    name = LOG


def open_input(
    home: Home,
    source: str,
    address: Address,
    text: TextForm,
    *,
    write: bool = False,
    logs: PlaceLogs | None = None,
    position: Position | None = None,
    wait: bool = False,
) -> Input:
    """Opens the records of a source, in the text format `text`.

    `write`: set in one process only, the driver. `logs`: set if the store is in a place. `position`
    is how far the source was taken in. `wait`: the run ends when it has taken in what is there.
    """
    record = str(home.source_log(source))
    pieces = None if logs is None else list_pieces(logs.place, source)
    if address.format == KAFKA:
        topic = source_topic(address.path, address.options, f"source {source!r}")
        record_log = RecordLog(record, write=True, pieces=pieces) if write else None
        return KafkaInput(topic, record_log, wait=wait)
    if address.format != LOG:
        format = format_named(address.format, text)
        return FileInput(record, address.path, format, write=write, pieces=pieces)
    # Records that the source reads a log, and refuses one that has read files until now: positions
    # in files mean nothing in a log.
    header = FileLog(record, _LogFormat(), write=write, pieces=pieces)  # type: ignore[arg-type]  # only its name
    header.close()
    return open_log(home, address.path, logs, position)


def open_log(home: Home, path: str, logs: PlaceLogs | None, position: Position | None) -> Input:
    """Opens an event log as an input. `logs`: set if the store and its own logs are in a place."""
    if logs is not None and Path(path).parent == home.log_of("").absolute():
        return PlacedLogInput(logs, Path(path).name, position)
    return LogInput(Path(path))


def position_of(progress: Progress, source: str) -> Position | None:
    """Returns how far a source was taken in; None if nothing was."""
    known = progress.sources.get(source)
    return known.position or None if known is not None else None


def register(home: Home, name: str, source: Input, position: Position | None) -> None:
    """Commits for the first time in a run; StoreError as `check_known`."""
    check_known(home, name, source, position)
    commit(home, name, source, position)


def check_known(home: Home, name: str, source: Input, position: Position | None) -> None:
    """Raises StoreError if the source's position belongs to another log. Every log that the source
    has read knows it as a reader."""
    if position is not None and not source.knows(_reader(home, name)):
        raise StoreError(
            f"{home.path}: source {name!r} was taken in up to {position}, and its log does not "
            "know that it was read by this store; was the log replaced? Restore it, or begin with "
            "a fresh store"
        )


def commit(home: Home, name: str, source: Input, position: Position | None) -> None:
    """Tells a source how far the application has committed it: retention waits for that."""
    source.commit(_reader(home, name), position or source.begin)


def _reader(home: Home, source: str) -> str:
    """Returns a source's reader name in its log; two sources may read one log."""
    return f"{home.facts.app}-{home.facts.id[:8]}-{source}"


def read_split(
    format: str, split: InputSplit, fields: Fields | None = None, text: TextForm = PLAIN_TEXT
) -> Iterator[Chunk]:
    """Reads the records of a split; with `fields`, only these fields where the format allows it."""
    if format == JsonLines.name:
        yield from JsonLines().read(split, fields)
        return
    if format != LOG:
        yield from format_named(format, text).read(split)
        return
    with closing(LogReader(Path(split.path))) as reader:
        yield from log_chunks(reader.blocks(split.start, split.stop or 0), fields)


def log_chunks(blocks: Iterable[Block], fields: Fields | None = None) -> Iterator[Chunk]:
    """Yields the records of an event log's blocks; with `fields`, only these where possible."""
    lines: list[bytes] = []
    stamps: list[int] = []
    first = 0
    for block in blocks:
        if not lines:
            first = block.first
        lines += block.lines
        stamps += [block.stamp] * len(block.lines)
        if len(lines) >= CHUNK_RECORDS:
            yield _chunk(lines, stamps, first, fields)
            lines, stamps = [], []
    if lines:
        yield _chunk(lines, stamps, first, fields)


def _chunk(lines: list[bytes], stamps: list[int], first: int, fields: Fields | None) -> Chunk:
    """Builds a chunk whose line numbers are record numbers in the log, for dead letters."""
    picked = None if fields is None else picker(fields)(b"\n".join(lines))
    if picked is None or picked.size != len(lines):
        return _whole_chunk(lines, stamps, first)
    whole = partial(_whole_chunk, lines, stamps, first)
    return Chunk([], None, [], None, stamps=stamps, picked=picked, whole=whole)


def _whole_chunk(lines: list[bytes], stamps: list[int], first: int) -> Chunk:
    chunk = decode_lines(lines, 0, lambda: first - 1)
    if chunk.lines is not None:
        stamps = [stamps[line] for line in chunk.lines]
    return chunk._replace(stamps=stamps)
