"""The contents of a log when a writer opens it: whole appends, nothing torn, and damage is
found."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_files import Clock, last_segment, lines_of, put, set_end

from millstream.errors import LogError
from millstream.log.reader import LogReader
from millstream.log.segments import list_segments
from millstream.log.writer import Appended, LogWriter

pytestmark = pytest.mark.timeout(60)


@pytest.mark.parametrize("tail", [b"", b"\0", b"garbage"])
def test_a_torn_append_is_cut_off_at_any_byte(path: Path, tail: bytes) -> None:
    """Cut anywhere in the last block, exactly the appends before it remain, and it is said."""
    writer = LogWriter(path)
    put(writer, b'{"n":1}', b'{"n":2}', tag="one")
    put(writer, b'{"n":3}')
    before = writer.end
    put(writer, b'{"n":4}', b'{"n":5}', tag="two")
    writer.close()
    segment = last_segment(path)
    whole = segment.read_bytes()
    for cut in range(before[0], len(whole)):
        segment.write_bytes(whole[:cut] + tail)
        set_end(path, before)
        assert lines_of(path) == [b'{"n":1}', b'{"n":2}', b'{"n":3}']
        writer = LogWriter(path)
        assert writer.end == before
        assert writer.torn == cut - before[0] + len(tail)
        said = "1 byte that was never acknowledged is cut off"
        if writer.torn != 1:
            said = f"{writer.torn:,} bytes that were never acknowledged are cut off"
        assert (said in writer.torn_said) == bool(writer.torn)
        assert writer.last_tag == "one"
        assert segment.read_bytes() == whole[: before[0]]
        assert put(writer, b'{"n":6}', tag="two") == Appended(3, 1, False)
        assert lines_of(path)[2:] == [b'{"n":3}', b'{"n":6}']
        writer.close()


def test_a_whole_append_that_was_not_made_known_is_kept(path: Path) -> None:
    """Killed after the write and before `end`: the block counts, its tag too, and is read."""
    writer = LogWriter(path)
    put(writer, b"1")
    before = writer.end
    put(writer, b"2", tag="t", digest=7)
    after = writer.end
    writer.close()
    set_end(path, before)
    writer = LogWriter(path)
    assert (writer.end, writer.torn) == (after, 0)
    assert lines_of(path) == [b"1", b"2"]
    assert put(writer, b"2", tag="t", digest=7) == Appended(1, 1, True)


@pytest.mark.parametrize("content", [None, b"", b"short", b"x" * 20, b"x" * 40])
def test_a_lost_end_is_written_anew(path: Path, content: bytes | None) -> None:
    """A power cut may leave `end` old or torn: the writer looks at the segments."""
    writer = LogWriter(path)
    put(writer, b"1")
    end = writer.end
    writer.close()
    (path / "end").unlink()
    if content is not None:
        (path / "end").write_bytes(content)
    LogWriter(path).close()
    assert LogReader(path).end == end
    assert (path / "end").stat().st_size == 20


def test_acknowledged_records_that_are_gone_are_damage(path: Path) -> None:
    """A log that is cut below its `end` has no torn append: it is refused, and unchanged. Without
    `end` the writer continues."""
    writer = LogWriter(path)
    put(writer, b"1")
    first = writer.end[0]
    put(writer, b"2")
    writer.close()
    segment = last_segment(path)
    whole = segment.read_bytes()
    for cut in range(len(whole)):
        segment.write_bytes(whole[:cut])
        with pytest.raises(LogError, match=r"2 records .* were on disk.* delete the file `end`"):
            LogWriter(path)
        assert segment.read_bytes() == whole[:cut]
    (path / "end").unlink()
    writer = LogWriter(path)
    assert writer.end == [first, 1]
    assert writer.torn == len(whole) - 1 - first


def test_damage_in_the_middle_is_not_a_torn_append(path: Path) -> None:
    """Whole blocks behind a bad one, though `end` is lost: refused, named, and untouched."""
    writer = LogWriter(path)
    for number in range(3):
        put(writer, b"%d" % number)
    one = writer.end[0] // 3
    writer.close()
    segment = last_segment(path)
    whole = segment.read_bytes()
    (path / "end").unlink()
    for at in range(one, 2 * one):
        changed = bytearray(whole)
        changed[at] ^= 4
        segment.write_bytes(changed)
        with pytest.raises(LogError, match=rf"{segment.name}: damaged at byte {one} .*restore"):
            LogWriter(path)
        assert segment.read_bytes() == changed


def test_an_earlier_segment_must_be_whole(path: Path) -> None:
    """It was on disk before the next one was made. If it is shorter, longer or missing, it is
    damaged."""
    writer = LogWriter(path, segment_bytes=100)
    for number in range(6):
        put(writer, b"%d" % number)
    writer.close()
    second = Path(list_segments(path)[1].path)
    whole = second.read_bytes()
    for content in (whole[:-1], whole + b"x", b"", None):
        if content is None:
            second.unlink()
        else:
            second.write_bytes(content)
        with pytest.raises(LogError, match="as the next segment's name says"):
            LogWriter(path, segment_bytes=100)
    second.write_bytes(b"x" * len(whole))
    with pytest.raises(LogError, match=f"{second.name}: damaged at byte 0"):
        LogWriter(path, segment_bytes=100)
    second.write_bytes(whole)
    assert LogWriter(path).end[1] == 6


@pytest.mark.parametrize("tail", [b"", b"MSB\xff and a part of a header"])
def test_a_crash_while_rolling_is_survived(path: Path, tail: bytes) -> None:
    """A new segment with nothing whole in it is the last one, and is gone on with."""
    clock = Clock()
    writer = LogWriter(path, segment_bytes=1, clock=clock)
    for number in range(3):
        put(writer, b"%d" % number, tag=f"t{number}")
    end = writer.end
    writer.close()
    (path / f"{end[0]:020d}-{end[1]:020d}.log").write_bytes(tail)
    assert lines_of(path) == [b"0", b"1", b"2"]
    clock.now -= 500
    writer = LogWriter(path, segment_bytes=1, clock=clock)
    assert (writer.end, writer.torn, writer.last_tag) == (end, len(tail), "t2")
    assert put(writer, b"2", tag="t2").repeated
    put(writer, b"3")
    assert lines_of(path) == [b"0", b"1", b"2", b"3"]
    reader = LogReader(path)
    assert [block.stamp for block in reader.blocks(0, reader.end[0])] == [1_000_000] * 4
