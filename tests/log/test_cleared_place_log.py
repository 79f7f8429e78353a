"""A log in a place that is emptied: other writers go on, and mirrors and readers notice."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from log_files import lines_of

from millstream.log.entries import Entry
from millstream.log.mirror import LogMirror
from millstream.log.place_writer import PlaceLogWriter
from millstream.log.reader import LogReader
from millstream.log.retention import NOTHING
from millstream.places.memory_place import MemoryPlace


def entry(number: int) -> list[Entry]:
    return [Entry.of([b"%d" % number], f"q:{number}:0")]


def test_a_mirror_and_a_writer_go_on_after_a_log_was_emptied(tmp_path: Path) -> None:
    """The mirror has only what is left, an open reader goes on, and a writer that was open, or is
    opened later, still knows the last tag, and appends nothing twice."""
    place = MemoryPlace()
    with closing(PlaceLogWriter(place, "s")) as other:
        for number in range(3):
            other.append(entry(number))
        with (
            closing(LogMirror(place, "s", tmp_path / "mirror")) as mirror,
            closing(LogReader(mirror.path)) as reader,
        ):
            assert lines_of(mirror.path) == [b"0", b"1", b"2"]
            with closing(PlaceLogWriter(place, "s", retention=NOTHING)) as clearing:
                other.append(entry(3))  # a batch that is published meanwhile
                clearing.clear()
                assert clearing.last_tag == "q:3:0"
            mirror.follow()
            mirror.retain()
            reader.reload()
            assert (reader.start[1], reader.end[1]) == (4, 4)
            assert lines_of(mirror.path) == []
            (repeated,) = other.append(entry(3))
            assert getattr(repeated, "repeated", False)
            other.append(entry(4))
            mirror.follow()
            reader.reload()
            assert (lines_of(mirror.path), reader.find(4)[1]) == ([b"4"], 4)
    with closing(PlaceLogWriter(place, "s")) as late:
        assert (late.last_tag, late.end[1]) == ("q:4:0", 5)
    with closing(LogMirror(place, "s", tmp_path / "mirror")) as mirror:
        assert lines_of(mirror.path) == [b"4"]
