"""Retention removes only what it may, oldest first, and never what a reader needs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from log_files import Clock, lines_of, put

from millstream.errors import LogError
from millstream.log.reader import LogReader, Removed
from millstream.log.retention import DAY, Retention, Sealed, removable
from millstream.log.writer import LogWriter

KEEP_ALL = Retention(max_age=None, max_bytes=None)
LIMITS = st.none() | st.integers(0, 60)


@given(
    st.lists(st.tuples(st.integers(1, 10), st.integers(0, 10)), max_size=6),
    st.integers(0, 10),
    LIMITS,
    st.integers(0, 70),
    st.builds(Retention, LIMITS, LIMITS),
)
def test_what_goes_may_go_and_what_stays_must(
    sizes: list[tuple[int, int]], active: int, least: int | None, now: int, keep: Retention
) -> None:
    """Each removed segment is done with and old or too many; the first that stays is not."""
    sealed, at, stamp = [], 0, 0
    for size, later in sizes:
        stamp += later
        sealed.append(Sealed(at, at, at + size, stamp))
        at += size
    gone = removable(sealed, active, least, now, keep)
    total = at + active

    def may_go(number: int) -> bool:
        segment = sealed[number]
        old = keep.max_age is not None and now - segment.last_stamp > keep.max_age
        many = keep.max_bytes is not None and total - segment.offset > keep.max_bytes
        return (old or many) and (least is None or segment.end <= least)

    assert all(may_go(number) for number in range(gone))
    last_with_records = gone == len(sealed) - 1 and active == 0
    assert gone == len(sealed) or last_with_records or not may_go(gone)
    assert active or not sealed or gone < len(sealed)


def small(path: Path, clock: Clock, keep: Retention) -> LogWriter:
    """A writer whose segments have one block each."""
    return LogWriter(path, segment_bytes=1, retention=keep, clock=clock)


def test_old_segments_go(tmp_path: Path) -> None:
    """Segments older than max_age are removed on the next roll or on request, live and after a
    restart."""
    clock = Clock()
    writer = small(tmp_path / "log", clock, Retention(max_age=100, max_bytes=None))
    for number in range(4):
        put(writer, b"%d" % number)
        clock.now += 30
    assert lines_of(tmp_path / "log") == [b"0", b"1", b"2", b"3"]
    clock.now += 11
    assert writer.retain() == 49 * 2
    assert lines_of(tmp_path / "log") == [b"2", b"3"]
    writer.close()
    clock.now += 30
    writer = small(tmp_path / "log", clock, Retention(max_age=100, max_bytes=None))
    assert lines_of(tmp_path / "log") == [b"2", b"3"]
    put(writer, b"4")
    assert lines_of(tmp_path / "log") == [b"3", b"4"]
    assert writer.retain() == 0
    assert writer.end == [49 * 5, 5]


def test_a_slow_stream_lets_go_too(tmp_path: Path) -> None:
    """A segment is sealed when its first block is too old, so that old records can go."""
    clock = Clock()
    writer = LogWriter(tmp_path / "log", retention=Retention(max_age=10), clock=clock)
    for number in range(4):
        put(writer, b"%d" % number)
        clock.now += 6
    assert lines_of(tmp_path / "log") == [b"0", b"1", b"2", b"3"]
    clock.now += 1
    put(writer, b"4")
    assert lines_of(tmp_path / "log") == [b"2", b"3", b"4"]


def test_too_much_goes(tmp_path: Path) -> None:
    """The log is brought to max_bytes, by whole segments, as it grows."""
    writer = small(tmp_path / "log", Clock(), Retention(max_age=None, max_bytes=49 * 3))
    for number in range(10):
        put(writer, b"%d" % number)
        assert len(lines_of(tmp_path / "log")) == min(number + 1, 3)
    assert LogReader(tmp_path / "log").start == [49 * 7, 7]


def test_what_a_reader_has_yet_to_commit_stays(tmp_path: Path) -> None:
    """Retention does not go past the reader that is furthest behind, whatever the limits say."""
    writer = small(tmp_path / "log", Clock(), Retention(max_age=None, max_bytes=0))
    reader = LogReader(tmp_path / "log")
    reader.commit("slow", [0, 0])
    for number in range(5):
        put(writer, b"%d" % number)
    reader.commit("fast", writer.end)
    assert writer.retain() == 0
    reader.commit("slow", [98, 2])
    assert writer.retain() == 98
    reader.commit("slow", [98 + 49, 3])
    put(writer, b"5")
    assert lines_of(tmp_path / "log") == [b"3", b"4", b"5"]
    reader.commit("slow", writer.end)
    assert writer.retain() == 49 * 2
    assert lines_of(tmp_path / "log") == [b"5"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"offset":"x","records":1}', b"\xff\xfe"])
def test_a_reader_that_cannot_be_read_keeps_everything(tmp_path: Path, content: bytes) -> None:
    """If a reader's mark is unreadable, everything stays until that reader commits again."""
    writer = small(tmp_path / "log", Clock(), Retention(max_age=None, max_bytes=0))
    reader = LogReader(tmp_path / "log")
    reader.commit("a", [1 << 40, 0])
    (tmp_path / "log" / "readers" / "b.json").write_bytes(content)
    for number in range(3):
        put(writer, b"%d" % number)
    assert lines_of(tmp_path / "log") == [b"0", b"1", b"2"]
    reader.commit("b", [1 << 40, 0])
    assert writer.retain() == 98


def test_a_reader_may_commit_before_there_is_a_log(tmp_path: Path) -> None:
    """So that nothing is removed before it began; its name must be a file name."""
    reader = LogReader(tmp_path / "log")
    reader.commit("a", [0, 0])
    writer = small(tmp_path / "log", Clock(), Retention(max_age=None, max_bytes=0))
    for number in range(3):
        put(writer, b"%d" % number)
    assert lines_of(tmp_path / "log") == [b"0", b"1", b"2"]
    for name in ("", ".a", "a/b", "../a", "a\0"):
        with pytest.raises(ValueError, match="must be a file name"):
            reader.commit(name, [0, 0])
    (tmp_path / "file").write_text("")
    with pytest.raises(LogError, match="cannot commit reader 'a'"):
        LogReader(tmp_path / "file" / "log").commit("a", [0, 0])


def test_a_reader_that_is_known_stays_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first commit is on disk, file and folder, or a power cut could let retention forget it;
    the later ones are not waited for."""
    synced: list[int] = []
    fsync = os.fsync

    def sync(file: int) -> None:
        synced.append(os.fstat(file).st_ino)
        fsync(file)

    monkeypatch.setattr(os, "fsync", sync)
    reader = LogReader(tmp_path / "log")
    assert not reader.knows("app")
    reader.commit("app", [0, 0])
    assert reader.knows("app")
    readers = tmp_path / "log" / "readers"
    places = [readers / "app.json", readers, readers.parent, tmp_path]
    assert {os.stat(place).st_ino for place in places} <= set(synced)
    synced.clear()
    reader.commit("app", [49, 1])
    assert synced == []


def test_the_last_tag_outlives_retention(tmp_path: Path) -> None:
    """The newest segment with records stays, so that after any pause the last tag is known."""
    clock = Clock()
    keep = Retention(max_age=10, max_bytes=0)
    writer = small(tmp_path / "log", clock, keep)
    put(writer, b"1", tag="batch 1")
    put(writer, b"2", tag="batch 2")
    clock.now += 30 * DAY
    # A crash right after a roll leaves an empty segment behind.
    (tmp_path / "log" / f"{writer.end[0]:020d}-{2:020d}.log").touch()
    for _ in range(2):
        writer.close()
        writer = small(tmp_path / "log", clock, keep)
        assert writer.last_tag == "batch 2"
        writer.retain()
    assert writer.end[1] == 2
    assert lines_of(tmp_path / "log") == [b"2"]


def test_a_reader_is_told_what_was_removed(tmp_path: Path) -> None:
    """The error says which records, and where the log goes on. `start` moves by itself."""
    writer = small(tmp_path / "log", Clock(), Retention(max_age=None, max_bytes=49 * 2))
    for number in range(2):
        put(writer, b"%d" % number)
    reader, late = LogReader(tmp_path / "log"), LogReader(tmp_path / "log")
    assert late.start == [0, 0]
    iterating = reader.blocks(0, 98)
    assert next(iterating).lines == [b"0"]
    for number in range(2, 6):
        put(writer, b"%d" % number)
    late.reload()
    assert late.end == [49 * 6, 6]
    for ask in (
        lambda: late.take([0, 0], 10),
        lambda: late.ranges([0, 0], late.end, 10),
        lambda: late.stamp_at([0, 0]),
    ):
        with pytest.raises(
            Removed, match=r"records 0 to 3 .* removed by retention.*begin at \[196, 4\]"
        ):
            ask()
    with pytest.raises(Removed, match="from offset 49 to 196 were removed"):
        list(late.blocks(49, late.end[0]))
    with pytest.raises(Removed, match="records 1 to 3"):
        next(iterating)
    assert late.start == [196, 4]
    assert late.find(1) == [196, 4]
    assert late.take(late.start, 1) == [245, 5]


def test_for_ever_is_for_ever(tmp_path: Path) -> None:
    """With no limits nothing goes."""
    clock = Clock()
    writer = small(tmp_path / "log", clock, KEEP_ALL)
    for number in range(5):
        put(writer, b"%d" % number)
        clock.now += 1000 * DAY
    assert writer.retain() == 0
    assert len(lines_of(tmp_path / "log")) == 5
