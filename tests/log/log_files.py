"""Small acts on logs that their tests share."""

from __future__ import annotations

from pathlib import Path

from millstream.log.place_writer import PlaceLogWriter
from millstream.log.reader import LogReader
from millstream.log.segments import encode_end, list_segments
from millstream.log.writer import Appended, Entry, LogWriter


def put(
    writer: LogWriter | PlaceLogWriter, *lines: bytes, tag: str = "", digest: int = 0
) -> Appended:
    """Append one entry; its result."""
    (result,) = writer.append([Entry.of(list(lines), tag, digest)])
    assert isinstance(result, Appended)
    return result


def lines_of(path: Path) -> list[bytes]:
    """Every record that a reader sees."""
    reader = LogReader(path)
    try:
        blocks = reader.blocks(reader.start[0], reader.end[0])
        return [line for block in blocks for line in block.lines]
    finally:
        reader.close()


def last_segment(path: Path) -> Path:
    """The file that is appended to."""
    return Path(list_segments(path)[-1].path)


def set_end(path: Path, position: list[int]) -> None:
    """Make `end` say something, as a crash at that moment would have left it."""
    (path / "end").write_bytes(encode_end(*position))


class Clock:
    """A time that stands until it is moved."""

    def __init__(self, now: int = 1_000_000) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now
